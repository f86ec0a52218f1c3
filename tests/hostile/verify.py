"""The table by the clock, and thousands of mutated files, against a real service.

    python -m tests.hostile.verify [--mutations 10000]

Prints each row's milliseconds from the last byte to the answer (the best of three) and
the memory it took, then what the mutated files came to. Exit code 1 when a refusal that
the header decides took over 50 ms or twice its body; when damage that only the decoder
finds took more than decoding may; when anything was a 500, or when the worker is not the
one that it was.
"""

import argparse
import random
import sys
import time
from collections import Counter

from tests.codec.test_mutations import SEEDS, mutated
from tests.hostile.memory import RETURNED_AT_ONCE, peak_growth_bytes
from tests.hostile.rows import Row, When, rows
from tests.hostile.test_files import SLACK_BYTES
from tests.load.connection import connected
from tests.service.running import Running, running

HEADER_MS = 50.0
DATA_MS, DATA_BYTES = 100.0, 32 * 2**20
"""For what decoding costs at most in these rows: their pictures are small, and the sixteen
texts of a PNG that are inflated take a megabyte and 2 ms each."""
TRIES = 3


def timed_ms(service: Running, row: Row) -> float:
    """From the last byte sent to the whole answer."""
    with connected(service) as connection:
        connection.head(f"Content-Length: {len(row.data)}").send(row.data[:-1])
        begun_s = time.perf_counter()
        connection.send(row.data[-1:])
        code = connection.refusal()[1]
        spent_ms = (time.perf_counter() - begun_s) * 1e3
    assert code == row.code
    return spent_ms


def table(service: Running, generous: Running) -> bool:
    """Time as it is; memory in a service that gives it back at once, which takes time."""
    [worker] = generous.worker_pids()
    sound = True
    for row in rows():
        best_ms = min(timed_ms(service, row) for _ in range(TRIES))
        grown = peak_growth_bytes(worker, lambda row=row: generous.post(row.data))
        may_ms, may_bytes = (HEADER_MS, 0) if row.when is When.HEADER else (DATA_MS, DATA_BYTES)
        held = best_ms <= may_ms and grown <= 2 * len(row.data) + SLACK_BYTES + may_bytes
        sound &= held
        verdict = "" if held else "  OVER"
        print(
            f"{row.name:44} {len(row.data):9} B  {row.when:6} {row.status} {row.code:24}"
            f" {best_ms:8.2f} ms  {grown / 2**20:6.1f} MiB{verdict}"
        )
    return sound


def mutations(service: Running, count: int) -> bool:
    """Files of all formats with a few bytes changed, one after the other."""
    workers = service.worker_pids()
    source = random.Random(1)
    formats = list(SEEDS)
    seen: Counter[str] = Counter()
    slowest_ms = 0.0
    for number in range(count):
        data = mutated(source.choice(SEEDS[formats[number % len(formats)]]), source)
        begun_s = time.perf_counter()
        answer = service.post(data, params={"dtype": "uint8"})
        slowest_ms = max(slowest_ms, (time.perf_counter() - begun_s) * 1e3)
        told = (
            "200" if answer.status_code == 200 else f"{answer.status_code} {answer.json()['code']}"
        )
        seen[told] += 1
    print(f"{count} mutated files, slowest {slowest_ms:.0f} ms: {dict(seen.most_common())}")
    return service.worker_pids() == workers and not any(told[0] == "5" for told in seen)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--mutations", type=int, default=1000)
    options = parser.parse_args()
    with running() as service, running(RETURNED_AT_ONCE) as generous:
        sound = table(service, generous) & mutations(service, options.mutations)
        return 0 if sound and "Traceback" not in "".join(service.log) else 1


if __name__ == "__main__":
    sys.exit(main())
