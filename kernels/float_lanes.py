"""Vectors of eight float32 for numba that any CPU can have: what `simd.py` has for AVX2 alone.

Each operation is LLVM's own, which makes of it what the CPU has: one register
of 32 bytes, two of 16, or several instructions. So one kernel is compiled
everywhere, with the same bits: nothing is fused. Like `multiply` and
`broadcast_float` of `simd.py`, which are LLVM's own too, they take addresses,
check nothing, and do not run with the JIT off.
"""
# ruff: noqa: PLR0913, PLR0917 - operations take addresses and steps, one by one

from collections.abc import Iterator
from typing import Any

from numba import types

from kernels.llvm import (
    F32X8,
    I32,
    I64,
    LANES,
    VECTOR_BYTES,
    constant,
    f32x8,
    intp,
    operation,
    read,
    write,
    write_past_caches,
)


@operation(f32x8, intp)
def load_floats(builder: Any, at: Any) -> Any:
    """32 bytes, at any alignment."""
    return read(builder, at, F32X8)


@operation(types.none, intp, f32x8)
def store_floats(builder: Any, at: Any, vector: Any) -> None:
    """32 bytes, at any alignment."""
    write(builder, at, vector)


@operation(f32x8, f32x8, f32x8)
def add_floats(builder: Any, a: Any, b: Any) -> Any:
    """a + b, rounded once."""
    return builder.fadd(a, b)


@operation(types.none, intp, intp, intp, intp, intp)
def transpose(builder: Any, at: Any, step: Any, to: Any, further: Any, to_step: Any) -> None:
    """Eight rows of eight floats, `step` bytes apart, to eight columns, `to_step` bytes apart.

    Columns 0 to 3 begin at `to`, 4 to 7 at `further`. They are stored in order: where two
    overlap, the later one stays.
    """
    for place, column in _transposed(builder, at, step, to, further, to_step):
        write(builder, place, column)


@operation(types.none, intp, intp, intp, intp)
def transpose_past_caches(builder: Any, at: Any, step: Any, to: Any, to_step: Any) -> None:
    """The same to addresses that 16 divides, columns 4 to 7 after 0 to 3. See `order_memory`."""
    further = builder.add(to, builder.mul(to_step, I64(LANES // 2)))
    for place, column in _transposed(builder, at, step, to, further, to_step):
        write_past_caches(builder, place, column, VECTOR_BYTES // 2)


@operation(types.none)
def order_memory(builder: Any) -> None:
    """Before other threads may know: what went past the caches is in memory (mfence, dmb)."""
    builder.fence("seq_cst")


def _transposed(
    builder: Any, at: Any, step: Any, to: Any, further: Any, to_step: Any
) -> Iterator[tuple[Any, Any]]:
    """Eight addresses and what belongs there."""
    rows = [read(builder, _plus(builder, at, step, row), F32X8) for row in range(LANES)]
    # Each step doubles what lies together of a column: within halves, then across them.
    twos = [each for n in (0, 2, 4, 6) for each in _zip(builder, rows[n], rows[n + 1], _ONES)]
    fours = [each for n in (0, 1, 4, 5) for each in _zip(builder, twos[n], twos[n + 2], _TWOS)]
    wholes = [_zip(builder, fours[n], fours[n + 4], _FOURS) for n in range(4)]
    for begin, columns in zip((to, further), zip(*wholes, strict=True), strict=True):
        for n, column in enumerate(columns):
            yield _plus(builder, begin, to_step, n), column


# Places in two vectors, the second's from 8 on: what `_zip` lays together, in two results.
_ONES = (0, 8, 1, 9, 4, 12, 5, 13), (2, 10, 3, 11, 6, 14, 7, 15)
_TWOS = (0, 1, 8, 9, 4, 5, 12, 13), (2, 3, 10, 11, 6, 7, 14, 15)
_FOURS = (0, 1, 2, 3, 8, 9, 10, 11), (4, 5, 6, 7, 12, 13, 14, 15)


def _zip(builder: Any, a: Any, b: Any, places: tuple[tuple[int, ...], ...]) -> list[Any]:
    return [builder.shuffle_vector(a, b, constant(I32, each)) for each in places]


def _plus(builder: Any, at: Any, step: Any, times: int) -> Any:
    return builder.add(at, builder.mul(step, I64(times)))
