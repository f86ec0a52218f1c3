"""The compiled float resize: bytes to normalised patches, in cache, in float32 all the way.

Arrays come in, the patches of some bands go out, bit for bit those of
`float_reference.patchify`. A band is up to 16 rows of the output. Its rows are
made one by one, weight after weight, along the rows of the source, and then laid
side by side: (pixel, channel, row). So the horizontal pass, whose neighbours
lie anywhere, works on vectors of rows. What it made is turned back into rows.
Where the columns keep their size there is no such pass, and nothing is turned
(`float_direct.py`).

The kernel is serial, runs without the GIL, and allocates nothing. `float_split.py`,
its one caller, makes the scratch: all the memory that addresses here point to.
"""
# ruff: noqa: PLR0913, PLR0917 - kernels take arrays and integers, one by one

from typing import Any

import numpy as np
from numba import types
from numpy.typing import NDArray

from kernels.float_direct import write_band
from kernels.float_lanes import (
    add_floats,
    load_floats,
    order_memory,
    repeat_float,
    transpose,
    transpose_past_caches,
)
from kernels.float_put import (
    BAND,
    FLOAT,
    FLOAT32,
    HALF,
    VECTOR,
    FloatJob,
    element_bytes,
    first_element,
    normalise,
    put_row,
)
from kernels.jit import compiled, inlined
from kernels.simd import address, broadcast_float, multiply

_LANES = FLOAT * BAND
"""Bytes of one column and channel of a band"""

_BLOCK = 64
"""Source pixels of all rows of a band that are made before the next: what is laid side by side
stays in cache."""


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
    types.Array(types.float32, 2, "C"),
    types.Array(types.uint8, 1, "C"),
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
    strip: NDArray[np.float32],
    out: NDArray[np.uint8],
) -> None:
    """Write bands `first` to `stop` into `out`, the bytes of the answer.

    `pixels` is (H, W * channels). The others are from `scratch`.
    """
    taps = column_weights.shape[1]
    for band in range(first, stop):
        gy = band // job.bands
        top = band % job.bands * BAND
        rows = min(BAND, job.height - top)
        begin = gy * job.height + top
        if taps == 1:  # the columns keep their size
            write_band(
                gy,
                top,
                job,
                pixels,
                row_starts,
                row_weights,
                column_starts,
                column_weights,
                scale,
                offset,
                strip,
                out,
            )
            continue
        _rows(job.channels, pixels, begin, rows, row_starts, row_weights, lines, lanes)
        for gx in range(job.grid_w):
            at = first_element(job, gy, gx) + top * job.width
            for left in range(0, job.width, BAND):
                columns = min(BAND, job.width - left)
                column = gx * job.width + left
                to = address(out) + (at + left) * element_bytes(job.kind)
                for x in range(columns):
                    _column(
                        address(lanes) + column_starts[column + x] * 3 * _LANES,
                        address(column_weights) + (column + x) * taps * FLOAT,
                        taps,
                        scale,
                        offset,
                        address(made) + x * _LANES,
                    )
                _turned(job, rows, columns, made, tile, to)
    if job.streamed:
        order_memory()


def scratch(columns: int) -> tuple[NDArray[np.float32], ...]:
    """`lines`, `lanes` of so many columns, `made`, `tile` and `strip`.

    Vectors reach past a line, and so past its columns, by less than one vector.
    Zeros, as a weight of zero makes nothing of what is no number.
    """
    return (
        np.zeros((BAND, _BLOCK * 4 + VECTOR), np.float32),
        np.zeros((columns + 3, 3 * BAND), np.float32),
        np.zeros((3, BAND, BAND), np.float32),
        np.zeros((BAND, BAND), np.float32),
        np.zeros((3, BAND), np.float32),
    )


@inlined
def _turned(
    job: Any, rows: int, columns: int, made: NDArray[np.float32], tile: NDArray[np.float32], to: int
) -> None:
    """The columns made, all channels, as rows of the answer."""
    row_bytes = job.width * element_bytes(job.kind)
    for c in range(3):
        place = to + c * job.height * row_bytes
        if job.kind == FLOAT32 and rows == BAND and columns == BAND:
            _turn(job.streamed, made, c, place, row_bytes)
            continue
        _turn(0, made, c, address(tile), _LANES)
        for y in range(rows):
            row = address(tile) + y * _LANES
            put_row(job.kind, job.streamed, row, columns, place + y * row_bytes)


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
    line_bytes = lines.shape[1] * FLOAT
    pixel_bytes = 3 * _LANES
    for left in range(0, samples, _BLOCK * channels):
        count = min(_BLOCK * channels, samples - left)
        for y in range(rows):
            part = pixels[:, left : left + count]
            _row(part, starts[top + y], weights[top + y], lines[y, :count])
        for sample in range(0, count, VECTOR):
            # Of four channels the fourth lies where the next pixel's first will lie.
            to = address(lanes) + (left + sample) // channels * pixel_bytes
            to += (left + sample) % channels * _LANES
            further = to + (pixel_bytes if channels == 4 else 4 * _LANES)
            for y in range(0, rows, VECTOR):
                at = address(lines) + y * line_bytes + sample * FLOAT
                transpose(at, line_bytes, to + y * FLOAT, further + y * FLOAT, _LANES)


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
    weights: int,
    taps: int,
    scale: NDArray[np.float32],
    offset: NDArray[np.float32],
    made: int,
) -> None:
    """One column of a band, all channels, normalised, of those from `lanes` on.

    `weights` are `taps` floats at an address: numba counts the users of an array's part, which
    took a fifth of the time (2.7 instead of 2.2 ms for 480x640 to 1024x1376).
    """
    red0 = red1 = green0 = green1 = blue0 = blue1 = broadcast_float(np.float32(0))
    for tap in range(taps):
        weight = repeat_float(weights + tap * FLOAT)
        red0 = add_floats(red0, multiply(weight, load_floats(lanes)))
        red1 = add_floats(red1, multiply(weight, load_floats(lanes + HALF)))
        green0 = add_floats(green0, multiply(weight, load_floats(lanes + _LANES)))
        green1 = add_floats(green1, multiply(weight, load_floats(lanes + _LANES + HALF)))
        blue0 = add_floats(blue0, multiply(weight, load_floats(lanes + 2 * _LANES)))
        blue1 = add_floats(blue1, multiply(weight, load_floats(lanes + 2 * _LANES + HALF)))
        lanes += 3 * _LANES
    normalise(red0, red1, scale[0], offset[0], made)
    normalise(green0, green1, scale[1], offset[1], made + BAND * _LANES)
    normalise(blue0, blue1, scale[2], offset[2], made + 2 * BAND * _LANES)


@inlined
def _turn(streamed: int, made: NDArray[np.float32], c: int, to: int, row_bytes: int) -> None:
    """Channel `c` of the columns made, turned into rows."""
    for y in range(0, BAND, VECTOR):
        for x in range(0, BAND, VECTOR):
            at = address(made) + (c * BAND + x) * _LANES + y * FLOAT
            row = to + y * row_bytes + x * FLOAT
            if streamed:
                transpose_past_caches(at, _LANES, row, row_bytes)
            else:
                transpose(at, _LANES, row, row + 4 * row_bytes, row_bytes)
