"""A closed-loop load generator that costs little: raw sockets, prebuilt requests, no parsing.

Each connection sends the next request as soon as the last answer is read. It
runs on the machine under test, so what it costs is taken from the service.
"""

import socket
import threading
import time
from collections.abc import Sequence
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


def request(path: str, body: bytes) -> bytes:
    """The bytes of one POST."""
    head = (
        f"POST {path} HTTP/1.1\r\nHost: here\r\nContent-Type: application/octet-stream\r\n"
        f"Content-Length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body


def run(port: int, requests: Sequence[bytes], concurrency: int, seconds: float) -> Load:
    """Keep `concurrency` requests in flight for `seconds`; raises on any answer but 200."""
    latencies: list[float] = []
    received: list[int] = []
    faults: list[Exception] = []
    stop_s = time.perf_counter() + seconds

    def loop(first: int) -> None:
        buffer = bytearray(READ_BYTES)
        try:
            with socket.create_connection(("127.0.0.1", port)) as connection:
                number = first
                while time.perf_counter() < stop_s:
                    begun_s = time.perf_counter()
                    connection.sendall(requests[number % len(requests)])
                    received.append(_read_answer(connection, buffer))
                    latencies.append((time.perf_counter() - begun_s) * 1e3)
                    number += concurrency
        except Exception as fault:
            faults.append(fault)

    begun_s = time.perf_counter()
    threads = [threading.Thread(target=loop, args=(first,)) for first in range(concurrency)]
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
