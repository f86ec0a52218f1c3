"""Patches into one msgpack map, without a copy of the elements.

In comes a `Patches`, out comes a `Frame`: a small head and a memoryview over
the elements, which together are the body. The format is docs/wire.md, byte by
byte; a reader needs msgpack and numpy and nothing of ours.
"""

import math
import struct
from collections.abc import Mapping
from typing import Any

import msgpack

from service.types import Dtype, Frame, Part, Patches, Size

WIRE_VERSION = 1
MEDIA_TYPE = "application/msgpack"
ALIGNMENT_BYTES = 64
"""Where the data starts in the body: a cache line, and what vector loads like."""

BIN8 = 0xC4
"""The msgpack type byte of binary data with an 8-bit length."""
BIN32 = 0xC6
"""The msgpack type byte of binary data with a 32-bit length. Always this form,
also where a shorter would do: then the data's place depends on the head alone."""


def pack(patches: Patches, timings_ms: Mapping[str, float]) -> Frame:
    """The answer to one request; the elements must be C order and little-endian."""
    data = patches.elements.data.cast("B")
    before = _fields(patches, timings_ms)
    after = (
        _key("pixel_values")
        + b"\x83"  # a map of three: dtype, shape, data
        + _key("dtype")
        + msgpack.packb(patches.dtype)
        + _key("shape")
        + msgpack.packb(_packed_shape(patches))
        + _key("data")
        + struct.pack(">BI", BIN32, len(data))
    )
    return Frame(MEDIA_TYPE, before + _pad(len(before) + len(after)) + after, data)


def _fields(patches: Patches, timings_ms: Mapping[str, float]) -> bytes:
    """The map's header and every field before `pad`."""
    fields: dict[str, Any] = {
        "version": WIRE_VERSION,
        "model": patches.model,
        "layout": patches.layout,
        "order": patches.order,
        "numerics": patches.numerics,
        "items": _items(patches),
        "grid_thws": [_grid_thw(part) for part in patches.parts],
        "imgs_sizes": [_size(part.plan.picture) for part in patches.parts],
        "normalization": {
            "applied": patches.dtype is not Dtype.UINT8,
            "mean": list(patches.mean),
            "std": list(patches.std),
        },
        "timings_ms": dict(timings_ms),
    }
    packer = msgpack.Packer(autoreset=False)
    packer.pack_map_header(len(fields) + 2)  # and `pad`, and `pixel_values`
    for name, value in fields.items():
        packer.pack(name)
        packer.pack(value)
    packed: bytes = packer.bytes()
    return packed


def _items(patches: Patches) -> list[dict[str, Any]]:
    items = []
    patch_offset = offset_bytes = 0
    for index, part in enumerate(patches.parts):
        length_bytes = part.plan.elements * patches.dtype.itemsize_bytes
        items.append(
            {
                "index": index,
                "type": part.type,
                "digest": part.digest,
                "source": {
                    "format": part.header.format,
                    "height": part.header.size.height,
                    "width": part.header.size.width,
                    "orientation": part.header.orientation,
                    "more_frames": part.header.more_frames,
                },
                "resized": _size(part.plan.resized),
                "grid_thw": _grid_thw(part),
                "num_patches": part.plan.grid.patches,
                "num_tokens": part.plan.num_tokens,
                "patch_offset": patch_offset,
                "shape": list(part.plan.shape(patches.layout)),
                "offset_bytes": offset_bytes,
                "length_bytes": length_bytes,
                "notes": list(part.notes),
            }
        )
        patch_offset += part.plan.grid.patches
        offset_bytes += length_bytes
    return items


def _grid_thw(part: Part) -> list[int]:
    grid = part.plan.grid
    return [grid.t, grid.h, grid.w]


def _size(size: Size) -> list[int]:
    return [size.height, size.width]


def _packed_shape(patches: Patches) -> list[int]:
    """Of one item its shape; of several (N, 3, …) when they agree but in N, else (elements,)."""
    shapes = [part.plan.shape(patches.layout) for part in patches.parts]
    if len(shapes) == 1:
        return list(shapes[0])
    tails = {shape[-3:] for shape in shapes}
    if len(tails) == 1:
        return [sum(math.prod(shape[:-3]) for shape in shapes), *tails.pop()]
    return [sum(part.plan.elements for part in patches.parts)]


def _pad(length_without_pad: int) -> bytes:
    """The `pad` field: as many zero bytes as bring the data to its alignment."""
    key = _key("pad")
    header_bytes = 2  # BIN8 and the length
    filler = -(length_without_pad + len(key) + header_bytes) % ALIGNMENT_BYTES
    return key + bytes([BIN8, filler]) + bytes(filler)


def _key(name: str) -> bytes:
    packed: bytes = msgpack.packb(name)
    return packed
