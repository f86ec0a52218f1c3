"""Honest requests amid a hostile flood: how much longer do they take?

    python -m benchmarks.flood [--seconds 8] [--rate 100] [--largest 5000000]

One honest client sends 1280x720 JPEGs, one after the other, while hostile files (the rows
of tests/hostile, up to a length) arrive at a rate; quiet and flooded stretches take turns.
The flood comes from a process of its own: the client never waits for its interpreter.
"""

import argparse
import multiprocessing
import socket
import statistics
import threading
import time
from collections.abc import Sequence
from multiprocessing.queues import Queue
from multiprocessing.synchronize import Event

from benchmarks import load
from benchmarks.pictures import jpeg
from benchmarks.service import started
from tests.hostile.rows import rows

ROUNDS = 5
FLOODERS = 4
BEGIN_S = 2.0
"""For the flood to make its files and to begin."""


def honest_ms(port: int, seconds: float) -> load.Load:
    requests = [load.request("/preprocess?dtype=uint8", jpeg(720, 1280, seed)) for seed in range(4)]
    return load.run(port, requests, 1, seconds)


def flood(port: int, rate: float, largest: int, stop: Event, sent: "Queue[int]") -> None:
    """All of the rate, until told to stop; puts how many were sent."""
    hostile = [load.request("/preprocess", row.data) for row in rows() if len(row.data) <= largest]
    counts: list[int] = []
    threads = [
        threading.Thread(target=_send, args=(port, hostile, rate / FLOODERS, stop, counts))
        for _ in range(FLOODERS)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    sent.put(sum(counts))


def _send(
    port: int, requests: Sequence[bytes], rate: float, stop: Event, counts: list[int]
) -> None:
    """A share of the rate from one connection; what is answered is not looked at."""
    begun_s, count = time.monotonic(), 0
    connection = socket.create_connection(("127.0.0.1", port))
    while not stop.is_set():
        if count > (time.monotonic() - begun_s) * rate:
            time.sleep(0.001)
            continue
        try:
            connection.sendall(requests[count % len(requests)])
            connection.recv(1 << 16)
        except OSError:
            connection.close()
            connection = socket.create_connection(("127.0.0.1", port))
        count += 1
    connection.close()
    counts.append(count)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--seconds", type=float, default=8)
    parser.add_argument("--rate", type=float, default=100, help="hostile files a second")
    parser.add_argument("--largest", type=int, default=5_000_000, help="bytes of a hostile file")
    options = parser.parse_args()
    processes = multiprocessing.get_context("spawn")
    ratios, told = [], []
    with started(lambda port: ["service", "serve", "--port", str(port)]) as service:
        honest_ms(service.port, 2)
        for _ in range(ROUNDS):
            quiet = honest_ms(service.port, options.seconds)
            stop, sent = processes.Event(), processes.Queue()
            flooding = processes.Process(
                target=flood, args=(service.port, options.rate, options.largest, stop, sent)
            )
            flooding.start()
            time.sleep(BEGIN_S)
            flooded = honest_ms(service.port, options.seconds)
            stop.set()
            count = sent.get()
            flooding.join()
            ratios.append(flooded.quantile_ms(0.99) / quiet.quantile_ms(0.99))
            told.append((quiet.quantile_ms(0.99), flooded.quantile_ms(0.99), count))
    for quiet_ms, flooded_ms, count in told:
        rate = count / (options.seconds + BEGIN_S)
        print(f"p99 {quiet_ms:6.1f} ms quiet, {flooded_ms:6.1f} amid {rate:4.0f} hostile a second")
    print(f"median ratio {statistics.median(ratios):.2f}")


if __name__ == "__main__":
    main()
