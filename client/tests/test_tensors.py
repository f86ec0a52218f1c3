"""Tensors: the same memory as the arrays, the same bits on every path."""

import importlib
import subprocess
import sys
import warnings
from typing import Any

import numpy as np
import pytest

from patchmill_client import Batch, Dtype, MissingPackage, normalize, tensors
from tests.packer import fields, pack
from tests.test_batch import GRIDS, bits

try:
    import torch
except ImportError:
    torch = None

needs_torch = pytest.mark.skipif(torch is None, reason="torch is not installed")
without_torch = pytest.mark.skipif(torch is not None, reason="torch is installed")
needs_gpu = pytest.mark.skipif(
    torch is None or not torch.cuda.is_available(), reason="there is no GPU"
)


def batch_of(dtype: str, patch_px: list[int] | None = None) -> Batch:
    return Batch.from_bytes(pack(fields(GRIDS, dtype, patch_px)))


@without_torch
@pytest.mark.parametrize("dtype", Dtype)
def test_without_torch_pixel_values_is_the_array(dtype: Dtype) -> None:
    batch = batch_of(dtype)
    values = batch.pixel_values
    assert isinstance(values, np.ndarray)
    assert values.ctypes.data == batch.data.ctypes.data


@without_torch
def test_without_torch_tensors_are_refused_with_a_hint() -> None:
    for wanted in (Batch.torch, lambda batch: batch.to("cpu"), lambda batch: batch.to("cuda")):
        with pytest.raises(MissingPackage, match="pip install"):
            wanted(batch_of("float32"))
    with pytest.raises(MissingPackage):
        batch_of("uint8").normalize("cuda")
    assert isinstance(batch_of("uint8").normalize("cpu"), np.ndarray)
    with pytest.raises(MissingPackage, match="pip install"):
        importlib.import_module("patchmill_client.pixel_shuffle")


@needs_torch
@pytest.mark.parametrize("dtype", Dtype)
def test_a_tensor_is_the_buffer_itself(dtype: Dtype) -> None:
    batch = batch_of(dtype)
    values: Any = batch.pixel_values
    assert values.dtype is getattr(torch, dtype)
    assert values.data_ptr() == batch.data.ctypes.data
    assert tuple(values.shape) == batch.shape
    assert batch.torch().data_ptr() == batch.to("cpu").data_ptr() == values.data_ptr()
    for part, item in zip(batch.split(), batch.items, strict=True):
        assert part.torch().data_ptr() == values.data_ptr() + item.offset_bytes


@needs_torch
def test_a_tensor_keeps_the_buffer_alive() -> None:
    values = batch_of("bfloat16").torch()
    assert (
        values.view(torch.int16).numpy().tobytes()
        == (fields(GRIDS, "bfloat16")["pixel_values"]["data"])
    )


@needs_torch
def test_grids_make_a_tensor() -> None:
    assert torch.tensor(batch_of("uint8").grid_thws).tolist() == [list(grid) for grid in GRIDS]


@needs_torch
def test_bfloat16_is_what_torch_rounds_to() -> None:
    batch = batch_of("uint8")
    rounded = batch.normalize(dtype="float32").to(torch.bfloat16)  # type: ignore[union-attr]
    assert torch.equal(batch.normalize(dtype="bfloat16"), rounded)


@needs_torch
@pytest.mark.parametrize("patch_px", [None, [14, 16, 14]])
@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
@pytest.mark.parametrize("block", [1, 2000, 1 << 24])
def test_plain_torch_operations_look_up_the_same_bits(
    dtype: str, patch_px: list[int] | None, block: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tensors, "BLOCK_ELEMENTS", block)
    batch = batch_of("uint8", patch_px)
    flat = looked_up_on("cpu", batch, dtype)
    assert np.array_equal(bits(flat), bits(batch.normalize(dtype=dtype)).ravel())


def looked_up_on(device: str, batch: Batch, dtype: str) -> Any:
    table = normalize.table(Dtype(dtype), batch.normalization.mean, batch.normalization.std)
    shapes = [item.shape for item in batch.items]
    return tensors.normalized_on(device, batch.data, shapes, table, Dtype(dtype))


FUSED = """
import torch
from patchmill_client import fused, normalize, Dtype
for dtype in (Dtype.FLOAT32, Dtype.FLOAT16, Dtype.BFLOAT16):
    for patches, plane in ((3, 196), (1, 1), (7, 5)):
        values = normalize.table(dtype, (0.5, 0.25, 0.75), (0.5, 0.125, 0.3))
        bits = torch.int32 if dtype is Dtype.FLOAT32 else torch.int16
        rows = torch.from_numpy(values.view("i4" if dtype is Dtype.FLOAT32 else "i2"))
        pixels = torch.randint(0, 256, (patches, 3, plane), dtype=torch.uint8)
        out = torch.empty(pixels.numel(), dtype=bits)
        fused.look_up(pixels.view(-1), rows, out, plane)
        for channel in range(3):
            wanted = rows[channel][pixels[:, channel].long()]
            assert torch.equal(out.view(pixels.shape)[:, channel], wanted)
print("the same bits")
"""


@needs_torch
def test_the_fused_kernel_gives_the_same_bits_in_its_interpreter() -> None:
    pytest.importorskip("triton", reason="triton is not installed")
    done = subprocess.run(
        [sys.executable, "-c", FUSED],
        env={"TRITON_INTERPRET": "1", "PYTHONPATH": ":".join(sys.path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout == "the same bits\n", done.stderr


@needs_torch
def test_a_fused_kernel_that_does_not_run_is_told_and_done_without() -> None:
    class Broken:
        @staticmethod
        def look_up(*_: object) -> None:
            raise RuntimeError("no compiler")

    class OnGpu:
        """A tensor that claims to lie on a GPU."""

        device = torch.device("cuda")

    told: list[str] = []
    with warnings.catch_warnings(record=True) as caught, pytest.MonkeyPatch.context() as patch:
        warnings.simplefilter("always")
        patch.setattr(tensors, "_find_fused", lambda: Broken)
        patch.setattr(tensors, "look_up_in_blocks", lambda *_: told.append("in blocks"))
        tensors._look_up(torch, OnGpu(), None, None, 196)
    assert told == ["in blocks"]
    assert "no compiler" in str(caught[0].message)


@needs_torch
@pytest.mark.parametrize("stage_bytes", [1, 1000, 1 << 23])
def test_the_stages_of_the_way_to_a_gpu_join_without_a_gap(
    stage_bytes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Unpinned:
        """torch on a host that cannot pin memory."""

        uint8 = torch.uint8

        @staticmethod
        def empty(*given: Any, pin_memory: bool = False, **options: Any) -> Any:
            assert pin_memory != ("device" in options)
            return torch.empty(*given, **options)

    monkeypatch.setattr(tensors, "STAGE_BYTES", stage_bytes)
    small = Batch.from_bytes(pack(fields([(1, 1, 2)], "bfloat16"))).torch()
    copied = tensors._through_pinned(Unpinned, small, torch.device("cpu"))
    assert copied.data_ptr() != small.data_ptr()
    assert copied.dtype is small.dtype
    assert torch.equal(copied, small)


@needs_gpu
@pytest.mark.parametrize("dtype", Dtype)
def test_the_elements_reach_a_gpu_unchanged(dtype: Dtype, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tensors, "STAGE_BYTES", 1000)
    batch = batch_of(dtype)
    there = batch.to("cuda")
    assert there.device.type == "cuda"
    assert torch.equal(there.cpu(), batch.torch())


@needs_gpu
@pytest.mark.parametrize("patch_px", [None, [14, 16, 14]])
@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
def test_a_gpu_normalises_to_the_same_bits(dtype: str, patch_px: list[int] | None) -> None:
    batch = batch_of("uint8", patch_px)
    there: Any = batch.normalize("cuda", dtype)
    assert np.array_equal(bits(there.cpu()), bits(batch.normalize(dtype=dtype)))
