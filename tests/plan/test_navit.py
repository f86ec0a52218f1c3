"""The NaViT size rule: the reference's tables, row by row, and what holds for every size."""

import csv

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.errors import TooManyFrames
from service.plan import navit, profiles
from service.types import ItemType, Size
from tests.golden_data import GOLDEN

PROFILES = profiles.load([profiles.BUILT_IN], "kimi-k2.5")
TABLES = {
    "plan_kimi_k25.csv": ("kimi-k2.5", "kimi-k2.6", "kimi-k2.7"),
    "plan_kimi_k3.csv": ("kimi-k3",),
}

sides = st.integers(1, 70_000)
sizes = st.builds(Size, sides, sides)
NAMES = [each.name for each in PROFILES if each.sizes.rule == "navit"]
names = st.sampled_from(NAMES)


@pytest.mark.parametrize(
    ("table", "model"), [(table, model) for table, models in TABLES.items() for model in models]
)
def test_every_row_of_the_reference_table_holds(table: str, model: str) -> None:
    with (GOLDEN / "kimi" / table).open() as file:
        rows = [{name: int(cell) for name, cell in row.items()} for row in csv.DictReader(file)]
    assert len(rows) == 600
    for row in rows:
        plan = navit.plan(
            Size(row["height"], row["width"]), ItemType.IMAGE, 1, PROFILES.find(model)
        )
        edge = plan.patch_px
        assert {
            **row,
            "new_width": plan.resized.width,
            "new_height": plan.resized.height,
            "pad_right": plan.grid.w * edge - plan.resized.width,
            "pad_bottom": plan.grid.h * edge - plan.resized.height,
            "grid_h": plan.grid.h,
            "grid_w": plan.grid.w,
            "tokens": plan.num_tokens,
        } == row


@given(sizes, names)
def test_a_picture_is_never_enlarged_and_never_vanishes(size: Size, model: str) -> None:
    plan = navit.plan(size, ItemType.IMAGE, 1, PROFILES.find(model))
    assert 1 <= plan.resized.height <= size.height
    assert 1 <= plan.resized.width <= size.width


@given(sizes, names, st.integers(1, 4))
def test_the_grid_is_the_resized_picture_padded_to_whole_tokens(
    size: Size, model: str, frames: int
) -> None:
    profile = PROFILES.find(model)
    plan = navit.plan(size, ItemType.VIDEO_CHUNK, frames, profile)
    token_px = profile.patch_px * profile.merge
    assert plan.grid.t == frames
    for patches, side in ((plan.grid.h, plan.resized.height), (plan.grid.w, plan.resized.width)):
        assert patches % profile.merge == 0
        assert 0 <= patches * profile.patch_px - side < token_px
    assert plan.num_tokens * profile.merge**2 * frames == plan.grid.patches


@given(sizes, names, st.sampled_from(ItemType))
def test_the_patch_limit_holds_but_for_the_pixels_that_fill_no_patch(
    size: Size, model: str, kind: ItemType
) -> None:
    """The rule counts whole patches of the original, so its remainders scale along."""
    profile = PROFILES.find(model)
    edge, sizes = profile.patch_px, profile.sizes
    limit = {
        ItemType.IMAGE: sizes.in_patch_limit,
        ItemType.VIDEO_CHUNK: sizes.in_patch_limit_each_frame,
    }[kind]
    resized = navit.plan(size, kind, 1, profile).resized
    whole = (resized.height // edge) * (resized.width // edge)
    whole_before = max(1, size.height // edge) * max(1, size.width // edge)
    assert whole * whole_before * edge * edge <= limit * size.pixels
    assert resized.longest <= sizes.patch_limit_on_one_side * edge


def test_a_limit_for_the_whole_video_is_shared_by_its_frames() -> None:
    profile = PROFILES.find("kimi-k3")
    tight = profile.model_copy(
        update={"sizes": profile.sizes.model_copy(update={"in_patch_limit_video": 400})}
    )
    plan = navit.plan(Size(1400, 1400), ItemType.VIDEO_CHUNK, 4, tight)
    assert (plan.resized.height, plan.resized.width) == (140, 140)


def test_more_frames_than_the_model_merges_are_refused_with_both_numbers() -> None:
    with pytest.raises(TooManyFrames) as refusal:
        navit.plan(Size(28, 28), ItemType.VIDEO_CHUNK, 5, PROFILES.find("kimi-k2.5"))
    assert (refusal.value.limit, refusal.value.actual) == (4, 5)
