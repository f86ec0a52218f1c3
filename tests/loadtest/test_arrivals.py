"""When requests come: at the rate that was asked for, by chance, and by the shape."""

import itertools
import random
import statistics

import pytest
from hypothesis import given
from hypothesis import strategies as st

from traffic import arrivals, headline, shapes

SECONDS = 80.0


def schedule(seed: int) -> list[float]:
    """One user's requests within the time, in seconds."""
    mine = arrivals.Arrivals(0.0, random.Random(seed))
    due = [mine.due_s]
    while (next_s := mine.advance()) < SECONDS:
        due.append(next_s)
    return due


@given(st.integers(0, 2**32))
def test_a_user_has_one_request_in_each_period(seed: int) -> None:
    periods = [int(due_s // arrivals.PERIOD_S) for due_s in schedule(seed)]
    assert periods == list(range(int(SECONDS / arrivals.PERIOD_S)))


@given(st.floats(0.1, 500))
def test_users_ask_at_the_rate_that_was_asked_for(rate: float) -> None:
    per_s = arrivals.users(rate) / arrivals.PERIOD_S
    assert rate <= per_s <= rate + 1 / arrivals.PERIOD_S + 1e-9


def test_many_users_come_as_bunched_as_chance_makes_it() -> None:
    due = sorted(itertools.chain.from_iterable(schedule(seed) for seed in range(300)))
    gaps = [after - before for before, after in itertools.pairwise(due)]
    # Of independent arrivals the gaps' deviation is their mean; of even ones it is 0.
    assert statistics.stdev(gaps) / statistics.mean(gaps) == pytest.approx(1, abs=0.1)


@pytest.mark.parametrize(
    ("name", "at", "share"),
    [
        ("steady", 0.0, 1.0),
        ("steady", 0.9, 1.0),
        ("soak", 0.5, 1.0),
        ("ramp", 0.0, 0.25),
        ("ramp", 0.5, shapes.OVERLOAD),
        ("ramp", 1.0, 0.25),
        ("spike", 0.4, 1.0),
        ("spike", 0.5, shapes.OVERLOAD),
        ("spike", 0.6, 1.0),
    ],
)
def test_a_shape_asks_for_its_share_at_a_moment(name: str, at: float, share: float) -> None:
    assert shapes.SHAPES[name](at) == pytest.approx(share)


@pytest.mark.parametrize(
    ("name", "mean_share"),
    [("steady", 1.0), ("ramp", (0.25 + shapes.OVERLOAD) / 2), ("spike", (5 + shapes.OVERLOAD) / 6)],
)
def test_a_shape_s_arrivals_are_its_integral(name: str, mean_share: float) -> None:
    asked = shapes.arrivals(shapes.SHAPES[name], 10, 60)
    assert asked == pytest.approx(mean_share * 600, rel=0.01)


def test_every_shape_has_a_length() -> None:
    assert shapes.DEFAULT_SECONDS.keys() == shapes.SHAPES.keys()


@given(st.floats(1, 100), st.integers(0, 1000))
def test_the_headline_s_arrivals_are_as_many_as_asked_for_and_in_order(
    rate: float, seed: int
) -> None:
    due = headline.poisson(rate, 20, seed)
    assert len(due) == round(rate * 20)
    assert due == sorted(due)
    assert due[0] >= 0
    assert due[-1] < 20
