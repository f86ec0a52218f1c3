"""Fill a band with rows of the resized picture: RGBX, from wherever they are made.

A band is P rows in scratch, that a row of patches is cut from. A `Job` and
addresses come in; rows of the band are written. Where the horizontal pass
comes first, its rows lie in a ring that holds as many as the vertical pass
reads at once, so that each is made once.

A pixel of three bytes becomes one of four on the way: before the horizontal
pass, or after the vertical one, which takes bytes as they come.
"""
# ruff: noqa: PLR0913, PLR0917 - kernels take addresses and integers, one by one

from typing import Any

from kernels.jit import inlined
from kernels.job import PAIR_BYTES, RGBX
from kernels.llvm import VECTOR_BYTES
from kernels.resample import horizontal, vertical
from kernels.simd import (
    broadcast,
    load,
    load_byte,
    load_halves,
    load_int32,
    rgb_to_rgbx,
    store,
    store_byte,
    store_int64,
)


@inlined
def through_the_ring(job: Any, at: Any, top: int, rows: int, made: int) -> int:
    """Rows of the band: horizontal pass, then vertical. Rows before `made` have had the first."""
    ring = at.scratch + job.ring
    places = at.scratch + job.places
    for y in range(rows):
        start = load_int32(at.row_starts + 4 * (top + y))
        end = min(start + 2 * job.row_pairs, job.height)
        made = max(made, start)
        while made < end:
            _horizontal(
                job,
                at,
                _source_row(job, at, made, 0),
                _source_row(job, at, min(made + 1, job.height - 1), 1),
                ring + made % job.ring_rows * job.ring_stride,
                ring + (made + 1) % job.ring_rows * job.ring_stride,
            )
            made += 2
        for i in range(2 * job.row_pairs):
            row = min(start + i, job.height - 1)
            store_int64(places + 8 * i, ring + row % job.ring_rows * job.ring_stride)
        factors = at.row_factors + (top + y) * job.row_pairs * PAIR_BYTES
        to = at.scratch + y * job.band_stride
        vertical(job.row_pairs, places, job.columns * RGBX, factors, to)
    return made


@inlined
def row_by_row(job: Any, at: Any, top: int, rows: int) -> None:
    """Rows of the band: vertical pass, then horizontal, or one of them alone."""
    for y in range(0, rows, 2):
        other = min(y + 1, rows - 1)
        to_a = at.scratch + y * job.band_stride
        to_b = at.scratch + other * job.band_stride
        if job.row_pairs == 0:
            row_a = _source_row(job, at, top + y, 0)
            row_b = _source_row(job, at, top + other, 1)
        else:
            row_a = _vertical(job, at, top + y, 0)
            row_b = _vertical(job, at, top + other, 1)
        if job.column_pairs > 0:
            _horizontal(job, at, row_a, row_b, to_a, to_b)
        else:
            _copy(row_a, job.width * RGBX, to_a)
            _copy(row_b, job.width * RGBX, to_b)


@inlined
def copy_rows(job: Any, at: Any, top: int, rows: int, left: int) -> None:
    """Rows of the band: the source's pixels from column `left` on, as they are."""
    for y in range(rows):
        row = at.source + ((top + y) * job.width + left) * job.channels
        to = at.scratch + y * job.band_stride + left * RGBX
        if job.channels == RGBX:
            _copy(row, (job.width - left) * RGBX, to)
        else:
            _expand(row, job.width, to)


@inlined
def clear(to: int, size: int) -> None:
    """Zero `size` bytes, a multiple of VECTOR_BYTES."""
    zero = broadcast(0)
    for i in range(0, size, VECTOR_BYTES):
        store(to + i, zero)


@inlined
def _source_row(job: Any, at: Any, y: int, slot: int) -> Any:
    """The address of a source row as RGBX, of which `reach` pixels may be read.

    Where they would end beyond the picture the row is copied; else what is
    read behind a row is the next one, and multiplied by zero.
    """
    row_bytes = job.width * job.channels
    row = at.source + y * row_bytes
    if job.channels == RGBX and y * row_bytes + job.reach * RGBX <= job.source_bytes:
        return row
    staged = at.scratch + job.staged + slot * job.staged_stride
    if job.channels == RGBX:
        _copy(row, row_bytes, staged)
    else:
        _expand(row, job.width, staged)
    return staged


@inlined
def _horizontal(job: Any, at: Any, row_a: int, row_b: int, to_a: int, to_b: int) -> None:
    horizontal(
        job.column_pairs,
        row_a,
        row_b,
        job.columns,
        at.column_starts,
        at.column_factors,
        to_a,
        to_b,
    )


@inlined
def _vertical(job: Any, at: Any, y: int, slot: int) -> Any:
    """The address of row `y` of the output as RGBX, made of source rows."""
    row_bytes = job.width * job.channels
    places = at.scratch + job.places
    start = load_int32(at.row_starts + 4 * y)
    for i in range(2 * job.row_pairs):
        store_int64(places + 8 * i, at.source + min(start + i, job.height - 1) * row_bytes)
    made = at.scratch + job.made + slot * job.staged_stride
    vertical(
        job.row_pairs, places, row_bytes, at.row_factors + y * job.row_pairs * PAIR_BYTES, made
    )
    if job.channels == RGBX:
        return made
    staged = at.scratch + job.staged + slot * job.staged_stride
    _expand(made, job.width, staged)
    return staged


@inlined
def _copy(source: int, size: int, to: int) -> None:
    """Exactly `size` bytes."""
    whole = size - size % VECTOR_BYTES
    for i in range(0, whole, VECTOR_BYTES):
        store(to + i, load(source + i))
    for i in range(whole, size):
        store_byte(to + i, load_byte(source + i))


@inlined
def _expand(source: int, width: int, to: int) -> None:
    """`width` RGB pixels to RGBX. Reads 3 bytes and writes 4 for each."""
    x = 0
    # A vector reads 28 bytes to use 24.
    while 3 * x + 28 <= 3 * width:
        rgb = load_halves(source + 3 * x, source + 3 * x + 12)
        store(to + 4 * x, rgb_to_rgbx(rgb))
        x += 8
    for i in range(x, width):
        for c in range(3):
            store_byte(to + 4 * i + c, load_byte(source + 3 * i + c))
