"""Counts that locust does not keep: what was asked, in time, shed, compared. By kind.

Each process counts its own; workers send theirs as a plain map, the master adds them up.
"""

from collections import Counter, defaultdict
from collections.abc import Mapping
from enum import StrEnum

from traffic.kinds import Kind


class Count(StrEnum):
    """What is counted."""

    DUE = "due"
    """Requests whose time came."""
    ON_TIME = "on_time"
    """Those of them that began in time."""
    SHED = "shed"
    """Answers of 429."""
    COMPARED = "compared"
    """Answers whose bytes were compared."""
    UNEQUAL = "unequal"
    """Those of them that differed."""


class Tally:
    """Counts of one process, or of several together."""

    def __init__(self) -> None:
        self._counts: defaultdict[str, Counter[str]] = defaultdict(Counter)

    def add(self, kind: Kind, what: Count) -> None:
        self._counts[kind][what] += 1

    def of(self, kind: Kind, what: Count) -> int:
        return self._counts[kind][what]

    def taken(self) -> dict[str, dict[str, int]]:
        """All counts as a plain map, and zero from here on: what a worker reports."""
        told = {kind: dict(counts) for kind, counts in self._counts.items()}
        self._counts.clear()
        return told

    def merge(self, told: Mapping[str, Mapping[str, int]]) -> None:
        """Add what `taken` gave elsewhere."""
        for kind, counts in told.items():
            self._counts[kind].update(counts)
