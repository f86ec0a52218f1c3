"""The compiled float resize: bytes to normalised patches, in cache, in float32 all the way.

Arrays come in, the patches of some bands go out, bit for bit those of
`float_reference.patchify`. A band is up to 16 rows of the output. Its rows are
made one by one, weight after weight, along the rows of the source, and then laid
side by side: (pixel, channel, row). So the horizontal pass, whose neighbours
lie anywhere, works on vectors of rows. What it made is turned back into rows.

The kernel is serial, runs without the GIL, and allocates nothing. `float_split.py`,
its one caller, makes the scratch: all the memory that addresses here point to.
"""
# ruff: noqa: PLR0913, PLR0917 - kernels take arrays and integers, one by one

from typing import Any, NamedTuple

import numpy as np
from numba import types
from numpy.typing import NDArray

from kernels.float_lanes import (
    add_floats,
    load_floats,
    order_memory,
    store_floats,
    transpose,
    transpose_past_caches,
)
from kernels.jit import compiled, inlined
from kernels.simd import address, broadcast_float, multiply

BAND = 16
"""Rows of a band, and columns that are made at once: one patch of 16."""

_FLOAT = 4
"""Bytes"""
_LANES = _FLOAT * BAND
"""Bytes of one column and channel of a band"""
_VECTOR = 8
"""Floats that are worked on at once"""
_HALF = _FLOAT * _VECTOR
"""Bytes of them: half of a column and channel"""

FLOAT32, FLOAT16, BFLOAT16 = range(3)
"""`FloatJob.kind`: what is stored."""

_BLOCK = 64
"""Source pixels of all rows of a band that are made before the next: what is laid side by side
stays in cache."""


class FloatJob(NamedTuple):
    """One answer's sizes: `arrange.whole` of it, in integers."""

    channels: int
    """Bytes of a source pixel: 3 or 4"""
    grid_w: int
    """Patches of a row"""
    merge: int
    height: int
    """Of a patch, in pixels"""
    width: int
    bands: int
    """How many a row of patches has"""
    kind: int
    streamed: int
    """1 where the answer may go past the caches"""


ARGUMENTS = (
    types.int64,
    types.int64,
    types.NamedUniTuple(types.int64, len(FloatJob._fields), FloatJob),  # type: ignore[no-untyped-call]
    types.Array(types.uint8, 2, "C", readonly=True),
    types.Array(types.int64, 1, "C", readonly=True),
    types.Array(types.float32, 2, "C", readonly=True),
    types.Array(types.int64, 1, "C", readonly=True),
    types.Array(types.float32, 2, "C", readonly=True),
    types.Array(types.float32, 1, "C", readonly=True),
    types.Array(types.float32, 1, "C", readonly=True),
    types.Array(types.float32, 2, "C"),
    types.Array(types.float32, 2, "C"),
    types.Array(types.float32, 3, "C"),
    types.Array(types.float32, 2, "C"),
    types.Array(types.uint32, 2, "C"),
    types.Array(types.float32, 1, "C"),
    types.Array(types.uint16, 1, "C"),
)
"""The signature of `write_bands`."""


@compiled
def write_bands(
    first: int,
    stop: int,
    job: FloatJob,
    pixels: NDArray[np.uint8],
    row_starts: NDArray[np.int64],
    row_weights: NDArray[np.float32],
    column_starts: NDArray[np.int64],
    column_weights: NDArray[np.float32],
    scale: NDArray[np.float32],
    offset: NDArray[np.float32],
    lines: NDArray[np.float32],
    lanes: NDArray[np.float32],
    made: NDArray[np.float32],
    tile: NDArray[np.float32],
    tile_bits: NDArray[np.uint32],
    floats: NDArray[np.float32],
    halves: NDArray[np.uint16],
) -> None:
    """Write bands `first` to `stop` into `floats`, or where `kind` has 16 bits into `halves`.

    `pixels` is (H, W * channels). The others are from `scratch`.
    """
    for band in range(first, stop):
        gy = band // job.bands
        top = band % job.bands * BAND
        rows = min(BAND, job.height - top)
        begin = gy * job.height + top
        _rows(job.channels, pixels, begin, rows, row_starts, row_weights, lines, lanes)
        for gx in range(job.grid_w):
            at = _first_element(job, gy, gx) + top * job.width
            for left in range(0, job.width, BAND):
                columns = min(BAND, job.width - left)
                for x in range(columns):
                    column = gx * job.width + left + x
                    _column(
                        address(lanes) + column_starts[column] * 3 * _LANES,
                        column_weights[column],
                        scale,
                        offset,
                        address(made) + x * _LANES,
                    )
                for c in range(3):
                    to = at + c * job.height * job.width + left
                    if job.kind == FLOAT32 and rows == BAND and columns == BAND:
                        place = address(floats) + to * _FLOAT
                        _turn(job.streamed, made, c, place, job.width * _FLOAT)
                        continue
                    _turn(0, made, c, address(tile), _LANES)
                    for y in range(rows):
                        begin = to + y * job.width
                        if job.kind == FLOAT32:
                            floats[begin : begin + columns] = tile[y, :columns]
                            continue
                        _narrow(job.kind, tile_bits[y, :columns], halves[begin : begin + columns])
    if job.streamed:
        order_memory()


def scratch(columns: int) -> tuple[NDArray[np.generic], ...]:
    """`lines`, `lanes` of so many columns, `made`, `tile` and `tile_bits`, the same memory.

    Vectors reach past a line, and so past its columns, by less than one vector.
    Zeros, as a weight of zero makes nothing of what is no number.
    """
    tile = np.zeros((BAND, BAND), np.float32)
    return (
        np.zeros((BAND, _BLOCK * 4 + _VECTOR), np.float32),
        np.zeros((columns + 3, 3 * BAND), np.float32),
        np.zeros((3, BAND, BAND), np.float32),
        tile,
        tile.view(np.uint32),
    )


@inlined
def _first_element(job: Any, gy: int, gx: int) -> int:
    """Where patch (gy, gx) begins: tokens row by row, and in each its patches row by row."""
    merge = job.merge
    token = gy // merge * (job.grid_w // merge) + gx // merge
    patch = token * merge * merge + gy % merge * merge + gx % merge
    return patch * 3 * job.height * job.width  # type: ignore[no-any-return]


@inlined
def _rows(
    channels: int,
    pixels: NDArray[np.uint8],
    top: int,
    rows: int,
    starts: NDArray[np.int64],
    weights: NDArray[np.float32],
    lines: NDArray[np.float32],
    lanes: NDArray[np.float32],
) -> None:
    """The vertical pass of `rows` rows from `top` on, laid side by side."""
    samples = pixels.shape[1]
    line_bytes = lines.shape[1] * _FLOAT
    pixel_bytes = 3 * _LANES
    for left in range(0, samples, _BLOCK * channels):
        count = min(_BLOCK * channels, samples - left)
        for y in range(rows):
            part = pixels[:, left : left + count]
            _row(part, starts[top + y], weights[top + y], lines[y, :count])
        for sample in range(0, count, _VECTOR):
            # Of four channels the fourth lies where the next pixel's first will lie.
            to = address(lanes) + (left + sample) // channels * pixel_bytes
            to += (left + sample) % channels * _LANES
            further = to + (pixel_bytes if channels == 4 else 4 * _LANES)
            for y in range(0, rows, _VECTOR):
                at = address(lines) + y * line_bytes + sample * _FLOAT
                transpose(at, line_bytes, to + y * _FLOAT, further + y * _FLOAT, _LANES)


@inlined
def _row(
    pixels: NDArray[np.uint8], start: int, weights: NDArray[np.float32], line: NDArray[np.float32]
) -> None:
    """One row from the rows of bytes from `start` on, two at a time."""
    last = pixels.shape[0] - 1
    if weights.shape[0] == 1:
        only = pixels[start]
        for i in range(line.shape[0]):
            line[i] = weights[0] * np.float32(only[i])
        return
    for tap in range(0, weights.shape[0], 2):
        above, below = pixels[min(start + tap, last)], pixels[min(start + tap + 1, last)]
        w0, w1 = weights[tap], weights[tap + 1]
        if w0 == 0 and w1 == 0 and tap > 0:
            continue  # filling, of which adding a zero leaves the sum as it is
        if tap == 0:
            for i in range(line.shape[0]):
                line[i] = w0 * np.float32(above[i]) + w1 * np.float32(below[i])
        else:
            for i in range(line.shape[0]):
                line[i] = (line[i] + w0 * np.float32(above[i])) + w1 * np.float32(below[i])


@inlined
def _column(
    lanes: int,
    weights: NDArray[np.float32],
    scale: NDArray[np.float32],
    offset: NDArray[np.float32],
    made: int,
) -> None:
    """One column of a band, all channels, normalised, of those from `lanes` on."""
    red0 = red1 = green0 = green1 = blue0 = blue1 = broadcast_float(np.float32(0))
    for tap in range(weights.shape[0]):
        weight = broadcast_float(weights[tap])
        red0 = add_floats(red0, multiply(weight, load_floats(lanes)))
        red1 = add_floats(red1, multiply(weight, load_floats(lanes + _HALF)))
        green0 = add_floats(green0, multiply(weight, load_floats(lanes + _LANES)))
        green1 = add_floats(green1, multiply(weight, load_floats(lanes + _LANES + _HALF)))
        blue0 = add_floats(blue0, multiply(weight, load_floats(lanes + 2 * _LANES)))
        blue1 = add_floats(blue1, multiply(weight, load_floats(lanes + 2 * _LANES + _HALF)))
        lanes += 3 * _LANES
    _normalise(red0, red1, scale[0], offset[0], made)
    _normalise(green0, green1, scale[1], offset[1], made + BAND * _LANES)
    _normalise(blue0, blue1, scale[2], offset[2], made + 2 * BAND * _LANES)


@inlined
def _normalise(low: Any, high: Any, scale: np.float32, offset: np.float32, to: int) -> None:
    """One column and channel: two vectors."""
    scales, offsets = broadcast_float(scale), broadcast_float(offset)
    store_floats(to, add_floats(multiply(low, scales), offsets))
    store_floats(to + _HALF, add_floats(multiply(high, scales), offsets))


@inlined
def _turn(streamed: int, made: NDArray[np.float32], c: int, to: int, row_bytes: int) -> None:
    """Channel `c` of the columns made, turned into rows."""
    for y in range(0, BAND, _VECTOR):
        for x in range(0, BAND, _VECTOR):
            at = address(made) + (c * BAND + x) * _LANES + y * _FLOAT
            row = to + y * row_bytes + x * _FLOAT
            if streamed:
                transpose_past_caches(at, _LANES, row, row_bytes)
            else:
                transpose(at, _LANES, row, row + 4 * row_bytes, row_bytes)


@inlined
def _narrow(kind: int, bits: NDArray[np.uint32], out: NDArray[np.uint16]) -> None:
    """Floats, as their bits, to 16 bits: to nearest, ties to even. Of float16 what is too large
    becomes infinite."""
    for i in range(out.shape[0]):
        word = int(bits[i])
        if kind == BFLOAT16:
            out[i] = (word + 0x7FFF + (word >> 16 & 1)) >> 16
        else:
            exponent = word >> 23 & 0xFF
            # A number below the normal ones of float16 is shifted further to the right.
            shift = 13 + min(max(113 - exponent, 0), 12)
            kept = max(exponent - 112, 0) << 23 | word & 0x7FFFFF
            if exponent < 113:
                kept = word & 0x7FFFFF | 0x800000
            rounded = (kept + (1 << (shift - 1)) - 1 + (kept >> shift & 1)) >> shift
            out[i] = min(rounded, 0x7C00) | (word >> 16 & 0x8000)
