"""Dynamic resolution: the reference's table, row by row, and what holds for any request."""

import csv
from itertools import groupby

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.errors import UnplannableSize
from service.plan import dynamic, profiles
from service.types import OF_THE_PROFILE, Budget, Plan, Size
from tests.golden_data import GOLDEN

PROFILE = profiles.load([profiles.BUILT_IN], "kimi-k2.5").find("nemotron-nano-vl")
PARAMETERS = ("max_model_len", "text_len", "min_num_patches", "max_num_patches")
CRASHES = "reference_divides_by_zero"

with (GOLDEN / "nemotron" / "plan.csv").open() as table:
    CASES = [list(rows) for _, rows in groupby(csv.DictReader(table), lambda row: row["case"])]

sides = st.integers(16, 20_000)
pictures = st.lists(st.builds(Size, sides, sides), min_size=1, max_size=8)
budgets = st.builds(
    Budget,
    st.integers(1, 200_000),
    st.integers(0, 4000),
    st.integers(1, 3000),
    st.integers(0, 9000),
)


def planned(rows: list[dict[str, str]]) -> list[Plan]:
    sizes = [Size(int(row["height"]), int(row["width"])) for row in rows]
    return dynamic.plan(sizes, PROFILE, Budget(*(int(rows[0][name]) for name in PARAMETERS)))


def plan_or_none(sizes: list[Size], asked: Budget) -> list[Plan]:
    try:
        return dynamic.plan(sizes, PROFILE, asked)
    except UnplannableSize:
        return []


def test_every_row_of_the_reference_table_holds() -> None:
    assert len(CASES) == 400
    for rows in CASES:
        if rows[0]["patches_w"] == CRASHES:
            with pytest.raises(UnplannableSize) as refusal:
                planned(rows)
            assert refusal.value.item in range(len(rows))
            continue
        got = [(plan.grid.w, plan.grid.h, plan.num_tokens) for plan in planned(rows)]
        assert got == [
            (int(row["patches_w"]), int(row["patches_h"]), int(row["tokens"])) for row in rows
        ]


@given(pictures, budgets)
def test_sides_are_whole_tokens_and_never_none(sizes: list[Size], asked: Budget) -> None:
    for plan in plan_or_none(sizes, asked):
        assert plan.grid.h % 2 == plan.grid.w % 2 == 0
        assert min(plan.grid.h, plan.grid.w) >= 2
        assert plan.resized == plan.picture
        assert plan.num_tokens * 4 == plan.grid.patches


@given(pictures, budgets)
def test_what_is_planned_together_fits_the_context_or_is_at_its_minimum(
    sizes: list[Size], asked: Budget
) -> None:
    plans = plan_or_none(sizes, asked)
    assert asked.max_model_len is not None
    assert asked.text_len is not None
    assert asked.min_num_patches is not None
    minimum = asked.min_num_patches
    available = max((asked.max_model_len - asked.text_len - 4) * 4, minimum * len(sizes))
    # Beside the minimum of each picture: what rounding up to whole tokens and growing to the
    # minimum add to a side, two patches on the longer one.
    slack = sum(2 * (plan.grid.h + plan.grid.w) + 4 for plan in plans)
    assert sum(plan.grid.patches for plan in plans) <= available + slack


@given(st.builds(Size, sides, sides), st.integers(64, 10_000))
def test_one_picture_alone_keeps_to_its_maximum(size: Size, maximum: int) -> None:
    asked = Budget(max_model_len=200_000, min_num_patches=1, max_num_patches=maximum)
    for plan in plan_or_none([size], asked):
        assert plan.grid.patches <= max(maximum, 2 * max(plan.grid.h, plan.grid.w))


@given(st.builds(Size, sides, sides), st.integers(64, 10_000), st.integers(0, 5000))
def test_a_larger_maximum_never_makes_a_side_shorter_by_more_than_a_token(
    size: Size, maximum: int, more: int
) -> None:
    asked = [Budget(200_000, 0, 1, most) for most in (maximum, maximum + more)]
    small, large = (plan_or_none([size], each) for each in asked)
    if small and large:
        assert large[0].grid.h >= small[0].grid.h - 2
        assert large[0].grid.w >= small[0].grid.w - 2


@given(pictures, budgets)
def test_equal_pictures_have_equal_plans_in_any_order(sizes: list[Size], asked: Budget) -> None:
    plans = plan_or_none(sizes, asked)
    backwards = plan_or_none(sizes[::-1], asked)
    assert backwards == plans[::-1]


def test_halves_are_rounded_to_even_as_python_does_it() -> None:
    # 32 / 16 + 0.5 is 2.5, which rounds to 2; 48 / 16 + 0.5 is 3.5, which rounds to 4.
    asked = Budget(200_000, 0, 1, 0)
    [plan] = dynamic.plan([Size(32, 48)], PROFILE, asked)
    assert (plan.grid.h, plan.grid.w) == (2, 4)


def test_a_small_picture_grows_to_the_minimum_of_its_profile() -> None:
    [plan] = dynamic.plan([Size(64, 64)], PROFILE, OF_THE_PROFILE)
    assert (plan.grid.h, plan.grid.w, plan.num_tokens) == (32, 32, 256)


def test_the_picture_that_leaves_nothing_is_named() -> None:
    with pytest.raises(UnplannableSize) as refusal:
        dynamic.plan([Size(64, 64), Size(1, 60_000)], PROFILE, Budget(max_num_patches=1100))
    assert refusal.value.item == 1
    assert "60000x1" in refusal.value.detail
