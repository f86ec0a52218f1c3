"""How floats get into an answer: normalised, as they are or rounded to 16 bits, where they belong.

What both ways of the float resize share. Resampled vectors come in, rows of the
answer go out. No pixel is looked at.
"""

from typing import Any, NamedTuple

from kernels.float_lanes import (
    add_floats,
    load_floats,
    round_to_float16,
    store_first_floats,
    store_first_halves,
    store_floats,
    store_floats_past_caches,
    store_halves,
)
from kernels.jit import inlined
from kernels.simd import broadcast_float, multiply, to_bfloat16

BAND = 16
"""Rows that are worked on together, and columns that are made at once: one patch of 16."""

FLOAT = 4
"""Bytes"""
VECTOR = 8
"""Floats that are worked on at once"""
HALF = FLOAT * VECTOR
"""Bytes of them: half of a column or of a row, of one channel"""

FLOAT32, FLOAT16, BFLOAT16 = range(3)
"""`FloatJob.kind`: what is stored."""


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


@inlined
def first_element(job: Any, gy: int, gx: int) -> int:
    """Where patch (gy, gx) begins: tokens row by row, and in each its patches row by row."""
    merge = job.merge
    token = gy // merge * (job.grid_w // merge) + gx // merge
    patch = token * merge * merge + gy % merge * merge + gx % merge
    return patch * 3 * job.height * job.width  # type: ignore[no-any-return]


@inlined
def element_bytes(kind: int) -> int:
    return FLOAT if kind == FLOAT32 else 2


@inlined
def normalise(low: Any, high: Any, scale: Any, offset: Any, to: int) -> None:
    """Two vectors of one channel, to `to`."""
    scales, offsets = broadcast_float(scale), broadcast_float(offset)
    store_floats(to, add_floats(multiply(low, scales), offsets))
    store_floats(to + HALF, add_floats(multiply(high, scales), offsets))


@inlined
def put_row(kind: int, streamed: int, row: int, columns: int, to: int) -> None:
    """`columns` floats, up to `BAND`, that lie at `row`, to the address `to`."""
    for x in range(0, columns, VECTOR):
        values = load_floats(row + x * FLOAT)
        count = columns - x
        place = to + x * element_bytes(kind)
        if kind == FLOAT32:
            if count < VECTOR:
                store_first_floats(place, values, count)
            elif streamed:
                store_floats_past_caches(place, values)
            else:
                store_floats(place, values)
            continue
        halves = round_to_float16(values) if kind == FLOAT16 else to_bfloat16(values)
        if count < VECTOR:
            store_first_halves(place, halves, count)
        else:
            store_halves(place, halves)
