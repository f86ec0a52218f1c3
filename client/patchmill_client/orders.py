"""From one order of patches to the other, on either side of `order=merge`.

Patches of several items lie one after the other in a NumPy array or a torch
tensor, (N, …); their grids say where one item ends. `merge` is the edge in
patches of a token, 2 for the profiles that there are. An item's patches go
row by row over its grid (raster), or token by token, in each token row by row
(merge). A video chunk's frames, or a picture's tiles, are reordered each by
itself.

In merge order the patches of one token are neighbours, so that folding r x r
patches into a token is a view. That is valid for encoders that gather their
position embedding by index: give them the positions of `merge_index`.
Attention does not care about order.
"""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from patchmill_client.values import Grid

if TYPE_CHECKING:
    from torch import Tensor

Elements = TypeVar("Elements", bound="NDArray[Any] | Tensor")


def to_merge(patches: Elements, grid_thws: Sequence[Grid], merge: int) -> Elements:
    """(N, …) in raster order as (N, …) in merge order; one item is copied once, several once each.

    Raises ValueError when the grids are not whole tokens or have another N.
    """
    return _reordered(patches, grid_thws, merge, _merged)


def to_raster(patches: Elements, grid_thws: Sequence[Grid], merge: int) -> Elements:
    """(N, …) in merge order as (N, …) in raster order: the inverse of `to_merge`."""
    return _reordered(patches, grid_thws, merge, _rastered)


def merge_index(grid_thws: Sequence[Grid], merge: int) -> NDArray[np.int64]:
    """(N,): the raster places of patches in merge order; `raster[merge_index(…)]` is merged.

    Places count over all items, as `patch_offset` does. Raises ValueError.
    """
    places = np.arange(sum(_patches(grid) for grid in grid_thws), dtype=np.int64)
    return to_merge(places, grid_thws, merge)


def _reordered(
    patches: Elements,
    grid_thws: Sequence[Grid],
    merge: int,
    view: "Callable[[Any, Sequence[int], int], Any]",
) -> Elements:
    _check(len(patches), grid_thws, merge)
    # An array of the same kind, on the same device; each item's permuted view goes into its slice.
    out: Any = patches.new_empty(patches.shape) if hasattr(patches, "new_empty") else None
    if out is None:
        out = np.empty_like(patches, order="C")
    start = 0
    for grid in grid_thws:
        end = start + _patches(grid)
        moved = view(patches[start:end], grid, merge)
        out[start:end].reshape(moved.shape)[...] = moved
        start = end
    reordered: Elements = out
    return reordered


def _merged(patches: Any, grid: Sequence[int], merge: int) -> Any:
    """The view (t, h/r, w/r, r, r, …) of raster patches."""
    t, h, w = grid
    cut = patches.reshape(t, h // merge, merge, w // merge, merge, *patches.shape[1:])
    return cut.swapaxes(2, 3)


def _rastered(patches: Any, grid: Sequence[int], merge: int) -> Any:
    """The view (t, h/r, r, w/r, r, …) of merged patches."""
    t, h, w = grid
    cut = patches.reshape(t, h // merge, w // merge, merge, merge, *patches.shape[1:])
    return cut.swapaxes(2, 3)


def _check(count: int, grid_thws: Sequence[Grid], merge: int) -> None:
    if merge < 1:
        raise ValueError(f"merge is {merge}, must be at least 1")
    for grid in grid_thws:
        if len(grid) != 3 or min(grid) < 1 or grid[1] % merge or grid[2] % merge:
            raise ValueError(f"the grid {tuple(grid)} is not of whole {merge} x {merge} tokens")
    if sum(_patches(grid) for grid in grid_thws) != count:
        raise ValueError(f"the grids have other than {count} patches")


def _patches(grid: Sequence[int]) -> int:
    return grid[0] * grid[1] * grid[2]
