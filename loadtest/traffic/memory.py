"""Memory of a service while it is under load: its whole tree of processes, from /proc.

Resident pages that processes share are counted in each (RSS) or in parts (PSS); the sum of
PSS is what the machine gives for the service.
"""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from benchmarks.service import Service

EVERY_S = 1.0


@contextmanager
def watched(service: Service) -> Iterator[list[float]]:
    """A list that grows by the service's PSS in MiB, once a second until the block ends."""
    samples = [pss_mib(service)]
    stop = threading.Event()

    def watch() -> None:
        while not stop.wait(EVERY_S):
            samples.append(pss_mib(service))

    thread = threading.Thread(target=watch)
    thread.start()
    try:
        yield samples
    finally:
        stop.set()
        thread.join()


def pss_mib(service: Service) -> float:
    return _rolled_up_mib(service, "Pss:")


def rss_mib(service: Service) -> float:
    return _rolled_up_mib(service, "Rss:")


def _rolled_up_mib(service: Service, field: str) -> float:
    lines = [
        line.split()
        for pid in service.pids()
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    ]
    return sum(int(line[1]) for line in lines if line[0] == field) / 1024
