"""256-bit vectors for numba: the few operations that the fast kernels are made of.

A vector is 32 bytes, one AVX2 register, as `i32x8` (eight int32) or `f32x8`
(eight float32). Inside a compiled function a call of an operation below becomes
the one instruction that its docstring names; there is no loop, no check and no
Python. Nothing here runs as Python, and compiling it for a CPU without AVX2,
FMA or F16C aborts the process: `cpu.py` asks first.

An address is an integer. `load` and `store` touch the bytes that they name and
nothing else, at any alignment, and check nothing: who calls them must know the
buffer. `address` gives a buffer's first byte.

AVX2 is two halves of 16 bytes side by side. An operation that moves bytes
(interleave, pack, shuffle) does so within each half; the docstrings write
vectors as [low half | high half].

How to add one: write its LLVM in a function of the builder and the operands,
and name its types in `operation`: the result first. LLVM's own vector
instructions are preferred to those of x86; names that begin with `llvm.x86`
are the ones that LLVM cannot express.
"""

from typing import Any

from llvmlite import ir  # type: ignore[import-untyped]
from numba import types
from numba.extending import intrinsic

from kernels.llvm import (
    F32X8,
    I8,
    I8X32,
    I16X8,
    I16X16,
    I32,
    I32X4,
    I32X8,
    I64,
    I64X4,
    VECTOR_BYTES,
    call,
    constant,
    f32x8,
    i32x8,
    int32,
    intp,
    operation,
    pick_bytes,
    pick_lanes,
    read,
    splat,
    write,
    write_past_caches,
    zero,
)


def _address(_context: Any, array: Any) -> Any:
    """The address of an array's first byte, as a signed integer."""

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        struct = context.make_array(signature.args[0])(context, builder, values[0])
        return builder.ptrtoint(struct.data, I64)

    return intp(array), generate


address: Any = intrinsic(_address)


# --- memory ---


@operation(i32x8, intp)
def load(builder: Any, at: Any) -> Any:
    """32 bytes (vmovdqu)."""
    return read(builder, at, I32X8)


@operation(i32x8, intp, intp)
def load_halves(builder: Any, low: Any, high: Any) -> Any:
    """[16 bytes at low | 16 bytes at high] (vmovdqu, vinserti128)."""
    halves = read(builder, low, I32X4), read(builder, high, I32X4)
    return builder.shuffle_vector(*halves, constant(I32, range(8)))


@operation(int32, intp)
def load_int32(builder: Any, at: Any) -> Any:
    """4 bytes as an int32 (mov; with `broadcast` one vpbroadcastd)."""
    return read(builder, at, I32)


@operation(intp, intp)
def load_int64(builder: Any, at: Any) -> Any:
    """8 bytes as an integer (mov)."""
    return read(builder, at, I64)


@operation(intp, intp)
def load_byte(builder: Any, at: Any) -> Any:
    """1 byte as an integer of 0 to 255 (movzx)."""
    return builder.zext(read(builder, at, I8), I64)


@operation(i32x8, intp)
def load_eight_bytes(builder: Any, at: Any) -> Any:
    """8 bytes, each as an int32 of 0 to 255 (vpmovzxbd)."""
    return builder.zext(read(builder, at, ir.VectorType(I8, 8)), I32X8)


@operation(types.none, intp, i32x8)
def store(builder: Any, at: Any, vector: Any) -> None:
    """32 bytes (vmovdqu)."""
    write(builder, at, vector)


@operation(types.none, intp, i32x8)
def stream(builder: Any, at: Any, vector: Any) -> None:
    """32 bytes to an address that 32 divides, past the caches (vmovntdq). See `fence`."""
    write_past_caches(builder, at, vector, VECTOR_BYTES)


@operation(types.none)
def fence(builder: Any) -> None:
    """Before other threads may know: what was streamed is in memory (sfence)."""
    call(builder, "llvm.x86.sse.sfence", ir.VoidType(), ())


@operation(types.none, intp, intp, i32x8)
def store_halves(builder: Any, low: Any, high: Any, vector: Any) -> None:
    """The low 16 bytes to `low`, the high 16 to `high` (vmovdqu, vextracti128)."""
    write(builder, low, pick_lanes(builder, vector, I32, range(4)))
    write(builder, high, pick_lanes(builder, vector, I32, range(4, 8)))


@operation(types.none, intp, intp, intp, i32x8)
def store_three_quarters(builder: Any, first: Any, second: Any, third: Any, vector: Any) -> None:
    """Bytes 0 to 7, 8 to 15 and 16 to 23, each to a place of its own (vmovq, vmovhps)."""
    quarters = builder.bitcast(vector, I64X4)
    for index, at in enumerate((first, second, third)):
        write(builder, at, builder.extract_element(quarters, I32(index)))


@operation(types.none, intp, i32x8)
def store_low_halves_of_lanes(builder: Any, at: Any, vector: Any) -> None:
    """The low 16 bits of each int32: 16 bytes. Lanes hold 0 to 65535 (vpackusdw, vpermq)."""
    write(builder, at, builder.trunc(vector, I16X8))


@operation(types.none, intp, i32x8)
def stream_low_halves_of_lanes(builder: Any, at: Any, vector: Any) -> None:
    """The same to an address that 16 divides, past the caches."""
    write_past_caches(builder, at, builder.trunc(vector, I16X8), 16)


@operation(types.none, intp, intp)
def store_byte(builder: Any, at: Any, value: Any) -> None:
    """The lowest byte of an integer (mov)."""
    write(builder, at, builder.trunc(value, I8))


@operation(types.none, intp, intp)
def store_int64(builder: Any, at: Any, value: Any) -> None:
    """8 bytes (mov)."""
    write(builder, at, value)


# --- integers ---


@operation(i32x8, int32)
def broadcast(builder: Any, value: Any) -> Any:
    """The same int32 in all lanes (vpbroadcastd)."""
    return splat(builder, value, I32X8)


@operation(i32x8, i32x8, i32x8)
def add(builder: Any, a: Any, b: Any) -> Any:
    """a + b in each int32 lane, wrapping (vpaddd)."""
    return builder.add(a, b)


@operation(i32x8, i32x8, i32x8, i32x8)
def add_products(builder: Any, total: Any, a: Any, b: Any) -> Any:
    """total + a.low * b.low + a.high * b.high in each int32 lane; low and high are its int16 parts.

    vpmaddwd and vpaddd, which LLVM makes one vpdpwssd where the CPU has VNNI.
    """
    words = builder.bitcast(a, I16X16), builder.bitcast(b, I16X16)
    return builder.add(total, call(builder, "llvm.x86.avx2.pmadd.wd", I32X8, words))


@operation(i32x8, i32x8, int32)
def shift_left(builder: Any, vector: Any, bits: Any) -> Any:
    """Each int32 lane times 2**bits, wrapping (vpslld)."""
    return builder.shl(vector, splat(builder, bits, I32X8))


@operation(i32x8, i32x8, int32)
def shift_right(builder: Any, vector: Any, bits: Any) -> Any:
    """Each int32 lane divided by 2**bits, rounded down (vpsrad)."""
    return builder.ashr(vector, splat(builder, bits, I32X8))


@operation(i32x8, i32x8, i32x8)
def pack_to_int16(builder: Any, a: Any, b: Any) -> Any:
    """[a, b | a, b], each int32 as int16, clipped to its range (vpackssdw)."""
    packed = call(builder, "llvm.x86.avx2.packssdw", I16X16, (a, b))
    return builder.bitcast(packed, I32X8)


@operation(i32x8, i32x8, i32x8)
def pack_to_uint8(builder: Any, a: Any, b: Any) -> Any:
    """[a, b | a, b], each int16 as uint8, clipped to 0 to 255 (vpackuswb)."""
    words = builder.bitcast(a, I16X16), builder.bitcast(b, I16X16)
    return builder.bitcast(call(builder, "llvm.x86.avx2.packuswb", I8X32, words), I32X8)


# --- bytes ---


@operation(i32x8, i32x8, i32x8)
def interleave_low(builder: Any, a: Any, b: Any) -> Any:
    """[a0 b0 … a7 b7 | a16 b16 … a23 b23], bytes (vpunpcklbw)."""
    return pick_bytes(builder, a, b, _interleaved(0))


@operation(i32x8, i32x8, i32x8)
def interleave_high(builder: Any, a: Any, b: Any) -> Any:
    """[a8 b8 … a15 b15 | a24 b24 … a31 b31], bytes (vpunpckhbw)."""
    return pick_bytes(builder, a, b, _interleaved(8))


def _interleaved(first: int) -> list[int]:
    return [
        half + first + byte + source for half in (0, 16) for byte in range(8) for source in (0, 32)
    ]


_ZERO = 32
"""Among the places of bytes, the first byte of the second vector, which is zero."""


def _pair_of_pixels(first: int) -> Any:
    @operation(i32x8, i32x8)
    def pair(builder: Any, pixels: Any) -> Any:
        """Of each half's four pixels two neighbours: lane c is (p[c], q[c]) as int16 (vpshufb)."""
        return pick_bytes(
            builder,
            pixels,
            zero(I32X8),
            (
                place
                for half in (0, 16)
                for c in range(4)
                for pixel in (first, first + 1)
                for place in (half + 4 * pixel + c, _ZERO)
            ),
        )

    return pair


first_pair = _pair_of_pixels(0)
"""Pixels 0 and 1 of each half's four."""
second_pair = _pair_of_pixels(2)
"""Pixels 2 and 3 of each half's four."""


@operation(i32x8, i32x8)
def planar(builder: Any, pixels: Any) -> Any:
    """Eight RGBX pixels as R0…R7 G0…G7 | B0…B7 X0…X7 (vpshufb, vpermd)."""
    return pick_bytes(
        builder, pixels, pixels, (4 * pixel + c for c in range(4) for pixel in range(8))
    )


@operation(i32x8, i32x8)
def rgb_to_rgbx(builder: Any, pixels: Any) -> Any:
    """Of each half's first 12 bytes, four RGB pixels, four RGBX pixels; X is zero (vpshufb)."""
    places = (
        half + 3 * pixel + c if c < 3 else _ZERO
        for half in (0, 16)
        for pixel in range(4)
        for c in range(4)
    )
    return pick_bytes(builder, pixels, zero(I32X8), places)


# --- floats ---


@operation(f32x8, types.float32)
def broadcast_float(builder: Any, value: Any) -> Any:
    """The same float32 in all lanes (vbroadcastss)."""
    return splat(builder, value, F32X8)


@operation(f32x8, i32x8)
def as_floats(builder: Any, vector: Any) -> Any:
    """The same bits as float32 (no instruction)."""
    return builder.bitcast(vector, F32X8)


@operation(i32x8, f32x8)
def as_integers(builder: Any, vector: Any) -> Any:
    """The same bits as int32 (no instruction)."""
    return builder.bitcast(vector, I32X8)


@operation(f32x8, i32x8)
def to_floats(builder: Any, vector: Any) -> Any:
    """Each int32 lane as float32 (vcvtdq2ps)."""
    return builder.sitofp(vector, F32X8)


@operation(f32x8, f32x8, f32x8)
def multiply(builder: Any, a: Any, b: Any) -> Any:
    """a * b, rounded once (vmulps)."""
    return builder.fmul(a, b)


@operation(f32x8, f32x8, f32x8, f32x8)
def multiply_add(builder: Any, a: Any, b: Any, c: Any) -> Any:
    """a * b + c, rounded once (vfmadd)."""
    return call(builder, "llvm.fma.v8f32", F32X8, (a, b, c))


@operation(i32x8, f32x8)
def to_float16(builder: Any, vector: Any) -> Any:
    """Each lane to float16, ties to even, its bits in an int32 (vcvtps2ph)."""
    ties_to_even = I32(0)
    name = "llvm.x86.vcvtps2ph.256"
    halves = call(builder, name, I16X8, (vector, ties_to_even))
    return builder.zext(halves, I32X8)


@operation(i32x8, f32x8)
def to_bfloat16(builder: Any, vector: Any) -> Any:
    """Each lane to bfloat16, ties to even, its bits in an int32; not for NaN (vpsrld, vpaddd …)."""
    bits = builder.bitcast(vector, I32X8)
    sixteen = constant(I32, [16] * 8)
    even = builder.and_(builder.lshr(bits, sixteen), constant(I32, [1] * 8))
    half = builder.add(even, constant(I32, [0x7FFF] * 8))
    return builder.lshr(builder.add(bits, half), sixteen)


@operation(i32x8, intp, i32x8)
def look_up(builder: Any, table: Any, index: Any) -> Any:
    """The int32 at `table` + 4 * index, for each lane (vpgatherdd)."""
    base = builder.inttoptr(table, ir.PointerType())
    operands = (zero(I32X8), base, index, constant(I32, [-1] * 8), I8(4))
    return call(builder, "llvm.x86.avx2.gather.d.d.256", I32X8, operands)
