"""The caller of the fast kernels: lays out buffers, and vouches for every address in them.

Checked arrays come in (`engine.py` checked them), calls of `fused.write_rows`
go out, one for each part. No pixel is touched here. What the fast kernels do
not do, patches of fewer than eight pixels a side and tables of bytes that are
not the bytes themselves, goes to the portable way.
"""

from dataclasses import dataclass, field
from functools import lru_cache, partial
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kernels.arrange import STREAMED_BYTES
from kernels.coefficients import Axis, plan_axis, vertical_first, window
from kernels.engine import Split, read_only
from kernels.float_split import Part
from kernels.job import RGBX, Job
from kernels.llvm import LANES, VECTOR_BYTES
from kernels.normalise import Kind
from kernels.recipe import Recipe, choose
from kernels.tables import Stored

_LINE_BYTES = 64
_LARGEST_PATCH = 64
"""Of each place of a patch there are three constants: larger ones would not stay in cache."""
_BAND = 16
"""Rows of a band of a picture that is not cut."""
_NO_AXIS = Axis(np.zeros(1, np.int32), np.zeros((1, 1, 4), np.int16), 0)
_TRIED = np.arange(256, dtype=np.uint8).repeat(RGBX).reshape(16, 16, RGBX)
"""A patch of all bytes."""


@dataclass(frozen=True, slots=True, eq=False)
class Fast:
    """The compiled functions, and the way to take where they do not apply."""

    weigh: Any
    write_rows: Any
    otherwise: Split = field(repr=False)

    def split(
        self,
        pixels: NDArray[np.uint8],
        resized: tuple[int, int],
        table: NDArray[Stored],
        out: NDArray[Stored],
        parts: int,
    ) -> tuple[Part, ...]:
        """`engine.Split` by the fast kernels."""
        target = _target(out.shape)
        recipe = target and _recipe(self, table.tobytes(), table.dtype, target.patch)
        if target is None or recipe is None:
            return self.otherwise(pixels, resized, table, out, parts)
        return self.split_by(recipe, target, pixels, resized, out, parts)

    def split_by(  # noqa: PLR0913, PLR0917 - `split`, of which two are looked up
        self,
        recipe: Recipe,
        target: "_Target",
        pixels: NDArray[np.uint8],
        resized: tuple[int, int],
        out: NDArray[Stored],
        parts: int,
    ) -> tuple[Part, ...]:
        """The same for a recipe; the parts share all but their scratch."""
        rows, columns = (
            _axis(self.weigh, before, after) if before != after else _NO_AXIS
            for before, after in zip(pixels.shape[:2], resized, strict=True)
        )
        job, scratch_bytes = _lay_out(pixels, resized, recipe.kind, target, out, rows, columns)
        arrays = (
            pixels.reshape(-1),
            rows.starts,
            rows.factors.reshape(-1),
            columns.starts,
            columns.factors.reshape(-1),
            recipe.table,
            recipe.channels,
            recipe.formula,
        )
        inputs = tuple(read_only(array) for array in arrays)
        to = out.reshape(-1).view(np.uint8)

        def write(first: int, stop: int) -> None:
            self.write_rows(first, stop, job, *inputs, _aligned(scratch_bytes), to)

        parts = min(parts, target.grid_h)
        edges = [target.grid_h * part // parts for part in range(parts + 1)]
        return tuple(partial(write, *ends) for ends in pairwise(edges))


class _Target(NamedTuple):
    """An arrangement as the fast kernels write it, in bands as high as a patch."""

    grid_h: int
    grid_w: int
    patch: int
    merge: int
    image: tuple[int, int]
    """Height and width of a picture that is not cut, else (0, 0)"""


def _target(shape: tuple[int, ...]) -> _Target | None:
    """From a shape of `arrange.whole`; None for one that is not written here."""
    rows, columns, merge, _, _, height, width = shape
    if height == width and LANES <= height <= _LARGEST_PATCH:
        return _Target(rows * merge, columns * merge, height, merge, (0, 0))
    if (rows, columns, merge) == (1, 1, 1) and width >= LANES:
        return _Target(-(-height // _BAND), -(-width // _BAND), _BAND, 1, (height, width))
    return None


@lru_cache(maxsize=64)
def _axis(weigh: Any, before: int, after: int) -> Axis:
    """The weights of an axis, kept for the next frame: 0.1 ms for 2048 to 1795 (EPYC Zen 4)."""
    axis = plan_axis(weigh, before, after, LANES)
    assert axis.starts[0] >= 0
    assert axis.starts[-1] < before
    assert (axis.starts[1:] >= axis.starts[:-1]).all()
    return Axis(read_only(axis.starts), read_only(axis.factors), axis.pairs)


@lru_cache(maxsize=64)
def _recipe(fast: Fast, table: bytes, dtype: np.dtype[Stored], patch: int) -> Recipe | None:
    """The recipe of a table, tried out by the kernel itself on all 768 values."""
    values: NDArray[Stored] = np.frombuffer(table, dtype).reshape(256, 3)
    edge = 16
    wanted = np.ascontiguousarray(values.T)

    def gives(recipe: Recipe) -> bool:
        got = np.empty((3, edge, edge), dtype)
        target = _Target(1, 1, edge, 1, (0, 0))
        for part in fast.split_by(recipe, target, _TRIED, (edge, edge), got, 1):
            part()
        return got.tobytes() == wanted.tobytes()

    return choose(values, edge, patch, gives)


def _lay_out(  # noqa: PLR0913, PLR0917 - all that decides the layout
    pixels: NDArray[np.uint8],
    resized: tuple[int, int],
    kind: Kind,
    target: _Target,
    out: NDArray[Stored],
    rows: Axis,
    columns: Axis,
) -> tuple[Job, int]:
    """The job, and the bytes of scratch that it needs.

    All that `fused.py` and `rows.py` add up lies within: it reads `reach` pixels of a
    source row or of a staged one, `columns` pixels of a ring row and of a band
    row, and writes as much; see the sizes below.
    """
    height, width, channels = pixels.shape
    out_height, out_width = resized
    grid_w, patch = target.grid_w, target.patch
    wide = -(-out_width // LANES) * LANES
    reach = int(columns.starts[-1]) + window(columns.pairs) if columns.pairs else width
    both = rows.pairs > 0 and columns.pairs > 0
    horizontal_first = both and not vertical_first((height, width), resized)
    band_stride = _whole_lines(max(wide, grid_w * patch) * RGBX)
    ring_rows = 2 * rows.pairs + 2 if horizontal_first else 0
    ring_stride = _whole_lines(wide * RGBX)
    # A vector may be stored past the pixels of an expanded row.
    staged_stride = _whole_lines(max(reach, width) * RGBX + VECTOR_BYTES)
    ring = patch * band_stride
    made = ring + ring_rows * ring_stride
    staged = made + 2 * staged_stride
    places = staged + 2 * staged_stride
    bytes_at = _whole_lines(places + 2 * 8 * rows.pairs)
    job = Job(
        height=height,
        width=width,
        channels=channels,
        out_height=out_height,
        out_width=out_width,
        patch=patch,
        grid_w=grid_w,
        merge=target.merge,
        image_height=target.image[0],
        image_width=target.image[1],
        kind=int(kind),
        itemsize=out.itemsize,
        row_pairs=rows.pairs,
        column_pairs=columns.pairs,
        columns=wide,
        horizontal_first=int(horizontal_first),
        reach=reach,
        source_bytes=pixels.size,
        band_stride=band_stride,
        ring=ring,
        ring_rows=ring_rows,
        ring_stride=ring_stride,
        made=made,
        staged=staged,
        staged_stride=staged_stride,
        places=places,
        bytes=bytes_at,
        streamed=int(out.nbytes >= STREAMED_BYTES),
    )
    return job, bytes_at + grid_w * 3 * patch * patch


def _whole_lines(size: int) -> int:
    return -(-size // _LINE_BYTES) * _LINE_BYTES


def _aligned(size: int) -> NDArray[np.uint8]:
    """Scratch that begins with a cache line."""
    raw = np.empty(size + _LINE_BYTES, np.uint8)
    start = -raw.ctypes.data % _LINE_BYTES
    return raw[start : start + size]
