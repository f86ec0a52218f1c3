"""The whole service over HTTP, beside its peers, in one run.

    python -m benchmarks.service [--seconds 4] [--rounds 7] [--json FILE]

Ours and the obvious service (`obvious.py`) run at the same time in processes of
their own and are loaded in turn, so that what slows the machine slows both. The
load generator shares the cores with them. A service's CPU time is its own
accounting, the generator's is not in it.
"""

import argparse
import io
import json
import os
import socket
import statistics
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image
from simplejpeg import decode_jpeg

from benchmarks import load
from benchmarks.pictures import jpeg

CONCURRENCY = 8
SIZES = {"1280x720": (720, 1280), "2048x2048": (2048, 2048)}
TICKS_PER_S = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class Result:
    """A ratio of ours and its peer's, the median of the rounds; and what it was made of."""

    name: str
    ours: float
    peer: float
    unit: str
    ratio: float
    gate: float
    aim: float
    inverse: bool = False

    def verdict(self) -> str:
        good = [self.ratio <= x if self.inverse else self.ratio >= x for x in (self.gate, self.aim)]
        return "aim met" if good[1] else "gate met" if good[0] else "GATE MISSED"


@dataclass(frozen=True)
class Service:
    """A process that serves, and its port."""

    process: "subprocess.Popen[bytes]"
    port: int

    def cpu_s(self) -> float:
        """User and system time so far, of the process and its workers."""
        return sum(_cpu_s(each) for each in self.pids())

    def pids(self) -> tuple[str, ...]:
        """The process, and its workers."""
        pid = str(self.process.pid)
        return (pid, *Path(f"/proc/{pid}/task/{pid}/children").read_text().split())


def _cpu_s(pid: str) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS_PER_S


@contextmanager
def started(command: Callable[[int], list[str]]) -> Iterator[Service]:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    quiet = {"PATCHMILL_LOG_LEVEL": "warning", "PATCHMILL_DRAIN_DELAY_S": "0"}
    process = subprocess.Popen([sys.executable, "-m", *command(port)], env={**os.environ, **quiet})
    try:
        for _ in range(600):
            try:
                with urllib.request.urlopen(f"http://127.0.0.1:{port}/health/ready"):
                    break
            except OSError:
                if process.poll() is not None:
                    raise
                time.sleep(0.1)
        yield Service(process, port)
    finally:
        process.terminate()
        process.wait()


def throughput(ours: Service, peer: Service, seconds: float, rounds: int) -> Iterator[Result]:
    """Requests per second at concurrency 8, float32, each service in turn."""
    for name, size in SIZES.items():
        requests = [load.request("/preprocess", jpeg(*size, seed)) for seed in range(4)]
        rates: dict[int, list[float]] = {ours.port: [], peer.port: []}
        for _ in range(rounds):
            for service in (ours, peer):
                measured = load.run(service.port, requests, CONCURRENCY, seconds)
                rates[service.port].append(measured.per_second)
        ratios = [a / b for a, b in zip(rates[ours.port], rates[peer.port], strict=True)]
        yield Result(
            f"{name} JPEG, float32, concurrency {CONCURRENCY}: the obvious service",
            statistics.median(rates[ours.port]),
            statistics.median(rates[peer.port]),
            "requests/s",
            statistics.median(ratios),
            gate=9,
            aim=15,
        )


def cpu_of_a_picture(ours: Service, seconds: float, rounds: int) -> Result:
    """CPU of one 1280x720 JPEG as uint8, against bare decoding by the faster decoder."""
    height, width = SIZES["1280x720"]
    pictures = [jpeg(height, width, seed) for seed in range(4)]
    requests = [load.request("/preprocess?dtype=uint8", data) for data in pictures]
    service_ms, decode_ms = [], []
    for _ in range(rounds):
        begun_s = ours.cpu_s()
        measured = load.run(ours.port, requests, CONCURRENCY, seconds)
        service_ms.append((ours.cpu_s() - begun_s) * 1e3 / measured.requests)
        decode_ms.append(_bare_decode_ms(pictures, height, width))
    ratios = [a / b for a, b in zip(service_ms, decode_ms, strict=True)]
    return Result(
        "CPU of a 1280x720 JPEG, uint8: bare decode",
        statistics.median(service_ms),
        statistics.median(decode_ms),
        "ms",
        statistics.median(ratios),
        gate=1.7,
        aim=1.35,
        inverse=True,
    )


def _bare_decode_ms(pictures: list[bytes], height: int, width: int) -> float:
    """The faster of simplejpeg and Pillow, CPU milliseconds a picture, into touched memory."""
    buffer = np.zeros((height, width, 4), np.uint8)

    def simple(data: bytes) -> None:
        decode_jpeg(data, "RGBX", buffer=buffer)

    def pillow(data: bytes) -> None:
        Image.open(io.BytesIO(data)).load()

    best = []
    for decode in (simple, pillow):
        times = []
        for number in range(40):
            begun_s = time.thread_time()
            decode(pictures[number % len(pictures)])
            times.append((time.thread_time() - begun_s) * 1e3)
        best.append(statistics.median(times))
    return min(best)


def cpu_of_sending(seconds: float, rounds: int) -> Result:
    """CPU seconds per GB of answers: a service that does nothing but send one, 38 MiB."""
    with started(lambda port: ["benchmarks.sender", str(port)]) as sender:
        requests = [load.request("/preprocess", b"x")]
        spent = []
        for _ in range(rounds):
            begun_s = sender.cpu_s()
            measured = load.run(sender.port, requests, 1, seconds)
            spent.append((sender.cpu_s() - begun_s) / (measured.answer_bytes / 1e9))
    median = statistics.median(spent)
    return Result(
        "CPU of sending an answer", median, 1.0, "s/GB", median, gate=0.4, aim=0.25, inverse=True
    )


def run(seconds: float, rounds: int) -> list[Result]:
    results = []
    with ExitStack() as stack:
        ours = stack.enter_context(started(lambda port: ["service", "serve", "--port", str(port)]))
        peer = stack.enter_context(started(lambda port: ["benchmarks.obvious", str(port)]))
        for service in (ours, peer):
            warm = [load.request("/preprocess", jpeg(*size, 1)) for size in SIZES.values()]
            load.run(service.port, warm, 2, 1.0)
        for result in throughput(ours, peer, seconds, rounds):
            results.append(shown(result))
        results.append(shown(cpu_of_a_picture(ours, seconds, rounds)))
    results.append(shown(cpu_of_sending(seconds, rounds)))
    return results


def rates(seconds: float) -> dict[str, dict[int, float]]:
    """Requests per second of ours by concurrency, for the kinds of the headline sizes."""
    found: dict[str, dict[int, float]] = {}
    with started(lambda port: ["service", "serve", "--port", str(port)]) as ours:
        for name, size in SIZES.items():
            for dtype in ("uint8", "float32"):
                path = f"/preprocess?dtype={dtype}"
                requests = [load.request(path, jpeg(*size, seed)) for seed in range(4)]
                found[f"{name} {dtype}"] = {
                    many: load.run(ours.port, requests, many, seconds).per_second
                    for many in (1, 2, 4, 8, 16)
                }
    return found


def shown(result: Result) -> Result:
    print(
        f"{result.name:66} {result.ours:9.2f} {result.peer:9.2f} {result.unit:10}"
        f" {result.ratio:7.2f}  {result.gate:g} {result.aim:g} {result.verdict()}",
        flush=True,
    )
    return result


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--seconds", type=float, default=3)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    results: list[dict[str, Any]] = [asdict(each) for each in run(options.seconds, options.rounds)]
    if options.json:
        options.json.write_text(json.dumps(results, indent=2) + "\n")


if __name__ == "__main__":
    main()
