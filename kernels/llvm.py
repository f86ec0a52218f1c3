"""How the vector operations are made: types for numba, LLVM for what they do.

For `simd.py` alone. A function of LLVM's builder and of the operands' values
comes in, something that compiled functions can call goes out (`operation`).
The other functions write the LLVM that several operations share.
"""

from collections.abc import Callable, Iterable
from functools import wraps
from typing import Any

from llvmlite import ir  # type: ignore[import-untyped]
from numba import types
from numba.extending import intrinsic, models, register_model

VECTOR_BYTES, LANES = 32, 8

I8, I16, I32, I64 = (ir.IntType(bits) for bits in (8, 16, 32, 64))
I8X32, I16X16, I32X8 = ir.VectorType(I8, 32), ir.VectorType(I16, 16), ir.VectorType(I32, 8)
I16X8 = ir.VectorType(I16, 8)
I32X4, I64X4 = ir.VectorType(I32, 4), ir.VectorType(I64, 4)
F32X8 = ir.VectorType(ir.FloatType(), 8)


def _vector_type(name: str, llvm_type: Any) -> Any:
    """A numba type whose values are `llvm_type`, kept in registers."""
    kind = type(name, (types.Type,), {})

    @register_model(kind)
    class _Model(models.PrimitiveModel):
        def __init__(self, manager: Any, of: Any) -> None:
            initialise: Any = super().__init__
            initialise(manager, of, llvm_type)

    return kind(name)


i32x8 = _vector_type("i32x8", I32X8)
f32x8 = _vector_type("f32x8", F32X8)
int32, intp = types.int32, types.intp


def operation(result: Any, *operands: Any) -> Callable[[Callable[..., Any]], Any]:
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


def read(builder: Any, at: Any, llvm_type: Any) -> Any:
    return builder.load(builder.inttoptr(at, ir.PointerType()), align=1, typ=llvm_type)


def write(builder: Any, at: Any, value: Any) -> None:
    builder.store(value, builder.inttoptr(at, ir.PointerType()), align=1)


def write_past_caches(builder: Any, at: Any, value: Any, alignment: int) -> None:
    made = builder.store(value, builder.inttoptr(at, ir.PointerType()), align=alignment)
    made.set_metadata("nontemporal", builder.module.add_metadata([I32(1)]))


def constant(element: Any, values: Iterable[int]) -> Any:
    constants = [element(value) for value in values]
    return ir.Constant(ir.VectorType(element, len(constants)), constants)


def zero(vector_type: Any) -> Any:
    return ir.Constant(vector_type, None)


def splat(builder: Any, value: Any, vector_type: Any) -> Any:
    undefined = ir.Constant(vector_type, ir.Undefined)
    one = builder.insert_element(undefined, value, I32(0))
    return builder.shuffle_vector(one, undefined, constant(I32, [0] * vector_type.count))


def pick_lanes(builder: Any, vector: Any, index: Any, lanes: Iterable[int]) -> Any:
    return builder.shuffle_vector(vector, vector, constant(index, lanes))


def pick_bytes(builder: Any, a: Any, b: Any, places: Iterable[int]) -> Any:
    """The bytes at `places`: 0 to 31 are those of `a`, 32 to 63 those of `b`."""
    both = builder.bitcast(a, I8X32), builder.bitcast(b, I8X32)
    return builder.bitcast(builder.shuffle_vector(*both, constant(I32, places)), I32X8)


def call(builder: Any, name: str, result: Any, operands: Iterable[Any]) -> Any:
    values = list(operands)
    function = builder.module.globals.get(name)
    if function is None:
        kind = ir.FunctionType(result, [value.type for value in values])
        function = ir.Function(builder.module, kind, name)
    return builder.call(function, values)
