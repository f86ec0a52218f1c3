"""Views over one buffer: the same memory, the right values, the right kind."""

import gc
import pickle
import weakref
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from patchmill_client import AlreadyNormalized, Batch, Dtype, Grid, Layout, LyingAnswer, Size
from tests.packer import fields, pack, uncut

GRIDS = [(1, 2, 4), (3, 2, 2), (1, 1, 1)]


def batch_of(dtype: str = "float32", patch_px: list[int] | None = None) -> Batch:
    return Batch.from_bytes(pack(fields(GRIDS, dtype, patch_px)))


@pytest.mark.parametrize("dtype", Dtype)
def test_the_array_is_the_buffer_itself(dtype: Dtype) -> None:
    batch = batch_of(dtype)
    values = batch.numpy()
    assert values.ctypes.data == batch.data.ctypes.data
    assert values.ctypes.data % 64 == 0
    assert values.dtype == {"bfloat16": np.uint16}.get(dtype, np.dtype(dtype.storage))
    assert values.shape == batch.shape == (21, 3, 14, 14)
    assert values.tobytes() == fields(GRIDS, dtype)["pixel_values"]["data"]


@pytest.mark.parametrize("dtype", Dtype)
def test_split_gives_each_item_its_part_of_the_same_buffer(dtype: Dtype) -> None:
    batch = batch_of(dtype)
    parts = batch.split()
    assert [part.shape for part in parts] == [(8, 3, 14, 14), (12, 3, 14, 14), (1, 3, 14, 14)]
    for part, item in zip(parts, batch.items, strict=True):
        assert part.items == (item,)
        assert len(part) == 1
        assert part.data.ctypes.data == batch.data.ctypes.data + item.offset_bytes
        first = item.patch_offset
        assert np.array_equal(part.numpy(), batch.numpy()[first : first + item.num_patches])
        assert part.split()[0].numpy().ctypes.data == part.data.ctypes.data


def test_items_of_different_patch_sizes_are_flat_together_and_shaped_apart() -> None:
    batch = batch_of(patch_px=[14, 16, 14])
    assert batch.shape == (8 * 588 + 12 * 768 + 588,)
    assert [part.shape[2] for part in batch.split()] == [14, 16, 14]


def test_pictures_that_are_not_cut_are_views_as_well() -> None:
    batch = Batch.from_bytes(pack(uncut(fields([(1, 2, 4), (1, 2, 4)], "uint8"))))
    assert batch.layout is Layout.IMAGE
    assert batch.imgs_sizes == (Size(28, 56), Size(28, 56))
    assert batch.numpy().shape == (2, 3, 28, 56)
    first, second = batch.split()
    assert first.shape == second.shape == (3, 28, 56)
    assert np.array_equal(second.numpy(), batch.numpy()[1])
    whole = bits(batch.normalize())
    for channel in range(3):
        pixels = batch.numpy()[:, channel]
        assert np.array_equal(whole[:, channel], reference(pixels, channel, batch, "float32"))


def test_a_view_keeps_the_buffer_alive() -> None:
    batch = batch_of()
    buffer = weakref.ref(batch.data.base)
    view = batch.split()[1].numpy()
    del batch
    gc.collect()
    assert buffer() is not None
    assert view.tobytes()
    del view
    gc.collect()
    assert buffer() is None


def test_a_batch_crosses_processes() -> None:
    batch = batch_of("bfloat16")
    twin = pickle.loads(pickle.dumps(batch.split()[1]))  # noqa: S301 - our own bytes
    assert twin.items == batch.items[1:2]
    assert np.array_equal(twin.numpy(), batch.numpy()[8:20])


def test_the_facts_are_at_hand() -> None:
    batch = batch_of()
    assert batch.grid_thws == (Grid(1, 2, 4), Grid(3, 2, 2), Grid(1, 1, 1))
    assert len(batch) == 3
    assert batch.request_id is None
    assert batch.timings_ms["queue"] == 0.125
    assert repr(batch) == "<Batch of 3: kimi-k2.5, float32, (21, 3, 14, 14)>"


@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview])
def test_a_kept_answer_is_read_from_any_bytes(kind: type) -> None:
    assert Batch.from_bytes(kind(pack(fields()))).shape == (8, 3, 14, 14)


@pytest.mark.parametrize("body", [b"", b"\x8c", pack(fields())[:-1], pack(fields()) + b"\x00"])
def test_a_kept_answer_that_is_damaged_is_refused(body: bytes) -> None:
    with pytest.raises(LyingAnswer):
        Batch.from_bytes(body)


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
def test_what_is_normalised_is_not_normalised_again(dtype: str) -> None:
    with pytest.raises(AlreadyNormalized):
        batch_of(dtype).normalize()


@pytest.mark.parametrize("dtype", ["uint8", "float64", ""])
def test_only_float_types_are_normalised_to(dtype: str) -> None:
    with pytest.raises(ValueError, match=r"float type|is not a valid"):
        batch_of("uint8").normalize(dtype=dtype)


@pytest.mark.parametrize("patch_px", [None, [14, 16, 14]])
@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
def test_normalize_gives_what_the_reference_arithmetic_gives(
    dtype: str, patch_px: list[int] | None
) -> None:
    batch = batch_of("uint8", patch_px)
    whole = batch.normalize(dtype=dtype)
    assert tuple(whole.shape) == batch.shape
    for part in batch.split():
        pixels = part.numpy()
        normalized = bits(part.normalize(dtype=dtype))
        assert normalized.shape == pixels.shape
        for channel in range(3):
            expected = reference(pixels[:, channel], channel, batch, dtype)
            assert np.array_equal(normalized[:, channel], expected)
    together = np.concatenate([bits(part.normalize(dtype=dtype)).ravel() for part in batch.split()])
    assert np.array_equal(bits(whole).ravel(), together)


def reference(pixels: NDArray[Any], channel: int, batch: Batch, dtype: str) -> NDArray[Any]:
    """docs/wire.md, "The data", one step at a time."""
    mean, std = batch.normalization.mean[channel], batch.normalization.std[channel]
    value: NDArray[Any] = (pixels.astype(np.float64) / 255).astype(np.float32)
    value = (value.astype(np.float64) - mean).astype(np.float32)
    value = (value.astype(np.float64) * (1 / std)).astype(np.float32)
    if dtype == "float32":
        return value.view(np.uint32)
    if dtype == "float16":
        return value.astype(np.float16).view(np.uint16)
    wide = value.view(np.uint32).astype(np.uint64)
    down, rest = wide >> 16, wide & 0xFFFF
    up = (rest > 0x8000) | ((rest == 0x8000) & (down & 1 == 1))
    rounded: NDArray[np.uint16] = (down + up).astype(np.uint16)
    return rounded


def bits(values: Any) -> NDArray[Any]:
    """The bits of an array or a tensor, as unsigned integers."""
    if not isinstance(values, np.ndarray):
        import torch

        size = values.element_size()
        values = values.view(torch.int32 if size == 4 else torch.int16).numpy()
    assert isinstance(values, np.ndarray)
    return values.view(np.uint32 if values.itemsize == 4 else np.uint16)
