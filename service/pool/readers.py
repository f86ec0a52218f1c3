"""Clients that are still taking their answers, and which of them give way to others.

An answer keeps its share of the budget until the client has all of it, and the
write deadline ends what is not taken in time. But two readers that take a byte a
second could hold the whole budget for all of that time. So while somebody waits
for a share, whoever will not be done by the deadline at its present pace is cut
off at once. All calls come from the event loop.
"""

import time
from collections.abc import Callable

PATIENCE_S = 2.0
"""No reader is called slow before."""


class Readers:
    """`deadline_s` is what an answer may take; `clock` is in seconds and never goes back."""

    def __init__(self, deadline_s: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._deadline_s = deadline_s
        self._clock = clock
        self._readers: set[Reader] = set()

    def begin(self, left_bytes: Callable[[], int], cut: Callable[[], None]) -> "Reader":
        """A client has begun to take what `left_bytes` counts; `cut` ends its connection."""
        reader = Reader(left_bytes, cut, self._clock())
        self._readers.add(reader)
        return reader

    def end(self, reader: "Reader") -> None:
        self._readers.discard(reader)

    def give_way(self) -> None:
        """Cut off those that will not be done in time."""
        now_s = self._clock()
        for reader in [each for each in self._readers if self._is_hopeless(each, now_s)]:
            self._readers.discard(reader)
            reader.cut()

    def _is_hopeless(self, reader: "Reader", now_s: float) -> bool:
        age_s = now_s - reader.begun_s
        taken = reader.bytes - reader.left_bytes()
        return age_s >= PATIENCE_S and taken * self._deadline_s < reader.bytes * age_s


class Reader:
    """One client, and how much it had to take in bytes when it began."""

    def __init__(
        self, left_bytes: Callable[[], int], cut: Callable[[], None], begun_s: float
    ) -> None:
        self.left_bytes = left_bytes
        self.cut = cut
        self.begun_s = begun_s
        self.bytes = left_bytes()
