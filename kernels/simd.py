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
and name its types in `_operation`: the result first. LLVM's own vector
instructions are preferred to those of x86; names that begin with `llvm.x86`
are the ones that LLVM cannot express.
"""

from collections.abc import Callable, Iterable
from functools import wraps
from typing import Any

from llvmlite import ir  # type: ignore[import-untyped]
from numba import types
from numba.extending import intrinsic, models, register_model

VECTOR_BYTES = 32

_I8, _I16, _I32, _I64 = (ir.IntType(bits) for bits in (8, 16, 32, 64))
_I8X32, _I16X16, _I32X8 = ir.VectorType(_I8, 32), ir.VectorType(_I16, 16), ir.VectorType(_I32, 8)
_I16X8 = ir.VectorType(_I16, 8)
_I32X4, _I64X4 = ir.VectorType(_I32, 4), ir.VectorType(_I64, 4)
_F32X8 = ir.VectorType(ir.FloatType(), 8)


def _vector_type(name: str, llvm_type: Any) -> Any:
    """A numba type whose values are `llvm_type`, kept in registers."""
    kind = type(name, (types.Type,), {})

    @register_model(kind)
    class _Model(models.PrimitiveModel):
        def __init__(self, manager: Any, of: Any) -> None:
            initialise: Any = super().__init__
            initialise(manager, of, llvm_type)

    return kind(name)


i32x8 = _vector_type("i32x8", _I32X8)
f32x8 = _vector_type("f32x8", _F32X8)
_int32, _intp = types.int32, types.intp


def _operation(result: Any, *operands: Any) -> Callable[[Callable[..., Any]], Any]:
    """Make `lower(builder, *values)` callable from compiled code, with these types."""

    def declare(lower: Callable[..., Any]) -> Any:
        def generate(context: Any, builder: Any, _signature: Any, values: Any) -> Any:
            value = lower(builder, *values)
            return context.get_dummy_value() if result is types.none else value

        @wraps(lower)
        def typed(_context: Any, *_arguments: Any) -> Any:
            return result(*operands), generate

        return intrinsic(typed)

    return declare


def _address(_context: Any, array: Any) -> Any:
    """The address of an array's first byte, as a signed integer."""

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        struct = context.make_array(signature.args[0])(context, builder, values[0])
        return builder.ptrtoint(struct.data, _I64)

    return _intp(array), generate


address: Any = intrinsic(_address)


# --- memory ---


@_operation(i32x8, _intp)
def load(builder: Any, at: Any) -> Any:
    """32 bytes (vmovdqu)."""
    return _load(builder, at, _I32X8)


@_operation(i32x8, _intp, _intp)
def load_halves(builder: Any, low: Any, high: Any) -> Any:
    """[16 bytes at low | 16 bytes at high] (vmovdqu, vinserti128)."""
    halves = _load(builder, low, _I32X4), _load(builder, high, _I32X4)
    return builder.shuffle_vector(*halves, _constant(_I32, range(8)))


@_operation(_int32, _intp)
def load_int32(builder: Any, at: Any) -> Any:
    """4 bytes as an int32 (mov; with `broadcast` one vpbroadcastd)."""
    return _load(builder, at, _I32)


@_operation(_intp, _intp)
def load_int64(builder: Any, at: Any) -> Any:
    """8 bytes as an integer (mov)."""
    return _load(builder, at, _I64)


@_operation(_intp, _intp)
def load_byte(builder: Any, at: Any) -> Any:
    """1 byte as an integer of 0 to 255 (movzx)."""
    return builder.zext(_load(builder, at, _I8), _I64)


@_operation(i32x8, _intp)
def load_eight_bytes(builder: Any, at: Any) -> Any:
    """8 bytes, each as an int32 of 0 to 255 (vpmovzxbd)."""
    return builder.zext(_load(builder, at, ir.VectorType(_I8, 8)), _I32X8)


@_operation(types.none, _intp, i32x8)
def store(builder: Any, at: Any, vector: Any) -> None:
    """32 bytes (vmovdqu)."""
    _store(builder, at, vector)


@_operation(types.none, _intp, i32x8)
def stream(builder: Any, at: Any, vector: Any) -> None:
    """32 bytes to an address that 32 divides, past the caches (vmovntdq). See `fence`."""
    _stream(builder, at, vector, VECTOR_BYTES)


@_operation(types.none)
def fence(builder: Any) -> None:
    """Before other threads may know: what was streamed is in memory (sfence)."""
    _call(builder, "llvm.x86.sse.sfence", ir.VoidType(), ())


@_operation(types.none, _intp, _intp, i32x8)
def store_halves(builder: Any, low: Any, high: Any, vector: Any) -> None:
    """The low 16 bytes to `low`, the high 16 to `high` (vmovdqu, vextracti128)."""
    _store(builder, low, _lanes(builder, vector, _I32, range(4)))
    _store(builder, high, _lanes(builder, vector, _I32, range(4, 8)))


@_operation(types.none, _intp, _intp, _intp, i32x8)
def store_three_quarters(builder: Any, first: Any, second: Any, third: Any, vector: Any) -> None:
    """Bytes 0 to 7, 8 to 15 and 16 to 23, each to a place of its own (vmovq, vmovhps)."""
    quarters = builder.bitcast(vector, _I64X4)
    for index, at in enumerate((first, second, third)):
        _store(builder, at, builder.extract_element(quarters, _I32(index)))


@_operation(types.none, _intp, i32x8)
def store_low_halves_of_lanes(builder: Any, at: Any, vector: Any) -> None:
    """The low 16 bits of each int32: 16 bytes. Lanes hold 0 to 65535 (vpackusdw, vpermq)."""
    _store(builder, at, builder.trunc(vector, _I16X8))


@_operation(types.none, _intp, i32x8)
def stream_low_halves_of_lanes(builder: Any, at: Any, vector: Any) -> None:
    """The same to an address that 16 divides, past the caches."""
    _stream(builder, at, builder.trunc(vector, _I16X8), 16)


@_operation(types.none, _intp, _intp)
def store_byte(builder: Any, at: Any, value: Any) -> None:
    """The lowest byte of an integer (mov)."""
    _store(builder, at, builder.trunc(value, _I8))


@_operation(types.none, _intp, _intp)
def store_int64(builder: Any, at: Any, value: Any) -> None:
    """8 bytes (mov)."""
    _store(builder, at, value)


# --- integers ---


@_operation(i32x8, _int32)
def broadcast(builder: Any, value: Any) -> Any:
    """The same int32 in all lanes (vpbroadcastd)."""
    return _splat(builder, value, _I32X8)


@_operation(i32x8, i32x8, i32x8)
def add(builder: Any, a: Any, b: Any) -> Any:
    """a + b in each int32 lane, wrapping (vpaddd)."""
    return builder.add(a, b)


@_operation(i32x8, i32x8, i32x8, i32x8)
def add_products(builder: Any, total: Any, a: Any, b: Any) -> Any:
    """total + a.low * b.low + a.high * b.high in each int32 lane; low and high are its int16 parts.

    vpmaddwd and vpaddd, which LLVM makes one vpdpwssd where the CPU has VNNI.
    """
    words = builder.bitcast(a, _I16X16), builder.bitcast(b, _I16X16)
    return builder.add(total, _call(builder, "llvm.x86.avx2.pmadd.wd", _I32X8, words))


@_operation(i32x8, i32x8, _int32)
def shift_left(builder: Any, vector: Any, bits: Any) -> Any:
    """Each int32 lane times 2**bits, wrapping (vpslld)."""
    return builder.shl(vector, _splat(builder, bits, _I32X8))


@_operation(i32x8, i32x8, _int32)
def shift_right(builder: Any, vector: Any, bits: Any) -> Any:
    """Each int32 lane divided by 2**bits, rounded down (vpsrad)."""
    return builder.ashr(vector, _splat(builder, bits, _I32X8))


@_operation(i32x8, i32x8, i32x8)
def pack_to_int16(builder: Any, a: Any, b: Any) -> Any:
    """[a, b | a, b], each int32 as int16, clipped to its range (vpackssdw)."""
    packed = _call(builder, "llvm.x86.avx2.packssdw", _I16X16, (a, b))
    return builder.bitcast(packed, _I32X8)


@_operation(i32x8, i32x8, i32x8)
def pack_to_uint8(builder: Any, a: Any, b: Any) -> Any:
    """[a, b | a, b], each int16 as uint8, clipped to 0 to 255 (vpackuswb)."""
    words = builder.bitcast(a, _I16X16), builder.bitcast(b, _I16X16)
    return builder.bitcast(_call(builder, "llvm.x86.avx2.packuswb", _I8X32, words), _I32X8)


# --- bytes ---


@_operation(i32x8, i32x8, i32x8)
def interleave_low(builder: Any, a: Any, b: Any) -> Any:
    """[a0 b0 … a7 b7 | a16 b16 … a23 b23], bytes (vpunpcklbw)."""
    return _bytes(builder, a, b, _interleaved(0))


@_operation(i32x8, i32x8, i32x8)
def interleave_high(builder: Any, a: Any, b: Any) -> Any:
    """[a8 b8 … a15 b15 | a24 b24 … a31 b31], bytes (vpunpckhbw)."""
    return _bytes(builder, a, b, _interleaved(8))


def _interleaved(first: int) -> list[int]:
    return [
        half + first + byte + source for half in (0, 16) for byte in range(8) for source in (0, 32)
    ]


_ZERO = 32
"""Among the places of bytes, the first byte of the second vector, which is zero."""


def _pair_of_pixels(first: int) -> Any:
    @_operation(i32x8, i32x8)
    def pair(builder: Any, pixels: Any) -> Any:
        """Of each half's four pixels two neighbours: lane c is (p[c], q[c]) as int16 (vpshufb)."""
        return _bytes(
            builder,
            pixels,
            _zero(_I32X8),
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


@_operation(i32x8, i32x8)
def planar(builder: Any, pixels: Any) -> Any:
    """Eight RGBX pixels as R0…R7 G0…G7 | B0…B7 X0…X7 (vpshufb, vpermd)."""
    return _bytes(builder, pixels, pixels, (4 * pixel + c for c in range(4) for pixel in range(8)))


@_operation(i32x8, i32x8)
def rgb_to_rgbx(builder: Any, pixels: Any) -> Any:
    """Of each half's first 12 bytes, four RGB pixels, four RGBX pixels; X is zero (vpshufb)."""
    places = (
        half + 3 * pixel + c if c < 3 else _ZERO
        for half in (0, 16)
        for pixel in range(4)
        for c in range(4)
    )
    return _bytes(builder, pixels, _zero(_I32X8), places)


# --- floats ---


@_operation(f32x8, types.float32)
def broadcast_float(builder: Any, value: Any) -> Any:
    """The same float32 in all lanes (vbroadcastss)."""
    return _splat(builder, value, _F32X8)


@_operation(f32x8, i32x8)
def as_floats(builder: Any, vector: Any) -> Any:
    """The same bits as float32 (no instruction)."""
    return builder.bitcast(vector, _F32X8)


@_operation(i32x8, f32x8)
def as_integers(builder: Any, vector: Any) -> Any:
    """The same bits as int32 (no instruction)."""
    return builder.bitcast(vector, _I32X8)


@_operation(f32x8, i32x8)
def to_floats(builder: Any, vector: Any) -> Any:
    """Each int32 lane as float32 (vcvtdq2ps)."""
    return builder.sitofp(vector, _F32X8)


@_operation(f32x8, f32x8, f32x8)
def multiply(builder: Any, a: Any, b: Any) -> Any:
    """a * b, rounded once (vmulps)."""
    return builder.fmul(a, b)


@_operation(f32x8, f32x8, f32x8, f32x8)
def multiply_add(builder: Any, a: Any, b: Any, c: Any) -> Any:
    """a * b + c, rounded once (vfmadd)."""
    return _call(builder, "llvm.fma.v8f32", _F32X8, (a, b, c))


@_operation(i32x8, f32x8)
def to_float16(builder: Any, vector: Any) -> Any:
    """Each lane to float16, ties to even, its bits in an int32 (vcvtps2ph)."""
    ties_to_even = _I32(0)
    name = "llvm.x86.vcvtps2ph.256"
    halves = _call(builder, name, _I16X8, (vector, ties_to_even))
    return builder.zext(halves, _I32X8)


@_operation(i32x8, f32x8)
def to_bfloat16(builder: Any, vector: Any) -> Any:
    """Each lane to bfloat16, ties to even, its bits in an int32; not for NaN (vpsrld, vpaddd …)."""
    bits = builder.bitcast(vector, _I32X8)
    sixteen = _constant(_I32, [16] * 8)
    even = builder.and_(builder.lshr(bits, sixteen), _constant(_I32, [1] * 8))
    half = builder.add(even, _constant(_I32, [0x7FFF] * 8))
    return builder.lshr(builder.add(bits, half), sixteen)


@_operation(i32x8, _intp, i32x8)
def look_up(builder: Any, table: Any, index: Any) -> Any:
    """The int32 at `table` + 4 * index, for each lane (vpgatherdd)."""
    base = builder.inttoptr(table, ir.PointerType())
    operands = (_zero(_I32X8), base, index, _constant(_I32, [-1] * 8), _I8(4))
    return _call(builder, "llvm.x86.avx2.gather.d.d.256", _I32X8, operands)


# --- how they are written ---


def _load(builder: Any, at: Any, llvm_type: Any) -> Any:
    return builder.load(builder.inttoptr(at, ir.PointerType()), align=1, typ=llvm_type)


def _store(builder: Any, at: Any, value: Any) -> None:
    builder.store(value, builder.inttoptr(at, ir.PointerType()), align=1)


def _stream(builder: Any, at: Any, value: Any, alignment: int) -> None:
    made = builder.store(value, builder.inttoptr(at, ir.PointerType()), align=alignment)
    made.set_metadata("nontemporal", builder.module.add_metadata([_I32(1)]))


def _constant(element: Any, values: Iterable[int]) -> Any:
    constants = [element(value) for value in values]
    return ir.Constant(ir.VectorType(element, len(constants)), constants)


def _zero(vector_type: Any) -> Any:
    return ir.Constant(vector_type, None)


def _splat(builder: Any, value: Any, vector_type: Any) -> Any:
    undefined = ir.Constant(vector_type, ir.Undefined)
    one = builder.insert_element(undefined, value, _I32(0))
    return builder.shuffle_vector(one, undefined, _constant(_I32, [0] * vector_type.count))


def _lanes(builder: Any, vector: Any, index: Any, lanes: Iterable[int]) -> Any:
    return builder.shuffle_vector(vector, vector, _constant(index, lanes))


def _bytes(builder: Any, a: Any, b: Any, places: Iterable[int]) -> Any:
    """The bytes at `places`: 0 to 31 are those of `a`, 32 to 63 those of `b`."""
    both = builder.bitcast(a, _I8X32), builder.bitcast(b, _I8X32)
    return builder.bitcast(builder.shuffle_vector(*both, _constant(_I32, places)), _I32X8)


def _call(builder: Any, name: str, result: Any, operands: Iterable[Any]) -> Any:
    values = list(operands)
    function = builder.module.globals.get(name)
    if function is None:
        kind = ir.FunctionType(result, [value.type for value in values])
        function = ir.Function(builder.module, kind, name)
    return builder.call(function, values)
