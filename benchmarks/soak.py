"""Mixed load for a long time: does memory grow, do descriptors leak?

    python -m benchmarks.soak [--seconds 180]

Honest pictures of several sizes, forms and models, hostile files, and clients that
leave amid the upload, the work and the answer. The worker's resident memory and its
descriptors are read every second. Exit code 1 when memory grew by 5 % after the
first sixth, when it has a trend in the last two thirds, or when descriptors are left
over; a run of half an hour looks at the last twenty minutes so.
"""

import argparse
import random
import socket
import statistics
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import msgpack

from benchmarks import load
from benchmarks.pictures import jpeg
from benchmarks.service import Service, started

CLIENTS = 6
MAX_GROWTH = 0.05
MAX_TREND = 0.02
"""Of a straight line through the last two thirds, over their length."""
MAX_LEFT_DESCRIPTORS = 8

SIZES = ((480, 640), (720, 1280), (1080, 1920), (1400, 700), (2048, 2048))
DTYPES = ("uint8", "bfloat16", "float32")


class Mix:
    """Requests by kind, each the bytes of one POST."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)  # noqa: S311 - a load, not a secret
        self._pictures = [jpeg(*size, number) for number, size in enumerate(SIZES)]

    def honest(self) -> bytes:
        path = f"/preprocess?dtype={self._random.choice(DTYPES)}"
        return load.request(path, self._random.choice(self._pictures))

    def batch(self) -> bytes:
        items = [{"type": "image", "data": each} for each in self._pictures[:4]]
        body: bytes = msgpack.packb({"items": items, "dtype": "uint8"})
        plain = load.request("/preprocess", body)
        return plain.replace(b"application/octet-stream", b"application/msgpack", 1)

    def hostile(self) -> bytes:
        picture = self._random.choice(self._pictures)
        at = self._random.randrange(len(picture))
        bodies = (
            picture[:at],
            picture[:at] + self._random.randbytes(64) + picture[at + 64 :],
            self._random.randbytes(2000),
            b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + bytes([0x7F, 255, 255, 255] * 2) + b"\x08\2\0\0\0",
            b"",
        )
        return load.request("/preprocess", self._random.choice(bodies))


def client(port: int, mix: Mix, stop: threading.Event, seen: Counter[str]) -> None:
    """Requests, one after the other, each on a connection of its own."""
    choose = random.Random(id(mix))  # noqa: S311
    kinds: list[Callable[[], bytes]] = [mix.honest] * 5 + [mix.batch] + [mix.hostile] * 4
    while not stop.is_set():
        request = choose.choice(kinds)()
        leaves = choose.random() < 0.2
        try:
            with socket.create_connection(("127.0.0.1", port), 60) as connection:
                if leaves and choose.random() < 0.5:
                    connection.sendall(request[: choose.randrange(len(request))])
                    seen["left amid the upload"] += 1
                    continue
                connection.sendall(request)
                head = b"" if leaves and choose.random() < 0.5 else connection.recv(12)
                if leaves:
                    seen["left later"] += 1
                    continue
                seen[head[9:12].decode()] += 1
                read_rest(connection)
        except OSError as fault:
            seen[type(fault).__name__] += 1


def read_rest(connection: socket.socket) -> None:
    """Until the answer is whole, by its length."""
    buffer = bytearray()
    while b"\r\n\r\n" not in buffer:
        buffer += connection.recv(4096)
    head, _, rest = bytes(buffer).partition(b"\r\n\r\n")
    left = int(head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0]) - len(rest)
    while left > 0:
        left -= len(connection.recv(min(left, 1 << 20)))


def worker_pid(service: Service) -> str:
    pid = service.process.pid
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return next(
        child for child in children if b"spawn_main" in Path(f"/proc/{child}/cmdline").read_bytes()
    )


def resident_mib(pid: str) -> float:
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * 4096 / 2**20


def descriptors(pid: str) -> int:
    return len(list(Path(f"/proc/{pid}/fd").iterdir()))


def trend(samples: list[float]) -> float:
    """What a straight line through the samples rises by, as a share of their mean."""
    slope = statistics.linear_regression(range(len(samples)), samples).slope
    return slope * len(samples) / statistics.mean(samples)


def run(seconds: float) -> bool:
    seen: Counter[str] = Counter()
    stop = threading.Event()
    samples: list[float] = []
    with started(lambda port: ["service", "serve", "--port", str(port)]) as service:
        pid = worker_pid(service)
        before = descriptors(pid)
        threads = [
            threading.Thread(target=client, args=(service.port, Mix(number), stop, seen))
            for number in range(CLIENTS)
        ]
        for thread in threads:
            thread.start()
        ends_s = time.monotonic() + seconds
        while time.monotonic() < ends_s:
            time.sleep(1)
            samples.append(resident_mib(pid))
        stop.set()
        for thread in threads:
            thread.join()
        time.sleep(2)
        left = descriptors(pid) - before
        alive = worker_pid(service) == pid
    window = max(10, len(samples) // 30)
    early = samples[len(samples) // 6 :]
    growth = statistics.mean(samples[-window:]) / statistics.mean(early[:window]) - 1
    rising = trend(samples[len(samples) // 3 :])
    print(f"requests: {dict(seen)}")
    print(
        f"resident: {early[0]:.0f} MiB early, {samples[-1]:.0f} at the end, {max(samples):.0f} most"
    )
    print(f"growth {growth:+.1%}, trend {rising:+.1%}, descriptors {left:+d}, same worker {alive}")
    faults = seen["500"]
    return (
        growth < MAX_GROWTH
        and rising < MAX_TREND
        and left <= MAX_LEFT_DESCRIPTORS
        and alive
        and not faults
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--seconds", type=float, default=180)
    sys.exit(0 if run(parser.parse_args().seconds) else 1)
