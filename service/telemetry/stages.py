"""Where a request's time goes: one stopwatch that is never stopped between stages."""

from time import perf_counter


class Stages:
    """Milliseconds by stage; each lap charges the time since the last one to a stage.

    Handed from the event loop to a worker thread and back, never shared by two
    at once.
    """

    def __init__(self) -> None:
        self._mark_s = perf_counter()
        self._spent_ms: dict[str, float] = {}

    def lap(self, stage: str) -> None:
        now_s = perf_counter()
        self._spent_ms[stage] = self._spent_ms.get(stage, 0.0) + (now_s - self._mark_s) * 1e3
        self._mark_s = now_s

    def skip(self) -> None:
        """Charge the time since the last lap to nobody: others have told it by `add`."""
        self._mark_s = perf_counter()

    def add(self, other: "Stages") -> None:
        """Charge what another stopwatch spent; of several threads, the sum."""
        for stage, spent in other._spent_ms.items():
            self._spent_ms[stage] = self._spent_ms.get(stage, 0.0) + spent

    def rounded_ms(self) -> dict[str, float]:
        """Stage -> milliseconds, to the microsecond, in order of first entry."""
        return {stage: round(spent, 3) for stage, spent in self._spent_ms.items()}
