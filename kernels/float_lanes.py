"""Vectors of eight float32 for numba that any CPU can have: what `simd.py` has for AVX2 alone.

Each operation is LLVM's own, which makes of it what the CPU has: one register
of 32 bytes, two of 16, or several instructions. So one kernel is compiled
everywhere, with the same bits: nothing is fused. Like `load`, `to_floats`,
`multiply`, `broadcast_float` and `to_bfloat16` of `simd.py`, which are LLVM's own
too, they take addresses, check nothing, and do not run with the JIT off.
"""
# ruff: noqa: PLR0913, PLR0917 - operations take addresses and steps, one by one

from collections.abc import Iterator
from typing import Any

from llvmlite import ir  # type: ignore[import-untyped]
from numba import types

from kernels.llvm import (
    F32X8,
    I8,
    I16X8,
    I32,
    I32X8,
    I64,
    LANES,
    VECTOR_BYTES,
    call,
    constant,
    f32x8,
    i32x8,
    int32,
    intp,
    operation,
    read,
    splat,
    write,
    write_past_caches,
)


@operation(f32x8, intp)
def load_floats(builder: Any, at: Any) -> Any:
    """32 bytes, at any alignment."""
    return read(builder, at, F32X8)


@operation(types.none, intp)
def prefetch(builder: Any, at: Any) -> None:
    """Have the cache line at an address, which may be any, brought near for a later load."""
    place = builder.inttoptr(at, ir.PointerType())
    call(builder, "llvm.prefetch.p0", ir.VoidType(), (place, *_TO_READ_SOON))


@operation(f32x8, intp)
def repeat_float(builder: Any, at: Any) -> Any:
    """The float at an address in all lanes."""
    return splat(builder, read(builder, at, ir.FloatType()), F32X8)


@operation(types.none, intp, f32x8)
def store_floats(builder: Any, at: Any, vector: Any) -> None:
    """32 bytes, at any alignment."""
    write(builder, at, vector)


@operation(types.none, intp, f32x8)
def store_floats_past_caches(builder: Any, at: Any, vector: Any) -> None:
    """The same to an address that 16 divides. See `order_memory`."""
    write_past_caches(builder, at, vector, VECTOR_BYTES // 2)


@operation(types.none, intp, f32x8, intp)
def store_first_floats(builder: Any, at: Any, vector: Any, count: Any) -> None:
    """The first `count` floats, at any alignment; what follows them is not touched."""
    _write_first(builder, at, vector, count, "llvm.masked.store.v8f32.p0")


@operation(types.none, intp, i32x8)
def store_halves(builder: Any, at: Any, vector: Any) -> None:
    """16 bytes: the lower 16 bits of each lane, at any alignment."""
    write(builder, at, builder.trunc(vector, I16X8))


@operation(types.none, intp, i32x8, intp)
def store_first_halves(builder: Any, at: Any, vector: Any, count: Any) -> None:
    """Those of the first `count` lanes; what follows them is not touched."""
    halves = builder.trunc(vector, I16X8)
    _write_first(builder, at, halves, count, "llvm.masked.store.v8i16.p0")


@operation(i32x8, intp)
def load_rgb(builder: Any, at: Any) -> Any:
    """24 bytes, eight pixels, as `load` has those of four channels: the fourth is any byte."""
    halves = [read(builder, builder.add(at, I64(skip)), _I8X16) for skip in (0, 8)]
    rgbx = builder.shuffle_vector(*halves, constant(I32, _RGBX))
    return builder.bitcast(rgbx, I32X8)


@operation(f32x8, i32x8, int32)
def channel(builder: Any, pixels: Any, bits: Any) -> Any:
    """Of eight pixels the bytes `bits` above their lowest: 0 for red, 8 for green, 16 for blue."""
    moved = builder.lshr(pixels, splat(builder, bits, I32X8))
    return builder.sitofp(builder.and_(moved, constant(I32, [0xFF] * LANES)), F32X8)


@operation(i32x8, f32x8)
def round_to_float16(builder: Any, vector: Any) -> Any:
    """Each lane to float16, ties to even, its bits in an int32; too large ones to infinity.

    Not for NaN. `simd.py` has it as one instruction, which not every CPU has.
    """
    bits = builder.bitcast(vector, I32X8)
    size = builder.and_(bits, _each(0x7FFFFFFF))
    sign = builder.and_(builder.lshr(bits, _each(16)), _each(0x8000))
    # Its last bit is 2^-24, float16's smallest number: the sum is rounded to multiples of it.
    half = ir.Constant(ir.FloatType(), 0.5)
    magic = builder.bitcast(ir.Constant(F32X8, [half] * LANES), I32X8)
    sum_ = builder.fadd(builder.bitcast(size, F32X8), builder.bitcast(magic, F32X8))
    small = builder.sub(builder.bitcast(sum_, I32X8), magic)
    odd = builder.and_(builder.lshr(size, _each(13)), _each(1))
    rounded = builder.add(builder.add(size, odd), _each(0xFFF - (112 << 23)))
    normal = builder.lshr(rounded, _each(13))
    infinity = _each(0x7C00)
    normal = builder.select(builder.icmp_signed("<", normal, infinity), normal, infinity)
    is_small = builder.icmp_signed("<", size, _each(113 << 23))
    return builder.or_(builder.select(is_small, small, normal), sign)


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


# LLVM's words for it: a read, to be kept in all caches, of data.
_TO_READ_SOON = I32(0), I32(3), I32(1)
_I8X16 = ir.VectorType(I8, 16)
# The first four pixels are in the first half, the others 4 bytes into the second; X is any byte.
_RGBX = [begin + 3 * n + c for begin in (0, 20) for n in range(4) for c in (0, 1, 2, 2)]


def _each(value: int) -> Any:
    return constant(I32, [value] * LANES)


def _write_first(builder: Any, at: Any, vector: Any, count: Any, name: str) -> None:
    lanes = builder.icmp_signed(
        "<", constant(I32, range(LANES)), splat(builder, builder.trunc(count, I32), I32X8)
    )
    place = builder.inttoptr(at, ir.PointerType())
    call(builder, name, ir.VoidType(), (vector, place, I32(1), lanes))


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
