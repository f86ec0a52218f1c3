"""Orders of patches: each way and back, in arrays and tensors."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from patchmill_client import Grid
from patchmill_client.orders import merge_index, to_merge, to_raster

sides = st.integers(1, 4)


@st.composite
def requests(draw: st.DrawFn) -> tuple[list[Grid], int]:
    merge = draw(st.integers(1, 3))
    grids = st.builds(lambda t, h, w: Grid(t, h * merge, w * merge), sides, sides, sides)
    return draw(st.lists(grids, min_size=1, max_size=4)), merge


def test_the_patches_of_a_token_become_neighbours() -> None:
    raster = np.arange(16)
    merged = to_merge(raster, [Grid(1, 4, 4)], 2)
    assert merged.tolist() == [0, 1, 4, 5, 2, 3, 6, 7, 8, 9, 12, 13, 10, 11, 14, 15]


@given(requests())
def test_there_and_back_is_where_it_began(request: tuple[list[Grid], int]) -> None:
    grids, merge = request
    count = sum(grid.patches for grid in grids)
    patches = np.arange(count * 6, dtype=np.float32).reshape(count, 3, 2)
    merged = to_merge(patches, grids, merge)
    assert np.array_equal(to_raster(merged, grids, merge), patches)
    assert np.array_equal(merged, patches[merge_index(grids, merge)])


@given(requests())
def test_items_are_reordered_each_by_itself(request: tuple[list[Grid], int]) -> None:
    grids, merge = request
    index = merge_index(grids, merge)
    start = 0
    for grid in grids:
        share = index[start : start + grid.patches]
        assert np.array_equal(share - start, merge_index([grid], merge))
        start += grid.patches


def test_tensors_stay_tensors() -> None:
    torch = pytest.importorskip("torch")
    patches = torch.arange(32, dtype=torch.bfloat16).reshape(16, 2)
    merged = to_merge(patches, [Grid(1, 4, 4)], 2)
    assert merged.dtype is torch.bfloat16
    assert torch.equal(merged, patches[torch.from_numpy(merge_index([Grid(1, 4, 4)], 2))])
    assert torch.equal(to_raster(merged, [Grid(1, 4, 4)], 2), patches)


@pytest.mark.parametrize(
    ("count", "grid", "merge", "told"),
    [
        (15, Grid(1, 4, 4), 2, "other than 15 patches"),
        (12, Grid(1, 3, 4), 2, "not of whole 2 x 2 tokens"),
        (12, Grid(1, 4, 3), 2, "not of whole 2 x 2 tokens"),
        (16, Grid(1, 4, 4), 0, "merge is 0"),
        (0, Grid(0, 4, 4), 2, "not of whole"),
    ],
)
def test_what_does_not_fit_is_refused(count: int, grid: Grid, merge: int, told: str) -> None:
    for reorder in (to_merge, to_raster):
        with pytest.raises(ValueError, match=told):
            reorder(np.zeros(count), [grid], merge)
