"""The stopwatch: nothing between two laps is lost, and threads are summed."""

from service.telemetry.stages import Lap, Stages


def test_laps_follow_each_other_without_a_gap() -> None:
    stages = Stages()
    for stage in ("receive", "queue", "receive"):
        stages.lap(stage)
    first, second, third = stages.laps
    assert first.end_s == second.begin_s
    assert second.end_s == third.begin_s
    assert list(stages.spent_s()) == ["receive", "queue"]


def test_what_threads_spent_is_summed() -> None:
    whole, other = Stages(), Stages()
    whole.laps.append(Lap("decode", 0.0, 1.0))
    other.laps += [Lap("decode", 0.5, 1.0), Lap("patchify", 1.0, 1.125)]
    whole.add(other)
    assert whole.rounded_ms() == {"decode": 1500.0, "patchify": 125.0}
