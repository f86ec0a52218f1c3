"""An item's fields against its model: ranks, sides, counts, and how many tokens come out.

In come fields that `read` vouches for, out comes the number of embeddings that
the engine's encoder will make of them. What differs kills the engine's process,
with every request that it holds, so nothing is let pass that was not compared.
"""

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from patchmill_client.errors import BadTensor
from patchmill_client.values import Dtype, Grid
from patchmill_client.vllm.engine import CHANNELS, GRID_AXES, SIZE_AXES, Engine, Family
from patchmill_client.vllm.items import wrong_dtype
from patchmill_client.vllm.read import Field, Tensor

METADATA = {
    Family.KIMI: ("grid_thws",),
    Family.NEMOTRON: ("imgs_sizes", "num_tokens_per_image"),
}


@dataclass(frozen=True, slots=True)
class Place:
    """An item's index among the `count` items of its request."""

    index: int
    count: int


def embeddings(fields: Mapping[str, Field], engine: Engine, at: str, place: Place) -> int:
    """How many embeddings a whole item gives.

    Raises BadTensor, WrongElements.
    """
    traits = engine.traits
    _same_names(fields, (*METADATA[engine.family], traits.pixels), at)
    tokens = metadata_tokens({name: fields[name] for name in METADATA[engine.family]}, engine, at)
    pixels, where = fields[traits.pixels], f"{at}.{traits.pixels}"
    tensor = _tensor(pixels, where)
    if tensor.dtype not in list(Dtype):
        raise BadTensor(where, f"{tensor.dtype} is no type of pixels")
    if tensor.dtype != engine.dtype:
        raise wrong_dtype(where, tensor.dtype, engine)
    if engine.family is Family.KIMI:
        patches = _grid(fields["grid_thws"], f"{at}.grid_thws").patches
        _same_shape(tensor, (patches, CHANNELS, traits.patch_px, traits.patch_px), where)
        _same_kind(pixels, "flat", {"keep_on_cpu", "slices", "dim"}, where)
        _check_flat(pixels.options, patches, where, place)
    else:
        size = _size(fields["imgs_sizes"], f"{at}.imgs_sizes")
        _same_shape(tensor, (CHANNELS, *size), where)
        _same_kind(pixels, "batched", {"keep_on_cpu"}, where)
    if pixels.options["keep_on_cpu"] is not False:
        raise BadTensor(where, "keep_on_cpu must be false")
    return tokens


def metadata_tokens(fields: Mapping[str, Field], engine: Engine, at: str) -> int:
    """The same from the fields without elements, which is what `mm_metadata` holds."""
    traits = engine.traits
    _same_names(fields, METADATA[engine.family], at)
    for name, field in fields.items():
        _same_kind(field, "batched", {"keep_on_cpu"}, f"{at}.{name}")
        if field.options["keep_on_cpu"] is not True:
            raise BadTensor(f"{at}.{name}", "keep_on_cpu must be true")
    if engine.family is Family.KIMI:
        where = f"{at}.grid_thws"
        frames, *sides = _grid(fields["grid_thws"], where)
        told = None
    else:
        where = f"{at}.imgs_sizes"
        height, width = _size(fields["imgs_sizes"], where)
        if height % traits.patch_px or width % traits.patch_px:
            raise BadTensor(where, f"{height} x {width} are no whole patches of {traits.patch_px}")
        frames, sides = 1, [height // traits.patch_px, width // traits.patch_px]
        told = fields["num_tokens_per_image"].value
    if not 1 <= frames <= traits.max_frames:
        raise BadTensor(where, f"{frames} frames; the encoder takes 1 to {traits.max_frames}")
    for side in sides:
        if not 1 <= side <= traits.max_side_patches:
            raise BadTensor(where, f"{side} patches; a side has 1 to {traits.max_side_patches}")
        if side % traits.merge:
            raise BadTensor(where, f"{side} patches, no multiple of the merge {traits.merge}")
    tokens = (sides[0] // traits.merge) * (sides[1] // traits.merge)
    if told is not None and (type(told) is not int or told != tokens):
        raise BadTensor(f"{at}.num_tokens_per_image", f"{told!a}, must be {tokens}")
    return tokens


def _same_names(fields: Mapping[str, Field], names: Sequence[str], at: str) -> None:
    if missing := sorted(set(names) - set(fields)):
        raise BadTensor(at, f"{', '.join(missing)} missing")
    if extra := sorted(set(fields) - set(names)):
        raise BadTensor(at, f"unknown field {extra[0]!a}")


def _same_kind(field: Field, kind: str, options: set[str], at: str) -> None:
    if field.kind != kind or set(field.options) != options:
        told = ", ".join(sorted(map(ascii, field.options)))
        raise BadTensor(
            at, f"{field.kind!a} with {told}, must be {kind} with {', '.join(sorted(options))}"
        )


def _tensor(field: Field, at: str) -> Tensor:
    if not isinstance(field.value, Tensor):
        raise BadTensor(at, "must be a tensor")
    return field.value


def _same_shape(tensor: Tensor, shape: tuple[int, ...], at: str) -> None:
    if tensor.shape != shape:
        raise BadTensor(at, f"shape {list(tensor.shape)}, must be {list(shape)}")


def _grid(field: Field, at: str) -> Grid:
    tensor = _tensor(field, at)
    if tensor.dtype != "int64":
        raise BadTensor(at, f"{tensor.dtype}, must be int64")
    _same_shape(tensor, (GRID_AXES,), at)
    return Grid(*struct.unpack("<3q", tensor.data))


def _size(field: Field, at: str) -> tuple[int, int]:
    if not isinstance(field.value, list) or len(field.value) != SIZE_AXES:
        raise BadTensor(at, "must be a height and a width")
    height, width = field.value
    return height, width


def _check_flat(options: Mapping[str, object], patches: int, at: str, place: Place) -> None:
    """`slices` tell the patches of this item, or, as vLLM's renderer has it, of all items."""
    if type(options["dim"]) is not int or options["dim"] != 0:
        raise BadTensor(at, f"dim {options['dim']!a}, must be 0")
    slices = options["slices"]
    if not isinstance(slices, list) or len(slices) not in (1, place.count):
        raise BadTensor(at, "slices must be a list, of this item or of all")
    end = 0
    lengths = []
    for each in slices:
        match each:
            case [[int(start), int(stop), None]] if (
                type(start) is type(stop) is int and start == end < stop
            ):
                lengths.append(stop - start)
                end = stop
            case _:
                raise BadTensor(at, f"slices {each!a} is no [[start, stop, null]] after {end}")
    if (told := lengths[place.index if len(lengths) == place.count else 0]) != patches:
        raise BadTensor(at, f"slices tell {told} patches, the grid {patches}")
