"""The headline's verdict: by quiet rounds where there are some, by all where there are none."""

from dataclasses import replace

import pytest

from traffic import headline
from traffic.headline import Headline, Round

QUIET = Round(
    asked_per_s=60.0,
    requests_per_s=59.9,
    pictures_per_cpu_s=217.0,
    p50_ms=27.0,
    p99_ms=100.0,
    service_cores=1.1,
    generator_cores=0.1,
    other_cores=0.0,
)
DISTURBED = replace(QUIET, requests_per_s=50.0, p99_ms=2500.0, other_cores=1.0)


def missed(*rounds: Round) -> list[str]:
    found = Headline(87.0, 4, rounds, 600.0, 640.0)
    told = headline.checks(found)
    text = headline.markdown(found, told)
    names = [check.name for check in told if not check.holds]
    assert ("PASSED" in text) is (not names)
    return names


def test_a_disturbed_round_is_not_judged_beside_a_quiet_one() -> None:
    assert missed(DISTURBED, QUIET, DISTURBED) == []


def test_without_a_quiet_round_all_are_judged() -> None:
    assert missed(DISTURBED, DISTURBED) == ["p99, ms", "arrival rate, of what was asked"]


@pytest.mark.parametrize(
    ("found", "gate"),
    [
        (replace(QUIET, pictures_per_cpu_s=69.0), "pictures per CPU second"),
        (replace(QUIET, p99_ms=251.0), "p99, ms"),
        (replace(QUIET, requests_per_s=58.0), "arrival rate, of what was asked"),
    ],
)
def test_each_gate_is_missed_by_its_fault(found: Round, gate: str) -> None:
    assert missed(found) == [gate]


def test_the_published_rate_is_told_in_cores() -> None:
    assert Headline(87.0, 4, (QUIET,), 600.0, 640.0).cores_for_published == 140 / 217
