"""Cut a row of patches out of RGBX pixels and normalise them, eight pixels at a time.

The address of pixels comes in and the address of patches: (3, P, P) each, in
the order of the answer. What becomes of a byte is a `Kind`: itself, a formula
that gives the table's value, or the table itself. Whether a formula holds for
a table is not decided here (`recipe.py` does).

A patch of fewer than eight pixels a row is not for this module. One of 14 has
two vectors a row, pixels 0 to 7 and 6 to 13, so that nothing outside the patch
is read or written.
"""
# ruff: noqa: PLR0913, PLR0917 - kernels take addresses and integers, one by one

from enum import IntEnum
from typing import Any

import numpy as np

from kernels.jit import called, inlined
from kernels.simd import (
    blue,
    broadcast_float,
    green,
    load,
    look_up,
    multiply,
    multiply_add,
    planar,
    red,
    store,
    store_as_float16,
    store_floats,
    store_low_halves_of_lanes,
    store_three_quarters,
    to_bfloat16,
    to_floats,
)

LANES = 8
PIXEL_BYTES = 4


class Kind(IntEnum):
    """How bytes become stored values."""

    BYTES = 0
    """themselves"""
    FLOAT32 = 1
    """v / 255 * scale + offset"""
    FLOAT16 = 2
    BFLOAT16 = 3
    LOOKUP_32 = 4
    """the table's value"""
    LOOKUP_16 = 5


_BYTES, _FLOAT32, _FLOAT16, _BFLOAT16, _LOOKUP_32, _LOOKUP_16 = (int(kind) for kind in Kind)

# 1 / 255 in two parts: v * _LOW rounded, then v * _HIGH + that rounded once,
# is v / 255 rounded once, for each byte v (tested). A division costs five times that.
_HIGH = np.float32(1 / 255)
_LOW = np.float32(1 / 255 - float(_HIGH))


@called
def cut(
    kind: int, patch: int, pixels: int, stride: int, count: int, table: int, formula: Any, out: int
) -> None:
    """Write `count` patches from the `patch` rows at `pixels`, which are `stride` bytes apart.

    Reads `count` * `patch` pixels of each row. `table` is the address of
    (768,) int32, `formula` (2, 3) float32: scales and offsets.
    """
    if kind == _BYTES:
        _cut(_BYTES, patch, pixels, stride, count, table, formula, out)
    elif kind == _FLOAT32:
        _cut(_FLOAT32, patch, pixels, stride, count, table, formula, out)
    elif kind == _FLOAT16:
        _cut(_FLOAT16, patch, pixels, stride, count, table, formula, out)
    elif kind == _BFLOAT16:
        _cut(_BFLOAT16, patch, pixels, stride, count, table, formula, out)
    elif kind == _LOOKUP_32:
        _cut(_LOOKUP_32, patch, pixels, stride, count, table, formula, out)
    else:
        _cut(_LOOKUP_16, patch, pixels, stride, count, table, formula, out)


@inlined
def _cut(
    kind: int, patch: int, pixels: int, stride: int, count: int, table: int, formula: Any, out: int
) -> None:
    plane = patch * patch * _size(kind)
    scales = (
        broadcast_float(formula[0, 0]),
        broadcast_float(formula[0, 1]),
        broadcast_float(formula[0, 2]),
    )
    offsets = (
        broadcast_float(formula[1, 0]),
        broadcast_float(formula[1, 1]),
        broadcast_float(formula[1, 2]),
    )
    for n in range(count):
        source = pixels + n * patch * PIXEL_BYTES
        target = out + n * 3 * plane
        for _ in range(patch):
            for i in range(0, patch, LANES):
                x = min(i, patch - LANES)
                eight = load(source + x * PIXEL_BYTES)
                to = target + x * _size(kind)
                if kind == _BYTES:
                    store_three_quarters(to, to + plane, to + 2 * plane, planar(eight))
                else:
                    _put(kind, red(eight), table, scales[0], offsets[0], to)
                    _put(kind, green(eight), table + 1024, scales[1], offsets[1], to + plane)
                    _put(kind, blue(eight), table + 2048, scales[2], offsets[2], to + 2 * plane)
            source += stride
            target += patch * _size(kind)


@inlined
def _size(kind: int) -> int:
    """Bytes of a stored value."""
    if kind == _BYTES:
        return 1
    return 4 if kind in (_FLOAT32, _LOOKUP_32) else 2


@inlined
def _put(kind: int, values: Any, table: int, scale: Any, offset: Any, to: int) -> None:
    """Store eight values of one channel."""
    if kind == _LOOKUP_32:
        store(to, look_up(table, values))
    elif kind == _LOOKUP_16:
        store_low_halves_of_lanes(to, look_up(table, values))
    else:
        v = to_floats(values)
        unit = multiply_add(v, broadcast_float(_HIGH), multiply(v, broadcast_float(_LOW)))
        normalised = multiply_add(unit, scale, offset)
        if kind == _FLOAT32:
            store_floats(to, normalised)
        elif kind == _FLOAT16:
            store_as_float16(to, normalised)
        else:
            store_low_halves_of_lanes(to, to_bfloat16(normalised))
