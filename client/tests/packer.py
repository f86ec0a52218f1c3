"""Answers made by hand, after docs/wire.md; a lie is a field changed before they are packed."""

import struct
from collections.abc import Sequence
from typing import Any

import msgpack
import numpy as np

from patchmill_client.values import Dtype

P = 14
MEAN = (0.5, 0.25, 0.75)
STD = (0.5, 0.125, 0.3)

Fields = dict[str, Any]


def fields(
    grids: Sequence[tuple[int, int, int]] = ((1, 2, 4),),
    dtype: str = "float32",
    patch_px: Sequence[int] | None = None,
    seed: int = 0,
) -> Fields:
    """The twelve fields of an honest answer; grids of more than one frame are chunks."""
    edges = patch_px or [P] * len(grids)
    itemsize = Dtype(dtype).itemsize_bytes
    items: list[Fields] = []
    patches = offset_bytes = 0
    for index, ((t, h, w), edge) in enumerate(zip(grids, edges, strict=True)):
        count = t * h * w
        length_bytes = count * 3 * edge * edge * itemsize
        items.append(
            {
                "index": index,
                "type": "image" if t == 1 else "video_chunk",
                "digest": f"{index:064x}",
                "source": {
                    "format": "png",
                    "height": h * edge - 3,
                    "width": w * edge,
                    "orientation": 1,
                    "more_frames": False,
                },
                "resized": [h * edge - 3, w * edge],
                "grid_thw": [t, h, w],
                "num_patches": count,
                "num_tokens": max(1, h * w // 4),
                "patch_offset": patches,
                "shape": [count, 3, edge, edge],
                "offset_bytes": offset_bytes,
                "length_bytes": length_bytes,
                "notes": ["clipped_16_bit"] if index else [],
            }
        )
        patches += count
        offset_bytes += length_bytes
    one_size = len(set(edges)) == 1
    return {
        "version": 1,
        "model": "kimi-k2.5",
        "layout": "patches",
        "order": "raster",
        "numerics": "pillow-u8",
        "items": items,
        "grid_thws": [list(grid) for grid in grids],
        "imgs_sizes": [[h * edge, w * edge] for (_, h, w), edge in zip(grids, edges, strict=True)],
        "normalization": {"applied": dtype != "uint8", "mean": list(MEAN), "std": list(STD)},
        "timings_ms": {"receive": 0.25, "queue": 0.125, "pack": 1.5},
        "pad": b"",
        "pixel_values": {
            "dtype": dtype,
            "shape": ([patches, 3, edges[0], edges[0]] if one_size else [offset_bytes // itemsize]),
            "data": elements(offset_bytes, dtype, seed),
        },
    }


def uncut(answer: Fields) -> Fields:
    """The same answer with layout=image."""
    answer["layout"] = "image"
    shapes = []
    for item, size in zip(answer["items"], answer["imgs_sizes"], strict=True):
        item["shape"] = [3, *size] if item["type"] == "image" else [item["grid_thw"][0], 3, *size]
        shapes.append(item["shape"])
    values = answer["pixel_values"]
    tails = {tuple(shape[-3:]) for shape in shapes}
    if len(shapes) == 1:
        values["shape"] = shapes[0]
    elif len(tails) == 1:
        count = sum(shape[0] if len(shape) == 4 else 1 for shape in shapes)
        values["shape"] = [count, *tails.pop()]
    else:
        values["shape"] = [len(values["data"]) // Dtype(values["dtype"]).itemsize_bytes]
    return answer


def elements(length_bytes: int, dtype: str, seed: int) -> bytes:
    """Random elements; of float types without a NaN, so that arrays can be compared."""
    chance = np.random.default_rng(seed)
    if dtype == "float32":
        return chance.standard_normal(length_bytes // 4, np.float32).tobytes()
    if dtype == "float16":
        return chance.standard_normal(length_bytes // 2).astype("<f2").tobytes()
    if dtype == "bfloat16":
        values = chance.standard_normal(length_bytes // 2, np.float32)
        return (values.view("<u4") >> 16).astype("<u2").tobytes()
    return chance.bytes(length_bytes)


def pack(answer: Fields) -> bytes:
    """The body. `pad` is made to fit where it is empty; a data's length is always 32-bit."""
    head = _head(answer, b"")
    if answer["pad"] == b"":
        head = _head(answer, bytes(-len(head) % 64))
    elif isinstance(answer["pad"], bytes):
        head = _head(answer, answer["pad"])
    data: bytes = answer["pixel_values"]["data"]
    return head + data


def _head(answer: Fields, pad: bytes) -> bytes:
    packer = msgpack.Packer(autoreset=False)
    packer.pack_map_header(len(answer))
    for name, value in answer.items():
        packer.pack(name)
        if name == "pad":
            packer.pack(pad)
        elif name == "pixel_values" and isinstance(value, dict):
            packer.pack_map_header(len(value))
            for inner, content in value.items():
                packer.pack(inner)
                if inner != "data":
                    packer.pack(content)
        else:
            packer.pack(value)
    packed: bytes = packer.bytes()
    return packed + struct.pack(">BI", 0xC6, len(answer["pixel_values"]["data"]))


HONEST = pack(fields())
