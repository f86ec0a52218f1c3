"""Patches as the features that vLLM 0.32 takes: JSON whose tensors are base64 of msgpack.

In comes a `Patches`, out comes a `Frame` whose text has `mm_hashes`, `kwargs_data` and
`mm_metadata` as `POST /inference/v1/generate` wants them, keyed by modality. A tensor
is `[dtype, shape, ext]` with ext code 3, a raw view of C-order little-endian elements;
codes 1 and 2 are pickles, which are never written. The form is docs/vllm.md.
"""

import json
import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import msgpack
import numpy as np
import pybase64
from numpy.typing import NDArray

from service.types import Frame, Part, Patches

MEDIA_TYPE = "application/json"
RAW_VIEW = 3
EXT32 = 0xC9
"""The msgpack type byte of an extension with a 32-bit length."""
CHUNK_BYTES = 3 * 2**19
"""Of a tensor, encoded at a time: whole groups of three bytes, 2 MiB of text."""

Take = Callable[[int, Callable[[], None]], NDArray[np.uint8]]
"""`Buffers.take`: so many bytes, and what to call when they are gone."""


@dataclass(frozen=True, slots=True)
class _Base64:
    """What stands as base64 between quotes: `head`, then `data`, which is not copied."""

    head: bytes
    data: memoryview

    @property
    def length(self) -> int:
        return -(-(len(self.head) + len(self.data)) // 3) * 4


_Piece = bytes | _Base64


def pack(patches: Patches, modality: str, take: Take) -> Frame:
    """The answer to one request. Items that are known have null for their tensors.

    The text's buffer keeps the elements until it is gone itself, because one share of
    the budget counts both.
    """
    pieces = list(_pieces(patches, modality))
    length = sum(len(each) if isinstance(each, bytes) else each.length for each in pieces)
    text = take(length, partial(_keep, patches.elements))
    view, end = text.data, 0
    for piece in pieces:
        for part in [piece] if isinstance(piece, bytes) else _encoded(piece):
            view[end : end + len(part)] = part
            end += len(part)
    return Frame(MEDIA_TYPE, b"", view)


def _keep(_: object) -> None:
    """Holds its argument for as long as somebody holds the call."""


def _encoded(piece: _Base64) -> Iterator[bytes]:
    """The text in chunks; the first takes as much data as makes the head whole groups of three."""
    start = min(-len(piece.head) % 3, len(piece.data))
    yield pybase64.b64encode(piece.head + piece.data[:start])
    for begin in range(start, len(piece.data), CHUNK_BYTES):
        yield pybase64.b64encode(piece.data[begin : begin + CHUNK_BYTES])


def _pieces(patches: Patches, modality: str) -> Iterator[_Piece]:
    parts, key = patches.parts, json.dumps(modality)
    yield b'{"model":' + _json(patches.model) + b',"modality":' + _json(modality)
    yield b',"num_tokens":' + _json([part.plan.num_tokens for part in parts])
    yield b',"mm_hashes":' + _json({modality: [part.digest for part in parts]})
    yield f',"mm_metadata":{{{key}:['.encode()
    yield from _listed([None if part.known else _metadata(part, modality) for part in parts])
    yield f']}},"kwargs_data":{{{key}:['.encode()
    yield from _listed(list(_items(patches, modality)))
    yield b"]}}"


def _listed(values: list[_Base64 | None]) -> Iterator[_Piece]:
    for index, value in enumerate(values):
        yield b"," if index else b""
        if value is None:
            yield b"null"
        else:
            yield from (b'"', value, b'"')


def _items(patches: Patches, modality: str) -> Iterator[_Base64 | None]:
    data = patches.elements.data.cast("B")
    for part in patches.parts:
        length = part.plan.elements * patches.dtype.itemsize_bytes if part.made else 0
        elements, data = data[:length], data[length:]
        yield None if part.known else _kwargs(part, patches, modality, elements)


def _kwargs(part: Part, patches: Patches, modality: str, elements: memoryview) -> _Base64:
    """All fields of an item; the elements stand last, so that they end the msgpack."""
    fields = _fields(part, modality)
    chunk = modality == "vision_chunk"
    name = "pixel_values" if chunk else "pixel_values_flat"
    slices = {"slices": [[[0, part.plan.grid.patches, None]]], "dim": 0} if chunk else {}
    head = [
        bytes([0x80 | len(fields) + 1]),  # a map of so many pairs
        *(msgpack.packb(each) for pair in fields.items() for each in pair),
        msgpack.packb(name),
        b"\x82",  # a map of two: field, data
        msgpack.packb("field"),
        msgpack.packb(["flat" if chunk else "batched", {"keep_on_cpu": False, **slices}]),
        msgpack.packb("data"),
        b"\x93",  # a list of three: dtype, shape, elements
        msgpack.packb(patches.dtype),
        msgpack.packb(list(part.plan.shape(patches.layout))),
        struct.pack(">BIb", EXT32, len(elements), RAW_VIEW),
    ]
    return _Base64(b"".join(head), elements)


def _metadata(part: Part, modality: str) -> _Base64:
    return _Base64(msgpack.packb(_fields(part, modality)), memoryview(b""))


def _fields(part: Part, modality: str) -> dict[str, Any]:
    """The fields without elements, which the engine keeps beside its CPU."""
    plan = part.plan
    if modality == "vision_chunk":
        grid = struct.pack("<3q", plan.grid.t, plan.grid.h, plan.grid.w)
        return {"grid_thws": _on_cpu(["int64", [3], msgpack.ExtType(RAW_VIEW, grid)])}
    return {
        "imgs_sizes": _on_cpu([plan.picture.height, plan.picture.width]),
        "num_tokens_per_image": _on_cpu(plan.num_tokens),
    }


def _on_cpu(data: object) -> dict[str, Any]:
    return {"data": data, "field": ["batched", {"keep_on_cpu": True}]}


def _json(value: object) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()
