"""What a run must be to pass: each gate by itself, and the limits that are shipped."""

from dataclasses import replace
from pathlib import Path

import pytest

from traffic import gates, report, shapes
from traffic.gates import Check, Limits, Measured
from traffic.kinds import Kind

GATES = Path(__file__).parents[2] / "loadtest/gates.toml"
GOOD = Measured(
    due=100,
    on_time=100,
    answered=100,
    failed=0,
    shed=0,
    compared=10,
    unequal=0,
    p50_ms=10,
    p99_ms=50,
)
LIMITS = Limits(failed=0.0, refused=0.1, arrivals=0.98, latency_ms={"single": (20, 100)})
ASKED = 100.0

FAULTS = [
    (replace(GOOD, due=97, on_time=97), "due, of what the shape asks"),
    (replace(GOOD, on_time=97), "begun in time, of what was due"),
    (replace(GOOD, answered=97), "ended, of what was due"),
    (replace(GOOD, answered=99, failed=1), "failed"),
    (replace(GOOD, answered=80, shed=20), "refused (429)"),
    (replace(GOOD, compared=0), "answers compared byte by byte"),
    (replace(GOOD, unequal=1), "of them unequal"),
    (replace(GOOD, p50_ms=21), "single: p50, ms"),
    (replace(GOOD, p99_ms=101), "single: p99, ms"),
]


def missed(found: Measured) -> list[str]:
    told = gates.checks(ASKED, {Kind.SINGLE: found}, LIMITS)
    return [check.name for check in told if not check.holds]


def test_a_good_run_passes() -> None:
    assert missed(GOOD) == []


@pytest.mark.parametrize(("found", "gate"), FAULTS, ids=lambda each: str(each)[:30])
def test_one_fault_is_missed_by_the_one_gate_that_it_belongs_to(found: Measured, gate: str) -> None:
    assert missed(found) == [gate]


def test_shed_load_is_no_failure() -> None:
    assert missed(replace(GOOD, answered=90, shed=10)) == []


def test_a_run_that_measured_nothing_does_not_pass() -> None:
    nothing = Measured(0, 0, 0, 0, 0, 0, 0, 0, 0)
    assert {"single: answered", "begun in time, of what was due"} <= set(missed(nothing))


@pytest.mark.parametrize(
    ("actual", "bound", "holds"),
    [(1, "≤", True), (1.1, "≤", False), (1, "≥", True), (0.9, "≥", False)],
)
def test_a_limit_itself_is_allowed(actual: float, bound: str, holds: bool) -> None:  # noqa: FBT001
    assert Check("x", actual, bound, 1.0).holds is holds


def test_every_shape_has_limits_for_every_kind() -> None:
    limits = gates.read(GATES)
    assert limits.keys() == shapes.SHAPES.keys()
    for each in limits.values():
        assert each.latency_ms.keys() == set(Kind)
        assert each.arrivals >= 0.98
        assert each.failed == 0


def test_a_report_names_what_was_missed() -> None:
    found = {Kind.SINGLE: replace(GOOD, p99_ms=101)}
    told = gates.checks(ASKED, found, LIMITS)
    text = report.markdown(report.Report("steady", 16, 60, ASKED, found, told))
    assert text.startswith("# steady, 16 requests/s, 60 s: MISSED: single: p99, ms\n")
    assert "| single: p99, ms | 101 | ≤ 100 | MISSED |" in text
