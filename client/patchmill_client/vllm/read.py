"""A serialized item of any origin: every byte read, compared and only then believed.

In comes a string that claims to be base64 of msgpack, out come its fields. What
vLLM would take for a pickle, skip over or resolve from elsewhere is refused.
Nothing here knows a model; `contents` compares the fields with one.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import msgpack

from patchmill_client.errors import BadTensor
from patchmill_client.vllm.items import RAW_VIEW
from patchmill_client.vllm.text import from_base64

PICKLES = (1, 2)
ITEMSIZES_BYTES = {"uint8": 1, "float16": 2, "bfloat16": 2, "float32": 4, "int64": 8}
"""The element types that these families' tensors can have."""


@dataclass(frozen=True, slots=True)
class Tensor:
    """Elements whose number of bytes agrees with type and shape."""

    dtype: str
    shape: tuple[int, ...]
    data: bytes


@dataclass(frozen=True, slots=True)
class Field:
    """A value, and how the engine puts it together with those of other items."""

    value: Tensor | int | list[int]
    kind: str
    options: Mapping[str, Any]


def read_item(text: object, at: str) -> dict[str, Field]:
    """The fields of one serialized item; raises BadTensor."""
    if not isinstance(text, str):
        raise BadTensor(at, f"{type(text).__name__}, must be a string of base64 or null")
    packed = from_base64(text, at)
    try:
        item = msgpack.unpackb(packed, object_pairs_hook=_distinct)
    except (ValueError, TypeError, RecursionError, msgpack.UnpackException) as error:
        raise BadTensor(at, f"not the msgpack of an item: {error}") from error
    if type(item) is not dict:
        raise BadTensor(at, f"msgpack of {type(item).__name__}, must be a map of fields")
    return {
        _name(name, at): _field(content, f"{at}.{_name(name, at)}")
        for name, content in item.items()
    }


def _distinct(pairs: list[tuple[Any, Any]]) -> dict[Any, Any]:
    """A key that stands twice would be read by another reader as its other value."""
    made = dict(pairs)
    if len(made) != len(pairs):
        raise ValueError("a key stands twice")
    return made


def _name(name: object, at: str) -> str:
    if not isinstance(name, str):
        raise BadTensor(at, f"{name!a} as the name of a field")
    return name


def _field(content: object, at: str) -> Field:
    if type(content) is not dict or set(content) != {"data", "field"}:
        raise BadTensor(at, "must be a map of data and field")
    batching = content["field"]
    if type(batching) is not list or len(batching) != 2 or type(batching[1]) is not dict:
        raise BadTensor(f"{at}.field", "must be a kind and a map of its options")
    kind, options = batching
    if not isinstance(kind, str):
        raise BadTensor(f"{at}.field", f"{kind!a} is no kind of field")
    return Field(_value(content["data"], f"{at}.data"), kind, options)


def _value(data: object, at: str) -> Tensor | int | list[int]:
    if type(data) is int:
        return data
    if type(data) is not list or not data:
        raise BadTensor(at, f"{type(data).__name__}, must be a tensor or whole numbers")
    if not isinstance(data[0], str):
        return _integers(data, at)
    if len(data) != 3:
        raise BadTensor(at, f"a tensor of {len(data)} parts, must be dtype, shape and bytes")
    dtype, shape, content = data
    if dtype not in ITEMSIZES_BYTES:
        raise BadTensor(at, f"{dtype!a} is no element type of an item")
    if type(shape) is not list:
        raise BadTensor(at, "its shape must be a list")
    sides = tuple(_integers(shape, f"{at}.shape"))
    if any(side < 1 for side in sides):
        raise BadTensor(at, f"shape {list(sides)} is empty or less")
    elements = _bytes(content, at)
    if len(elements) != (expected := math.prod(sides) * ITEMSIZES_BYTES[dtype]):
        raise BadTensor(at, f"{len(elements)} bytes for {dtype} {list(sides)}, must be {expected}")
    return Tensor(dtype, sides, elements)


def _bytes(content: object, at: str) -> bytes:
    if not isinstance(content, msgpack.ExtType):
        raise BadTensor(at, f"{type(content).__name__} where a raw view, ext code 3, must stand")
    if content.code in PICKLES:
        raise BadTensor(at, f"ext code {content.code} is a pickle, which runs code where it lands")
    if content.code != RAW_VIEW:
        raise BadTensor(at, f"ext code {content.code}, must be {RAW_VIEW}")
    found: bytes = content.data
    return found


def _integers(values: list[object], at: str) -> list[int]:
    found = [value for value in values if type(value) is int]
    if len(found) != len(values):
        raise BadTensor(at, "must be whole numbers")
    return found
