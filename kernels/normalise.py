"""Make stored values of the bytes of patches, in the order that they lie in.

The address of bytes comes in and that of values; what becomes of a byte is a
`Kind`: itself, a formula that gives the table's value, or the table itself.
Whether a formula holds for a table is not decided here (`recipe.py` does).

A vector may hold the end of one channel and the beginning of the next. A
formula is the same for all channels; which part of the table is a channel's
lies in memory for each place of a patch, and for eight places more.
"""
# ruff: noqa: PLR0913, PLR0917 - kernels take addresses and integers, one by one

from enum import IntEnum
from typing import Any

import numpy as np

from kernels.jit import called, inlined
from kernels.llvm import LANES, VECTOR_BYTES
from kernels.simd import (
    add,
    as_integers,
    broadcast_float,
    load,
    load_eight_bytes,
    look_up,
    multiply,
    multiply_add,
    store,
    store_low_halves_of_lanes,
    stream,
    stream_low_halves_of_lanes,
    to_bfloat16,
    to_float16,
    to_floats,
)


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
def normalise(
    kind: int, streamed: int, values: int, begin: int, end: int, total: int, patch: Any, out: int
) -> Any:
    """Make values of the bytes from number `begin` to about `end`, of `total`; the next `begin`.

    `values` and `out` are the addresses of byte and value number 0. Whole
    vectors are made: some bytes before `end` may be left for the next call,
    but none when `end` is `total`, which is LANES or more. `patch` is a
    `job.Patch`. With `streamed` the values go past the caches.
    """
    if kind == _FLOAT32:
        return _normalise(_FLOAT32, streamed, values, begin, end, total, patch, out)
    if kind == _FLOAT16:
        return _normalise(_FLOAT16, streamed, values, begin, end, total, patch, out)
    if kind == _BFLOAT16:
        return _normalise(_BFLOAT16, streamed, values, begin, end, total, patch, out)
    if kind == _LOOKUP_32:
        return _normalise(_LOOKUP_32, streamed, values, begin, end, total, patch, out)
    if kind == _LOOKUP_16:
        return _normalise(_LOOKUP_16, streamed, values, begin, end, total, patch, out)
    return _normalise(_BYTES, streamed, values, begin, end, total, patch, out)


@inlined
def _normalise(
    kind: int, streamed: int, values: int, begin: int, end: int, total: int, patch: Any, out: int
) -> int:
    size, step = _size(kind), _step(kind)
    i = begin
    if i == 0 and end >= step:
        # The first values as they come; from there on, or from one of them, in whole vectors.
        _put(kind, 0, values, 0, patch, out)
        i = -out % (step * size) // size
        if i == 0:
            i = step
    if streamed:
        i = _vectors(kind, 1, values, i, end, patch, out)
    else:
        i = _vectors(kind, 0, values, i, end, patch, out)
    if end == total and i < end:
        i = end - step  # some of them once more
        _put(kind, 0, values + i, i % patch.elements, patch, out + i * size)
        i = end
    return i


@inlined
def _vectors(
    kind: int, streamed: int, values: int, begin: int, end: int, patch: Any, out: int
) -> int:
    step, size = _step(kind), _size(kind)
    i = begin
    if kind in (_LOOKUP_32, _LOOKUP_16):
        place = begin % patch.elements
        while i + step <= end:
            _put(kind, streamed, values + i, place, patch, out + i * size)
            i += step
            place += step
            if place >= patch.elements:
                place -= patch.elements
        return i
    while i + 4 * step <= end:
        for n in range(4):
            _put(kind, streamed, values + i + n * step, 0, patch, out + (i + n * step) * size)
        i += 4 * step
    while i + step <= end:
        _put(kind, streamed, values + i, 0, patch, out + i * size)
        i += step
    return i


@inlined
def _step(kind: int) -> int:
    return VECTOR_BYTES if kind == _BYTES else LANES


@inlined
def _size(kind: int) -> int:
    """Bytes of a stored value."""
    if kind == _BYTES:
        return 1
    return 4 if kind in (_FLOAT32, _LOOKUP_32) else 2


@inlined
def _put(kind: int, streamed: int, values: int, place: int, patch: Any, to: int) -> None:
    """Make one vector of values. Streamed, `to` is a multiple of its bytes."""
    if kind == _BYTES:
        made = load(values)
    elif kind in (_LOOKUP_32, _LOOKUP_16):
        index = add(load_eight_bytes(values), load(patch.channels + 4 * place))
        made = look_up(patch.table, index)
    else:
        v = to_floats(load_eight_bytes(values))
        unit = multiply_add(v, broadcast_float(_HIGH), multiply(v, broadcast_float(_LOW)))
        normalised = multiply_add(unit, patch.scale, patch.offset)
        if kind == _FLOAT32:
            made = as_integers(normalised)
        elif kind == _FLOAT16:
            made = to_float16(normalised)
        else:
            made = to_bfloat16(normalised)
    if kind in (_FLOAT16, _BFLOAT16, _LOOKUP_16):
        if streamed:
            stream_low_halves_of_lanes(to, made)
        else:
            store_low_halves_of_lanes(to, made)
    elif streamed:
        stream(to, made)
    else:
        store(to, made)
