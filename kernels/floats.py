"""The compiled float resize: bytes to normalised patches, in cache, in float32 all the way.

Arrays come in, the patches of some bands go out, bit for bit those of
`float_reference.patchify`. A band is up to 16 rows of the output. Its rows are
made one by one, weight after weight, along the rows of the source, and laid
side by side: (pixel, channel, row). So the horizontal pass, whose neighbours
lie anywhere, works on rows that are long and dense, and so does every inner
loop here: LLVM makes vectors of them on any machine.

The kernel is serial, runs without the GIL, allocates nothing, and its body runs
the same with the JIT off. `float_split.py`, its one caller, makes the scratch.
"""
# ruff: noqa: PLR0913, PLR0917 - kernels take arrays and integers, one by one

from typing import Any, NamedTuple

import numpy as np
from numba import types
from numpy.typing import NDArray

from kernels.jit import compiled, inlined

BAND = 16
"""Rows of a band, and columns that are made at once: one patch of 16."""

FLOAT32, FLOAT16, BFLOAT16 = range(3)
"""`FloatJob.kind`: what is stored."""

_BLOCK = 64
"""Source pixels of all rows of a band that are made before the next: what is laid side by side
stays in cache. 2048x2048 to 1792x1792: 24.8 ms whole, 24.9 by 256, 22.1 by 64; 4000x3000 to
2080x1552: 37.3, 36.3 and 32.0 (one thread, EPYC Zen 4)."""


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
    types.Array(types.float32, 1, "C"),
    types.Array(types.float32, 2, "C"),
    types.Array(types.float32, 2, "C"),
    types.Array(types.float32, 1, "C"),
    types.Array(types.uint32, 1, "C"),
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
    line: NDArray[np.float32],
    lanes: NDArray[np.float32],
    made: NDArray[np.float32],
    tile: NDArray[np.float32],
    tile_bits: NDArray[np.uint32],
    floats: NDArray[np.float32],
    halves: NDArray[np.uint16],
) -> None:
    """Write bands `first` to `stop` into `floats`, or where `kind` has 16 bits into `halves`.

    `pixels` is (H, W * channels). Scratch: `line` (_BLOCK * 4,), `lanes`
    (W + taps, 3 * BAND) and zero past W, `made` (BAND, 3 * BAND), `tile`
    (BAND * BAND,), and `tile_bits` the same memory.
    """
    for band in range(first, stop):
        gy = band // job.bands
        top = band % job.bands * BAND
        rows = min(BAND, job.height - top)
        _rows(
            job.channels, pixels, gy * job.height + top, rows, row_starts, row_weights, line, lanes
        )
        for gx in range(job.grid_w):
            at = _first_element(job, gy, gx) + top * job.width
            for left in range(0, job.width, BAND):
                columns = min(BAND, job.width - left)
                for x in range(columns):
                    column = gx * job.width + left + x
                    _column(lanes, column_starts[column], column_weights[column], made[x])
                for c in range(3):
                    to = at + c * job.height * job.width + left
                    if job.kind == FLOAT32:
                        _store(made, c, rows, columns, scale[c], offset[c], floats[to:], job.width)
                        continue
                    _store(made, c, rows, columns, scale[c], offset[c], tile, columns)
                    for y in range(rows):
                        begin = to + y * job.width
                        _narrow(
                            job.kind,
                            tile_bits[y * columns : (y + 1) * columns],
                            halves[begin : begin + columns],
                        )


def scratch(columns: int) -> tuple[NDArray[np.generic], ...]:
    """`write_bands`' `line`, `lanes` of so many columns, `made`, `tile` and `tile_bits`."""
    tile = np.empty(BAND * BAND, np.float32)
    return (
        np.empty(_BLOCK * 4, np.float32),
        np.zeros((columns, 3 * BAND), np.float32),
        np.empty((BAND, 3 * BAND), np.float32),
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
    line: NDArray[np.float32],
    lanes: NDArray[np.float32],
) -> None:
    """The vertical pass of `rows` rows from `top` on, laid side by side."""
    width = pixels.shape[1] // channels
    for left in range(0, width, _BLOCK):
        count = min(_BLOCK, width - left)
        part = pixels[:, left * channels : (left + count) * channels]
        for y in range(rows):
            _row(part, starts[top + y], weights[top + y], line[: count * channels])
            for x in range(count):
                for c in range(3):
                    lanes[left + x, c * BAND + y] = line[x * channels + c]


@inlined
def _row(
    pixels: NDArray[np.uint8], start: int, weights: NDArray[np.float32], line: NDArray[np.float32]
) -> None:
    """One row from the rows of bytes from `start` on, two at a time."""
    last = pixels.shape[0] - 1
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
    lanes: NDArray[np.float32], start: int, weights: NDArray[np.float32], out: NDArray[np.float32]
) -> None:
    """One column of a band, all channels, from those from `start` on: four at a time, then two.

    Of 2048 to 1792 samples six instead of eight: 24.0 ms instead of 25.4 in all (EPYC Zen 4).
    """
    taps = weights.shape[0]
    for tap in range(0, taps - 3, 4):
        at = start + tap
        a, b, c, d = lanes[at], lanes[at + 1], lanes[at + 2], lanes[at + 3]
        w0, w1, w2, w3 = weights[tap], weights[tap + 1], weights[tap + 2], weights[tap + 3]
        if tap == 0:
            for i in range(out.shape[0]):
                out[i] = ((w0 * a[i] + w1 * b[i]) + w2 * c[i]) + w3 * d[i]
        else:
            for i in range(out.shape[0]):
                out[i] = (((out[i] + w0 * a[i]) + w1 * b[i]) + w2 * c[i]) + w3 * d[i]
    if taps % 4 == 0:
        return
    w0, w1 = weights[taps - 2], weights[taps - 1]
    a, b = lanes[start + taps - 2], lanes[start + taps - 1]
    if taps == 2:
        for i in range(out.shape[0]):
            out[i] = w0 * a[i] + w1 * b[i]
    else:
        for i in range(out.shape[0]):
            out[i] = (out[i] + w0 * a[i]) + w1 * b[i]


@inlined
def _store(
    made: NDArray[np.float32],
    c: int,
    rows: int,
    columns: int,
    scale: np.float32,
    offset: np.float32,
    out: NDArray[np.float32],
    stride: int,
) -> None:
    """Normalise channel `c` of the columns made, and turn them into rows."""
    for y in range(rows):
        for x in range(columns):
            out[y * stride + x] = made[x, c * BAND + y] * scale + offset


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
