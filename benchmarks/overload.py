"""Ten times what the service can do, for a minute: does it stay quick, small and useful?

    python -m benchmarks.overload [--seconds 60] [--times 10] [--json FILE]

The generator is open: a request comes when its time has come, whatever became
of those before it. It runs on the same cores, in a process of its own, and so
does one that probes ten times a second. First the sustainable load is found
with a closed loop, then the flood comes, then the closed loop again.
"""

import argparse
import asyncio
import json
import os
import socket
import statistics
import subprocess
import sys
import threading
import time
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

import uvloop

from benchmarks import load
from benchmarks.pictures import jpeg
from benchmarks.service import Service, started

CONCURRENCY = 8
PROBES_PER_S = 10
SIZE = (720, 1280)
PATH = "/preprocess?dtype=uint8"


class Sender(asyncio.BufferedProtocol):
    """One connection of the flood: a request, its answer's status, and free again."""

    buffer = bytearray(1 << 20)

    def __init__(self, flood: "Flood") -> None:
        self._flood = flood
        self._left = 0
        self._head = b""
        self._closing = False

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        self.transport = transport

    def ask(self, request: bytes) -> None:
        self._begun_s = time.perf_counter()
        self._head, self._left, self._status = b"", 0, 0
        if self._flood.waits:  # for 100 Continue, before it sends the body
            head, _, self._body = request.partition(b"\r\n\r\n")
            self.transport.write(head + b"\r\nExpect: 100-continue\r\n\r\n")
        else:
            self.transport.write(request)

    def get_buffer(self, _: int) -> bytearray:
        return self.buffer

    def buffer_updated(self, length: int) -> None:
        if self._left:
            self._left -= length
        else:
            self._head += self.buffer[:length]
            head, end, rest = self._head.partition(b"\r\n\r\n")
            if not end:
                return
            fields = head.lower()
            if fields.startswith(b"http/1.1 100"):
                self._head = rest
                self.transport.write(self._body)
                return
            self._status = int(fields[9:12])
            self._closing = b"\r\nconnection: close" in fields
            told = fields.partition(b"content-length: ")[2].partition(b"\r\n")[0]
            self._left = int(told) - len(rest)
        if self._left == 0:
            self._flood.answered(self._status, time.perf_counter() - self._begun_s)
            if self._closing:
                self.transport.close()
            else:
                self._flood.free.append(self)

    def eof_received(self) -> None:
        self.transport.close()

    def connection_lost(self, _: Exception | None) -> None:
        self._flood.lost(self)


class Flood:
    """Requests at a rate, on as many connections as it takes."""

    def __init__(self, port: int, requests: Sequence[bytes], *, waits: bool) -> None:
        self._port = port
        self.waits = waits
        self._requests = requests
        self.free: list[Sender] = []
        self.open = 0
        self.latencies: dict[int, list[float]] = defaultdict(list)
        self.asked = 0
        self.cut = 0

    def answered(self, status: int, seconds: float) -> None:
        self.latencies[status].append(seconds * 1e3)

    def lost(self, sender: Sender) -> None:
        self.open -= 1
        if sender in self.free:
            self.free.remove(sender)

    async def run(self, per_second: float, seconds: float) -> None:
        loop = asyncio.get_running_loop()
        begun_s = time.perf_counter()
        tasks = set()
        while (now_s := time.perf_counter() - begun_s) < seconds:
            while self.asked < now_s * per_second:
                task = loop.create_task(self._ask(self._requests[self.asked % len(self._requests)]))
                tasks.add(task)
                task.add_done_callback(tasks.discard)
                self.asked += 1
            await asyncio.sleep(0.001)
        await asyncio.sleep(2)

    async def _ask(self, request: bytes) -> None:
        if self.free:
            sender = self.free.pop()
        else:
            self.open += 1
            try:
                _, sender = await asyncio.get_running_loop().create_connection(
                    lambda: Sender(self), "127.0.0.1", self._port
                )
            except OSError:
                self.open -= 1
                self.cut += 1
                return
        if sender.transport.is_closing():
            self.cut += 1
        else:
            sender.ask(request)


def flood(port: int, per_second: float, seconds: float, *, waits: bool) -> dict[str, object]:
    """Run in a process of its own: what came of it, by status."""
    requests = [load.request(PATH, jpeg(*SIZE, seed)) for seed in range(4)]
    found = Flood(port, requests, waits=waits)
    uvloop.run(found.run(per_second, seconds))
    return {
        "asked": found.asked,
        "cut": found.cut,
        "latencies_ms": {str(status): sorted(each) for status, each in found.latencies.items()},
    }


def probe(port: int, stop: threading.Event, latencies_ms: list[float]) -> None:
    request = b"GET /health/ready HTTP/1.1\r\nHost: here\r\n\r\n"
    with socket.create_connection(("127.0.0.1", port)) as connection:
        while not stop.wait(1 / PROBES_PER_S):
            begun_s = time.perf_counter()
            connection.sendall(request)
            answer = b""
            while b"ready" not in answer and b"draining" not in answer:
                answer += connection.recv(4096)
            latencies_ms.append((time.perf_counter() - begun_s) * 1e3)


def resident_bytes(service: Service) -> int:
    pid = service.process.pid
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    pages = [int(Path(f"/proc/{each}/statm").read_text().split()[1]) for each in children]
    return sum(pages) * os.sysconf("SC_PAGE_SIZE")


def quantile(ordered: Sequence[float], share: float) -> float:
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))] if ordered else 0.0


def child(mode: str, port: int, *args: float) -> "subprocess.Popen[str]":
    command = [sys.executable, "-m", "benchmarks.overload", mode, str(port), *map(str, args)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def measured(service: Service, times: float, seconds: float, *, waits: bool) -> dict[str, object]:
    requests = [load.request(PATH, jpeg(*SIZE, seed)) for seed in range(4)]

    def best() -> float:
        rates = [load.run(service.port, requests, CONCURRENCY, 3).per_second for _ in range(3)]
        return statistics.median(rates)

    load.run(service.port, requests, 2, 2)
    before = best()
    probing = child("probe", service.port, seconds)
    flooding = child("flood", service.port, before * times, seconds, waits)
    peak_bytes = 0
    while flooding.poll() is None and probing.poll() is None:
        peak_bytes = max(peak_bytes, resident_bytes(service))
        time.sleep(0.25)
    told = json.loads(flooding.communicate()[0])
    probes = sorted(json.loads(probing.communicate()[0]))
    after = best()
    by_status = told["latencies_ms"]
    refused = by_status.get("429", [])
    return {
        "sustainable_per_s": before,
        "asked_per_s": told["asked"] / seconds,
        "useful_share": len(by_status.get("200", [])) / seconds / before,
        "after_share": after / before,
        "answers": {status: len(each) for status, each in by_status.items()},
        "cut": told["cut"],
        "refusal_p50_ms": quantile(refused, 0.5),
        "refusal_p99_ms": quantile(refused, 0.99),
        "answer_p99_ms": quantile(by_status.get("200", []), 0.99),
        "probe_p50_ms": quantile(probes, 0.5),
        "probe_p99_ms": quantile(probes, 0.99),
        "peak_resident_mib": peak_bytes / 2**20,
    }


def main() -> None:
    if sys.argv[1:2] == ["flood"]:
        port, per_second, seconds, waits = sys.argv[2:]
        told = flood(int(port), float(per_second), float(seconds), waits=waits == "True")
        print(json.dumps(told))
        return
    if sys.argv[1:2] == ["probe"]:
        latencies: list[float] = []
        stop = threading.Event()
        threading.Timer(float(sys.argv[3]), stop.set).start()
        probe(int(sys.argv[2]), stop, latencies)
        print(json.dumps(latencies))
        return
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--times", type=float, default=10)
    parser.add_argument("--expect", action="store_true", help="send bodies after 100 Continue")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    with started(lambda port: ["service", "serve", "--port", str(port)]) as service:
        found = measured(service, options.times, options.seconds, waits=options.expect)
    for name, value in found.items():
        print(f"{name:20} {value if not isinstance(value, float) else round(value, 2)}")
    if options.json:
        options.json.write_text(json.dumps(found, indent=2) + "\n")


if __name__ == "__main__":
    main()
