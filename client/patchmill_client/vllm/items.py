"""One item of a batch as the msgpack that vLLM reads: tensors, and how they are batched.

In comes a batch of one item that `fitting` has compared with the engine, out come
bytes. A tensor is `[dtype, shape, ext]` with ext code 3, a raw view of C-order
little-endian elements; codes 1 and 2 are pickles, which are never written.
"""

import struct
from typing import Any

import msgpack

from patchmill_client.batch import Batch
from patchmill_client.errors import NormalizedTwice, WrongElements
from patchmill_client.values import Dtype, Grid, ItemType, Order
from patchmill_client.vllm.engine import GRID_AXES, Engine, Family

RAW_VIEW = 3
"""vLLM's msgpack extension code for a tensor's bytes."""

Field = dict[str, Any]


def fitting(batch: Batch, engine: Engine) -> None:
    """Refuse elements that this engine would misread. Raises WrongElements, NormalizedTwice."""
    traits = engine.traits
    if batch.dtype is not engine.dtype:
        raise wrong_dtype("batch.dtype", batch.dtype, engine)
    if batch.layout is not traits.layout:
        raise WrongElements(
            "batch.layout", f"{batch.layout}; {engine.family} needs layout={traits.layout}"
        )
    if batch.order is not Order.RASTER:
        raise WrongElements("batch.order", f"{batch.order}; the engine's encoder expects raster")
    for item in batch.items:
        at = f"batch.items[{item.index}]"
        patch_px = item.image_size.height // item.grid_thw.h
        if patch_px != traits.patch_px:
            raise WrongElements(
                at, f"{batch.model} has patches of {patch_px}, {engine.family} of {traits.patch_px}"
            )
        if item.grid_thw.t > traits.max_frames:
            raise WrongElements(
                at, f"{item.grid_thw.t} frames or tiles; {engine.family} takes {traits.max_frames}"
            )
        if engine.family is Family.NEMOTRON and item.type is not ItemType.IMAGE:
            raise WrongElements(at, "video of this family is not built here")


def wrong_dtype(field: str, found: str, engine: Engine) -> WrongElements:
    """The error for elements of another type; it names the trap of normalising twice."""
    if engine.dtype is not Dtype.UINT8:
        normalised = "not normalised, and nobody would do it" if found == Dtype.UINT8 else "another"
        return WrongElements(
            field, f"{found} is {normalised}; this engine takes {engine.dtype}, normalised"
        )
    return NormalizedTwice(
        field,
        f"{found} would be normalised twice: this engine normalises on its device whatever it is "
        "sent. Ask for dtype=uint8, or start it with --no-mm-device-do-normalize and say "
        "NormalizedBy.SENDER",
    )


def kwargs_item(part: Batch, engine: Engine) -> bytes:
    """msgpack of a batch of one item: all its fields."""
    [item] = part.items
    pixels: Field
    if engine.family is Family.KIMI:
        slices = [[[0, item.num_patches, None]]]
        pixels = {
            "data": _tensor(part.dtype, item.shape, part.data.tobytes()),
            "field": ["flat", {"keep_on_cpu": False, "slices": slices, "dim": 0}],
        }
    else:
        pixels = {
            "data": _tensor(part.dtype, item.shape[-3:], part.data.tobytes()),
            "field": ["batched", {"keep_on_cpu": False}],
        }
    return _packed({**_metadata(part, engine), engine.traits.pixels: pixels})


def metadata_item(part: Batch, engine: Engine) -> bytes:
    """msgpack of the same item without its elements."""
    return _packed(_metadata(part, engine))


def _metadata(part: Batch, engine: Engine) -> dict[str, Field]:
    [item] = part.items
    if engine.family is Family.KIMI:
        return {"grid_thws": _on_cpu(_grid(item.grid_thw))}
    return {
        "imgs_sizes": _on_cpu(list(item.image_size)),
        "num_tokens_per_image": _on_cpu(item.num_tokens),
    }


def _on_cpu(data: object) -> Field:
    return {"data": data, "field": ["batched", {"keep_on_cpu": True}]}


def _grid(grid: Grid) -> list[Any]:
    return ["int64", [GRID_AXES], msgpack.ExtType(RAW_VIEW, struct.pack("<3q", *grid))]


def _tensor(dtype: Dtype, shape: tuple[int, ...], data: bytes) -> list[Any]:
    return [str(dtype), list(shape), msgpack.ExtType(RAW_VIEW, data)]


def _packed(item: dict[str, Field]) -> bytes:
    packed: bytes = msgpack.packb(item)
    return packed
