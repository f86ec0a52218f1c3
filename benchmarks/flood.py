"""Honest requests amid a hostile flood: how much longer do they take?

    python -m benchmarks.flood [--seconds 10] [--rate 200]

One honest client sends 1280x720 JPEGs, one after the other, while hostile files
(the rows of tests/hostile) arrive at a rate; quiet and flooded stretches take turns.
"""

import argparse
import socket
import statistics
import threading
import time
from collections.abc import Sequence

from benchmarks import load
from benchmarks.pictures import jpeg
from benchmarks.service import started
from tests.hostile.rows import rows

ROUNDS = 5
FLOODERS = 4


def honest_ms(port: int, seconds: float) -> load.Load:
    requests = [load.request("/preprocess?dtype=uint8", jpeg(720, 1280, seed)) for seed in range(4)]
    return load.run(port, requests, 1, seconds)


def flood(
    port: int, requests: Sequence[bytes], rate: float, stop: threading.Event, sent: list[int]
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
    sent.append(count)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--seconds", type=float, default=8)
    parser.add_argument("--rate", type=float, default=100, help="hostile files a second")
    options = parser.parse_args()
    hostile = [load.request("/preprocess", row.data) for row in rows()]
    ratios, told = [], []
    with started(lambda port: ["service", "serve", "--port", str(port)]) as service:
        honest_ms(service.port, 2)
        for _ in range(ROUNDS):
            quiet = honest_ms(service.port, options.seconds)
            stop, sent = threading.Event(), list[int]()
            share = options.rate / FLOODERS
            threads = [
                threading.Thread(target=flood, args=(service.port, hostile, share, stop, sent))
                for _ in range(FLOODERS)
            ]
            for thread in threads:
                thread.start()
            flooded = honest_ms(service.port, options.seconds)
            stop.set()
            for thread in threads:
                thread.join()
            ratios.append(flooded.quantile_ms(0.99) / quiet.quantile_ms(0.99))
            told.append((quiet.quantile_ms(0.99), flooded.quantile_ms(0.99), sum(sent)))
    for quiet_ms, flooded_ms, count in told:
        rate = count / options.seconds
        print(f"p99 {quiet_ms:6.1f} ms quiet, {flooded_ms:6.1f} amid {rate:4.0f} hostile a second")
    print(f"median ratio {statistics.median(ratios):.2f}")


if __name__ == "__main__":
    main()
