"""One pass from pixels to patches, a row of patches at a time, all in cache.

The arrays and integers of a `Job` come in; the patches of some rows go out,
byte for byte those of `reference`. A row of patches is made in a band: P rows
of RGBX pixels in scratch, wide enough for the padding, which is zero there.
Where the horizontal pass comes first, its rows lie in a ring that holds as
many as the vertical pass reads at once, so that each is made once.

`write_rows` is the one compiled function of the fast path. It and what it
inlines read and write by address: `fast.py`, its one caller, lays out the
scratch and vouches that every place below lies within its buffer.
"""
# ruff: noqa: PLR0913, PLR0917 - kernels take addresses and integers, one by one

from typing import Any, NamedTuple

import numpy as np
from numba import types
from numpy.typing import NDArray

from kernels.cut import cut
from kernels.jit import compiled, inlined
from kernels.normalise import Kind, normalise
from kernels.resample import horizontal, vertical
from kernels.simd import (
    VECTOR_BYTES,
    address,
    broadcast,
    broadcast_float,
    fence,
    load,
    load_byte,
    load_halves,
    load_int32,
    rgb_to_rgbx,
    store,
    store_byte,
    store_int64,
)

RGBX = 4
_PAIR_BYTES = 8
_BYTES = int(Kind.BYTES)


class Job(NamedTuple):
    """One picture's sizes, in pixels, and the layout of the scratch, in bytes."""

    height: int
    width: int
    channels: int
    out_height: int
    out_width: int
    patch: int
    grid_w: int
    kind: int
    row_pairs: int
    """Pairs of rows that make one; 0 when the height stays."""
    column_pairs: int
    columns: int
    """`out_width` rounded up to a whole number of vectors."""
    horizontal_first: int
    reach: int
    """The horizontal pass reads so many pixels of a row."""
    source_bytes: int
    band_stride: int
    ring: int
    ring_rows: int
    ring_stride: int
    made: int
    """A row of the vertical pass that is to be resampled next; two of them."""
    staged: int
    """A source row as RGBX with `reach` pixels; two of them."""
    staged_stride: int
    places: int
    """The addresses of the rows that the vertical pass reads."""
    bytes: int
    """A row of patches as bytes, which values are then made of."""
    streamed: int
    """Values go past the caches."""
    patch_row_bytes: int


_named_tuple: Any = types.NamedUniTuple

ARGUMENTS = (
    types.int64,
    types.int64,
    _named_tuple(types.int64, len(Job._fields), Job),
    types.Array(types.uint8, 1, "C", readonly=True),
    types.Array(types.int32, 1, "C", readonly=True),
    types.Array(types.int16, 1, "C", readonly=True),
    types.Array(types.int32, 1, "C", readonly=True),
    types.Array(types.int16, 1, "C", readonly=True),
    types.Array(types.int32, 1, "C", readonly=True),
    types.Array(types.int32, 1, "C", readonly=True),
    types.Array(types.float32, 1, "C", readonly=True),
    types.Array(types.uint8, 1, "C"),
    types.Array(types.uint8, 1, "C"),
)
"""The signature of `write_rows`."""


class _Buffers(NamedTuple):
    """Addresses."""

    source: int
    row_starts: int
    row_factors: int
    column_starts: int
    column_factors: int
    scratch: int


class Patch(NamedTuple):
    """What makes values of a patch's bytes."""

    table: int
    """An address: (768,) int32"""
    channels: int
    """An address: (elements + LANES) int32, where in the table each place's channel begins"""
    elements: int
    scale: Any
    """Vectors, of the formula"""
    offset: Any


@compiled
def write_rows(
    first: int,
    stop: int,
    job: Job,
    pixels: NDArray[np.uint8],
    row_starts: NDArray[np.int32],
    row_factors: NDArray[np.int16],
    column_starts: NDArray[np.int32],
    column_factors: NDArray[np.int16],
    table: NDArray[np.int32],
    channels: NDArray[np.int32],
    formula: NDArray[np.float32],
    scratch: NDArray[np.uint8],
    out: NDArray[np.uint8],
) -> None:
    """Write rows `first` to `stop` of patches."""
    at = _Buffers(
        address(pixels),
        address(row_starts),
        address(row_factors),
        address(column_starts),
        address(column_factors),
        address(scratch),
    )
    band = at.scratch
    patch = Patch(
        address(table),
        address(channels),
        3 * job.patch * job.patch,
        broadcast_float(formula[0]),
        broadcast_float(formula[1]),
    )
    _clear(band, job.patch * job.band_stride)
    resized = job.row_pairs + job.column_pairs > 0
    # Whole patches of a picture that is not resized are cut where they lie.
    whole = 0 if resized or job.channels != RGBX else job.width // job.patch
    made = 0
    for gy in range(first, stop):
        top = gy * job.patch
        rows = max(min(job.patch, job.out_height - top), 0)
        direct = whole if rows == job.patch else 0
        if not resized:
            _copy_rows(job, at, top, rows, direct * job.patch)
        elif job.horizontal_first:
            made = _through_the_ring(job, at, top, rows, made)
        else:
            _row_by_row(job, at, top, rows)
        if rows < job.patch:
            _clear(band + rows * job.band_stride, (job.patch - rows) * job.band_stride)
        _write_row(job, at, patch, top, direct, address(out) + gy * job.patch_row_bytes)
    fence()


@inlined
def _write_row(job: Any, at: Any, patch: Any, top: int, direct: int, to: int) -> None:
    """A row of patches: the first `direct` from the source, the others from the band.

    Values are made one group behind the bytes: when bytes are loaded that
    were just stored in pieces of other sizes, the CPU waits for the stores.
    """
    direct_patches = at.source + top * job.width * RGBX
    total = job.grid_w * patch.elements
    in_place = job.kind == _BYTES and not job.streamed
    bytes_at = to if in_place else at.scratch + job.bytes
    done = ready = 0
    for n in range(job.grid_w):
        if n < direct:
            start, stride = direct_patches, job.width * RGBX
        else:
            start, stride = at.scratch, job.band_stride
        start += n * job.patch * RGBX
        cut(job.patch, start, stride, 1, bytes_at + n * patch.elements)
        if not in_place:
            done = normalise(job.kind, job.streamed, bytes_at, done, ready, total, patch, to)
            ready += patch.elements
    if not in_place:
        normalise(job.kind, job.streamed, bytes_at, done, ready, total, patch, to)


@inlined
def _through_the_ring(job: Any, at: Any, top: int, rows: int, made: int) -> int:
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
        factors = at.row_factors + (top + y) * job.row_pairs * _PAIR_BYTES
        to = at.scratch + y * job.band_stride
        vertical(job.row_pairs, places, job.columns * RGBX, factors, to)
    return made


@inlined
def _row_by_row(job: Any, at: Any, top: int, rows: int) -> None:
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
        job.row_pairs, places, row_bytes, at.row_factors + y * job.row_pairs * _PAIR_BYTES, made
    )
    if job.channels == RGBX:
        return made
    staged = at.scratch + job.staged + slot * job.staged_stride
    _expand(made, job.width, staged)
    return staged


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
def _copy_rows(job: Any, at: Any, top: int, rows: int, left: int) -> None:
    """Rows of the band: the source's pixels from column `left` on, as they are."""
    for y in range(rows):
        row = at.source + ((top + y) * job.width + left) * job.channels
        to = at.scratch + y * job.band_stride + left * RGBX
        if job.channels == RGBX:
            _copy(row, (job.width - left) * RGBX, to)
        else:
            _expand(row, job.width, to)


@inlined
def _copy(source: int, size: int, to: int) -> None:
    """Exactly `size` bytes."""
    whole = size - size % VECTOR_BYTES
    for i in range(0, whole, VECTOR_BYTES):
        store(to + i, load(source + i))
    for i in range(whole, size):
        store_byte(to + i, load_byte(source + i))


@inlined
def _clear(to: int, size: int) -> None:
    """Zero `size` bytes, a multiple of VECTOR_BYTES."""
    zero = broadcast(0)
    for i in range(0, size, VECTOR_BYTES):
        store(to + i, zero)


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
