"""Elements as torch tensors, on the CPU and on a GPU.

Nothing here is needed without torch, and torch is imported by the first call
that needs it. On the CPU a tensor is a view; to a GPU the bytes travel through
pinned memory, a stage at a time, so that one stage is filled while the one
before it is on its way.
"""

import math
import warnings
from collections.abc import Sequence
from functools import cache
from types import ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from patchmill_client.errors import MissingPackage
from patchmill_client.values import Dtype, Shape

if TYPE_CHECKING:
    import torch

STAGE_BYTES = 8 * 2**20
"""Pinned memory of one stage; torch keeps it and gives it out again."""
BLOCK_ELEMENTS = 1 << 24
"""Elements looked up at a time where no fused kernel runs; their indices are 64 MiB."""


@cache
def find_torch() -> ModuleType | None:
    """The torch package, None where it is not installed."""
    try:
        import torch
    except ImportError:
        return None
    found: ModuleType = torch
    return found


def need_torch() -> Any:
    """The torch package; raises MissingPackage."""
    if (torch := find_torch()) is None:
        raise MissingPackage("torch is not installed: pip install 'patchmill-client[torch]'")
    return torch


def view(array: NDArray[np.generic], dtype: Dtype) -> "torch.Tensor":
    """The same memory as a tensor; the bits of a bfloat16 as torch.bfloat16."""
    torch = need_torch()
    if dtype is not Dtype.BFLOAT16:
        return torch.from_numpy(array)
    return torch.from_numpy(array.view(np.int16)).view(torch.bfloat16)


def moved(tensor: "torch.Tensor", device: "torch.device | str | int") -> "torch.Tensor":
    """The elements on a device: themselves on the CPU, a copy elsewhere.

    The copy to a GPU is ordered on the current stream, like any work of torch.
    """
    torch = need_torch()
    target = torch.device(device)
    if target.type == "cpu":
        return tensor
    if target.type != "cuda":
        return tensor.to(target)
    return _through_pinned(torch, tensor, target)


def _through_pinned(torch: Any, tensor: "torch.Tensor", target: "torch.device") -> "torch.Tensor":
    out = torch.empty(tensor.shape, dtype=tensor.dtype, device=target)
    source, sink = tensor.view(-1).view(torch.uint8), out.view(-1).view(torch.uint8)
    for start in range(0, source.numel(), STAGE_BYTES):
        part = source[start : start + STAGE_BYTES]
        stage = torch.empty(part.shape, dtype=torch.uint8, pin_memory=True)
        stage.copy_(part)
        # torch's allocator of pinned memory hands `stage` out again only after
        # this copy, which it has noted, is done.
        sink[start : start + STAGE_BYTES].copy_(stage, non_blocking=True)
    return out


def normalized_on(
    device: "torch.device | str | int",
    data: NDArray[np.uint8],
    shapes: Sequence[Shape],
    values: NDArray[np.generic],
    dtype: Dtype,
) -> "torch.Tensor":
    """Flat uint8 elements through a table of (3, 256), looked up on the device: flat, of `dtype`.

    One byte an element travels, not two or four. The table is the one of
    `normalize`, so the values are the same on every device.
    """
    torch = need_torch()
    pixels = moved(torch.from_numpy(data), device)
    rows = view(values, dtype).to(device)
    out = torch.empty(pixels.shape, dtype=rows.dtype, device=pixels.device)
    start = 0
    for shape in shapes:
        end = start + math.prod(shape)
        plane = math.prod(shape[-2:])
        _look_up(torch, pixels[start:end], rows, out[start:end], plane)
        start = end
    return out


def _look_up(torch: Any, pixels: Any, rows: Any, out: Any, plane: int) -> None:
    fused = _find_fused() if pixels.device.type == "cuda" else None
    if fused is not None:
        try:
            fused.look_up(pixels, rows, out, plane)
        except Exception as error:  # noqa: BLE001 - of a compiler that this host may lack
            warnings.warn(f"the fused kernel does not run here: {error}", stacklevel=4)
        else:
            return
    look_up_in_blocks(torch, pixels, rows, out, plane)


@cache
def _find_fused() -> ModuleType | None:
    try:
        from patchmill_client import fused
    except ImportError:
        return None
    return fused


def look_up_in_blocks(torch: Any, pixels: Any, rows: Any, out: Any, plane: int) -> None:
    """The same in plain torch operations, with room for a block's indices."""
    shape = (-1, len(rows), plane)
    offsets = torch.arange(len(rows), dtype=torch.int32, device=rows.device).view(1, -1, 1) * 256
    flat = rows.reshape(-1)
    step = max(1, BLOCK_ELEMENTS // (len(rows) * plane))
    for part, place in zip(
        pixels.view(shape).split(step), out.view(shape).split(step), strict=True
    ):
        index = part.to(torch.int32).add_(offsets)
        place.copy_(flat.index_select(0, index.view(-1)).view(place.shape))
