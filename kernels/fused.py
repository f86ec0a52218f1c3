"""One pass from pixels to patches, a row of patches at a time, all in cache.

The arrays and integers of a `Job` come in; the patches of some rows go out,
byte for byte those of `reference`. A row of patches is made in a band: P rows
of RGBX pixels in scratch, wide enough for the padding, which is zero there.

`write_rows` is the one compiled function of the fast path. It and what it
inlines read and write by address: `fast.py`, its one caller, lays out the
scratch and vouches that every place lies within its buffer.
"""
# ruff: noqa: PLR0913, PLR0917 - kernels take addresses and integers, one by one

from typing import Any

import numpy as np
from numba import types
from numpy.typing import NDArray

from kernels.cut import cut, cut_row
from kernels.jit import compiled, inlined
from kernels.job import RGBX, Buffers, Job, Patch
from kernels.llvm import LANES
from kernels.normalise import Kind, normalise
from kernels.rows import clear, copy_rows, row_by_row, through_the_ring
from kernels.simd import address, broadcast_float, fence

_BYTES = int(Kind.BYTES)
_ONE_VECTOR = LANES

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
    at = Buffers(
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
    clear(band, job.patch * job.band_stride)
    resized = job.row_pairs + job.column_pairs > 0
    # Whole patches of a picture that is not resized are cut where they lie.
    uncut = job.image_height > 0
    whole = 0 if resized or uncut or job.channels != RGBX else job.width // job.patch
    made = 0
    for gy in range(first, stop):
        top = gy * job.patch
        rows = max(min(job.patch, job.out_height - top), 0)
        direct = whole if rows == job.patch else 0
        if not resized:
            copy_rows(job, at, top, rows, direct * job.patch)
        elif job.horizontal_first:
            made = through_the_ring(job, at, top, rows, made)
        else:
            row_by_row(job, at, top, rows)
        if rows < job.patch:
            clear(band + rows * job.band_stride, (job.patch - rows) * job.band_stride)
        if uncut:
            _write_rows_whole(job, at, patch, top, address(out))
        elif job.merge > 1:
            _write_row_merged(job, at, patch, gy, direct, address(out))
        else:
            row_bytes = job.grid_w * patch.elements * job.itemsize
            _write_row(job, at, patch, top, direct, address(out) + gy * row_bytes)
    fence()


@inlined
def _write_row(job: Any, at: Any, patch: Any, top: int, direct: int, to: int) -> None:
    """A row of patches: the first `direct` from the source, the others from the band.

    Values are made one group behind the bytes: when bytes are loaded that
    were just stored in pieces of other sizes, the CPU waits for the stores.
    """
    total = job.grid_w * patch.elements
    in_place = job.kind == _BYTES and not job.streamed
    bytes_at = to if in_place else at.scratch + job.bytes
    done = ready = 0
    for n in range(job.grid_w):
        _cut_patch(job, at, top, n, direct, bytes_at + n * patch.elements)
        if not in_place:
            done = normalise(job.kind, job.streamed, bytes_at, done, ready, total, patch, to)
            ready += patch.elements
    if not in_place:
        normalise(job.kind, job.streamed, bytes_at, done, ready, total, patch, to)


@inlined
def _write_row_merged(job: Any, at: Any, patch: Any, gy: int, direct: int, out: int) -> None:
    """The same in tokens of `merge` rows and columns: a run of patches from each row.

    The bytes of two runs lie in scratch, for the reason above.
    """
    run = job.merge * patch.elements
    token_bytes = job.merge * run * job.itemsize
    tokens = job.grid_w // job.merge
    row = out + gy // job.merge * tokens * token_bytes + gy % job.merge * run * job.itemsize
    bytes_at = at.scratch + job.bytes
    for token in range(tokens):
        to = row + token * token_bytes
        made = to if job.kind == _BYTES else bytes_at + token % 2 * run
        for n in range(job.merge):
            place = made + n * patch.elements
            _cut_patch(job, at, gy * job.patch, token * job.merge + n, direct, place)
        if job.kind != _BYTES and token > 0:
            before = bytes_at + (token - 1) % 2 * run
            normalise(job.kind, job.streamed, before, 0, run, run, patch, to - token_bytes)
    if job.kind != _BYTES:
        last = bytes_at + (tokens - 1) % 2 * run
        to = row + (tokens - 1) * token_bytes
        normalise(job.kind, job.streamed, last, 0, run, run, patch, to)


@inlined
def _cut_patch(job: Any, at: Any, top: int, n: int, direct: int, to: int) -> None:
    """Patch `n` of a row: one of the first `direct` from the source, another from the band."""
    if n < direct:
        start, stride = at.source + top * job.width * RGBX, job.width * RGBX
    else:
        start, stride = at.scratch, job.band_stride
    cut(job.patch, start + n * job.patch * RGBX, stride, 1, to)


@inlined
def _write_rows_whole(job: Any, at: Any, patch: Any, top: int, out: int) -> None:
    """The rows of a band as they are, each into three planes."""
    width = job.image_width
    row_bytes = width * job.itemsize
    plane_bytes = job.image_height * row_bytes
    for y in range(min(job.patch, job.image_height - top)):
        pixels = at.scratch + y * job.band_stride
        to = out + (top + y) * row_bytes
        if job.kind == _BYTES:
            cut_row(pixels, width, to, to + plane_bytes, to + 2 * plane_bytes)
            continue
        bytes_at = at.scratch + job.bytes
        cut_row(pixels, width, bytes_at, bytes_at + width, bytes_at + 2 * width)
        for c in range(3):
            # One channel for all places: the table from there on, and no place but the first.
            plane = Patch(
                patch.table + c * 4 * 256, patch.channels, _ONE_VECTOR, patch.scale, patch.offset
            )
            values = bytes_at + c * width
            plane_at = to + c * plane_bytes
            normalise(job.kind, job.streamed, values, 0, width, width, plane, plane_at)
