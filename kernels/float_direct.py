"""The float resize where the columns keep their size: from bytes straight to rows of the answer.

Rows of bytes come in, the patches of a band go out. There is no horizontal pass, so
nothing needs to be laid side by side (`floats.py`): a vector is eight pixels of one
channel. The fourth channel is not looked at.
"""
# ruff: noqa: PLR0913, PLR0917 - kernels take arrays and integers, one by one

import numpy as np
from numpy.typing import NDArray

from kernels.float_lanes import add_floats, channel, load_rgb, prefetch, repeat_float
from kernels.float_put import (
    BAND,
    FLOAT,
    VECTOR,
    FloatJob,
    element_bytes,
    first_element,
    normalise,
    put_row,
)
from kernels.jit import called, inlined
from kernels.simd import address, broadcast_float, load, multiply

_AHEAD_BYTES = 256
"""A square's rows are as many streams, too many for the CPU to foresee: 2.8 ms instead of 3.2
(1080x1920 to 1088x1920), 4.4 instead of 7.2 (2160x1920 to that); 3.0 and 5.0 with twice as many."""


@called
def write_band(
    gy: int,
    top: int,
    job: FloatJob,
    pixels: NDArray[np.uint8],
    row_starts: NDArray[np.int64],
    row_weights: NDArray[np.float32],
    column_starts: NDArray[np.int64],
    column_weights: NDArray[np.float32],
    scale: NDArray[np.float32],
    offset: NDArray[np.float32],
    strip: NDArray[np.float32],
    out: NDArray[np.uint8],
) -> None:
    """Write the band from row `top` of the patches of row `gy` on. See `floats.write_bands`.

    Square by square, as the rows of a patch follow each other in memory: 3 ms instead of 10 row by
    row over the picture, whose parts of 64 bytes then lie 3 kB apart.
    """
    rows = min(BAND, job.height - top)
    taps = row_weights.shape[1]
    row_bytes = job.width * element_bytes(job.kind)
    for gx in range(job.grid_w):
        for left in range(0, job.width, BAND):
            columns = min(BAND, job.width - left)
            column = gx * job.width + left
            start = column_starts[column]
            inside = (start + BAND) * job.channels <= pixels.shape[1]
            inside = inside and column_weights[column + columns - 1, 0] == 1
            first = first_element(job, gy, gx) + top * job.width + left
            to = address(out) + first * element_bytes(job.kind)
            for y in range(rows):
                row = gy * job.height + top + y
                if inside:
                    _make_strip(
                        job.channels,
                        pixels,
                        row_starts[row],
                        address(row_weights) + row * taps * FLOAT,
                        taps,
                        start,
                        scale,
                        offset,
                        strip,
                    )
                else:
                    _make_edge(
                        job.channels,
                        pixels,
                        row,
                        row_starts,
                        row_weights,
                        column,
                        columns,
                        column_starts,
                        column_weights,
                        scale,
                        offset,
                        strip,
                    )
                for c in range(3):
                    place = to + (c * job.height + y) * row_bytes
                    made = address(strip) + c * BAND * FLOAT
                    put_row(job.kind, job.streamed, made, columns, place)


@inlined
def _make_strip(
    channels: int,
    pixels: NDArray[np.uint8],
    start: int,
    weights: int,
    taps: int,
    left: int,
    scale: NDArray[np.float32],
    offset: NDArray[np.float32],
    strip: NDArray[np.float32],
) -> None:
    """One row of `BAND` pixels from column `left` of the source on, (3, BAND), normalised.

    All of them are in the source. `weights` are `taps` floats at an address.
    """
    red0 = red1 = green0 = green1 = blue0 = blue1 = broadcast_float(np.float32(0))
    last = pixels.shape[0] - 1
    for tap in range(taps):
        at = address(pixels) + min(start + tap, last) * pixels.shape[1] + left * channels
        prefetch(at + _AHEAD_BYTES)
        weight = repeat_float(weights + tap * FLOAT)
        if channels == 4:
            low, high = load(at), load(at + 4 * VECTOR)
        else:
            low, high = load_rgb(at), load_rgb(at + 3 * VECTOR)
        red0 = add_floats(red0, multiply(weight, channel(low, 0)))
        red1 = add_floats(red1, multiply(weight, channel(high, 0)))
        green0 = add_floats(green0, multiply(weight, channel(low, 8)))
        green1 = add_floats(green1, multiply(weight, channel(high, 8)))
        blue0 = add_floats(blue0, multiply(weight, channel(low, 16)))
        blue1 = add_floats(blue1, multiply(weight, channel(high, 16)))
    normalise(red0, red1, scale[0], offset[0], address(strip))
    normalise(green0, green1, scale[1], offset[1], address(strip) + BAND * FLOAT)
    normalise(blue0, blue1, scale[2], offset[2], address(strip) + 2 * BAND * FLOAT)


@inlined
def _make_edge(
    channels: int,
    pixels: NDArray[np.uint8],
    row: int,
    row_starts: NDArray[np.int64],
    row_weights: NDArray[np.float32],
    column: int,
    columns: int,
    column_starts: NDArray[np.int64],
    column_weights: NDArray[np.float32],
    scale: NDArray[np.float32],
    offset: NDArray[np.float32],
    strip: NDArray[np.float32],
) -> None:
    """The same pixel by pixel, for `columns` from `column` on: some may be past the picture."""
    last = pixels.shape[0] - 1
    for x in range(columns):
        sample = column_starts[column + x] * channels
        for c in range(3):
            total = np.float32(0)
            for tap in range(row_weights.shape[1]):
                above = pixels[min(row_starts[row] + tap, last), sample + c]
                total += row_weights[row, tap] * np.float32(above)
            # Adding zero, as the definition does, makes a zero of minus zero.
            total = np.float32(0) + total * column_weights[column + x, 0]
            strip[c, x] = total * scale[c] + offset[c]
