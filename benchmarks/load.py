"""Load generators that cost little: raw sockets, prebuilt requests, no parsing.

In the closed loop each connection sends the next request as soon as the last answer is
read; in the open one requests go out when they are due. They run on the machine
under test, so what they cost is taken from the service.
"""

import socket
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

READ_BYTES = 1 << 20
HEAD_BYTES = 4096


@dataclass(frozen=True)
class Load:
    """What a run of one service gave. `answer_bytes` is of all answers together."""

    requests: int
    seconds: float
    latencies_ms: tuple[float, ...]
    answer_bytes: int

    @property
    def per_second(self) -> float:
        return self.requests / self.seconds

    def quantile_ms(self, share: float) -> float:
        ordered = sorted(self.latencies_ms)
        return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def request(path: str, body: bytes, content_type: str = "application/octet-stream") -> bytes:
    """The bytes of one POST."""
    head = (
        f"POST {path} HTTP/1.1\r\nHost: here\r\nContent-Type: {content_type}\r\n"
        f"Content-Length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body


def run(port: int, requests: Sequence[bytes], concurrency: int, seconds: float) -> Load:
    """Keep `concurrency` requests in flight for `seconds`; raises on any answer but 200."""
    stop_s = time.perf_counter() + seconds

    def loop(first: int, ask: Callable[[int, float], None]) -> None:
        number = first
        while (now_s := time.perf_counter()) < stop_s:
            ask(number, now_s)
            number += concurrency

    return _load(port, requests, concurrency, loop)


def run_open(
    port: int, requests: Sequence[bytes], connections: int, due_s: Sequence[float]
) -> Load:
    """Send each request at its time, in seconds from now; raises on any answer but 200.

    Latencies count from when a request was due, so one that waits for a free connection
    tells of it.
    """
    begun_s = time.perf_counter()
    numbers = iter(range(len(due_s)))
    lock = threading.Lock()

    def loop(_: int, ask: Callable[[int, float], None]) -> None:
        while True:
            with lock:
                number = next(numbers, None)
            if number is None:
                return
            at_s = begun_s + due_s[number]
            time.sleep(max(0.0, at_s - time.perf_counter()))
            ask(number, at_s)

    return _load(port, requests, connections, loop)


def _load(
    port: int,
    requests: Sequence[bytes],
    connections: int,
    loop: Callable[[int, Callable[[int, float], None]], None],
) -> Load:
    """A thread with a connection for each loop; `ask` takes a number and when it was due."""
    latencies: list[float] = []
    received: list[int] = []
    faults: list[Exception] = []

    def connected(first: int) -> None:
        buffer = bytearray(READ_BYTES)

        def ask(number: int, due_s: float) -> None:
            connection.sendall(requests[number % len(requests)])
            received.append(_read_answer(connection, buffer))
            latencies.append((time.perf_counter() - due_s) * 1e3)

        try:
            with socket.create_connection(("127.0.0.1", port)) as connection:
                loop(first, ask)
        except Exception as fault:
            faults.append(fault)

    begun_s = time.perf_counter()
    threads = [threading.Thread(target=connected, args=(first,)) for first in range(connections)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if faults:
        raise faults[0]
    took_s = time.perf_counter() - begun_s
    return Load(len(latencies), took_s, tuple(latencies), sum(received))


def _read_answer(connection: socket.socket, buffer: bytearray) -> int:
    """Read one answer; its length in bytes. Most of the body is dropped unseen."""
    got = connection.recv_into(buffer, HEAD_BYTES)
    while (end := buffer.find(b"\r\n\r\n", 0, got)) < 0:
        more = connection.recv_into(memoryview(buffer)[got:])
        if not more:
            raise ConnectionError("closed amid the headers")
        got += more
    head = bytes(buffer[:end]).lower()
    if not head.startswith(b"http/1.1 200"):
        raise ConnectionError(head.partition(b"\r\n")[0].decode())
    length = int(head.partition(b"content-length: ")[2].partition(b"\r\n")[0])
    left = length - (got - end - 4)
    while left > 0:
        # MSG_TRUNC: the kernel drops the bytes instead of copying them to us (tcp(7)).
        more = connection.recv_into(buffer, min(left, READ_BYTES), socket.MSG_TRUNC)
        if not more:
            raise ConnectionError("closed amid the body")
        left -= more
    return length
