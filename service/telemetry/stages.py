"""Where a request's time goes: one stopwatch that is never stopped between stages."""

from time import perf_counter
from typing import NamedTuple

STAGES = ("receive", "queue", "plan", "decode", "patchify", "pack", "send")
"""All there are, in the order of a request's life."""


class Lap(NamedTuple):
    """A stretch of one stage on one thread, in seconds of `perf_counter`."""

    stage: str
    begin_s: float
    end_s: float


class Stages:
    """Time by stage; each lap charges the time since the last one to a stage.

    Handed from the event loop to a worker thread and back, never shared by two
    at once.
    """

    def __init__(self) -> None:
        self._mark_s = perf_counter()
        self.laps: list[Lap] = []

    def lap(self, stage: str) -> None:
        now_s = perf_counter()
        self.laps.append(Lap(stage, self._mark_s, now_s))
        self._mark_s = now_s

    def skip(self) -> None:
        """Charge the time since the last lap to nobody: others have told it by `add`."""
        self._mark_s = perf_counter()

    def add(self, other: "Stages") -> None:
        """Charge what another stopwatch spent; of several threads, the sum."""
        self.laps += other.laps

    def spent_s(self) -> dict[str, float]:
        """Stage -> seconds, of those that there were, in the order of `STAGES`."""
        spent: dict[str, float] = {}
        for stage, begin_s, end_s in self.laps:
            spent[stage] = spent.get(stage, 0.0) + (end_s - begin_s)
        return {stage: spent[stage] for stage in STAGES if stage in spent}

    def rounded_ms(self) -> dict[str, float]:
        """Stage -> milliseconds, to the microsecond, in the same order."""
        return {stage: round(spent * 1e3, 3) for stage, spent in self.spent_s().items()}
