"""The tile rule: the grid nearest in aspect, and the thumbnail."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.plan import profiles, tiles
from service.types import Grid, Size, Tile

PROFILE = profiles.load([profiles.BUILT_IN], "kimi-k2.5").find("nemotron-nano-vl-tiles")
ONE = PROFILE.model_copy(
    update={"sizes": PROFILE.sizes.model_copy(update={"use_thumbnail": False})}
)

# Width, height; columns and rows of tiles.
GRIDS = {
    "a square fills one": ((300, 300), (1, 1)),
    "a large square fills four": ((1000, 1000), (2, 2)),
    "a larger one fills nine": ((3000, 3000), (3, 3)),
    "a square that half fills four": ((724, 724), (1, 1)),
    "and more than half": ((725, 725), (2, 2)),
    "two to one": ((800, 400), (2, 1)),
    "two to one, large": ((2000, 1000), (4, 2)),
    "three to two": ((500, 333), (3, 2)),
    "a banner": ((10_000, 10), (12, 1)),
    "a ribbon": ((10, 10_000), (1, 12)),
}


@pytest.mark.parametrize(("size", "grid"), GRIDS.values(), ids=GRIDS)
def test_a_picture_has_the_grid_nearest_to_its_aspect(
    size: tuple[int, int], grid: tuple[int, int]
) -> None:
    plan = tiles.plan(Size(size[1], size[0]), PROFILE)
    assert plan.resized == Size(grid[1] * 512, grid[0] * 512)


def test_tiles_go_row_by_row_and_the_thumbnail_is_last() -> None:
    plan = tiles.plan(Size(333, 500), PROFILE)
    corners = [(0, 0), (0, 512), (0, 1024), (512, 0), (512, 512), (512, 1024)]
    assert plan.tiles == (
        *(Tile(Size(1024, 1536), *corner) for corner in corners),
        Tile(Size(512, 512), 0, 0),
    )
    assert plan.grid == Grid(7, 32, 32)
    assert plan.num_tokens == 7 * 256


def test_one_tile_needs_no_thumbnail() -> None:
    assert len(tiles.plan(Size(100, 100), PROFILE).tiles) == 1


@given(st.integers(1, 60_000), st.integers(1, 60_000))
def test_tiles_cover_the_resized_picture_once(height: int, width: int) -> None:
    plan = tiles.plan(Size(height, width), ONE)
    assert 1 <= len(plan.tiles) <= 12
    assert len(set(plan.tiles)) == len(plan.tiles)
    assert len(plan.tiles) * 512 * 512 == plan.resized.pixels
    assert all(tile.resized == plan.resized for tile in plan.tiles)
    assert all(0 <= tile.top < plan.resized.height for tile in plan.tiles)
    assert all(0 <= tile.left < plan.resized.width for tile in plan.tiles)
