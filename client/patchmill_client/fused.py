"""The table look-up as one Triton kernel: a byte is read, a value is written, nothing between.

Imported only where a GPU is used and Triton is there (torch brings it along on
Linux). It moves bits: an element of two bytes is looked up as an int16, one of
four as an int32, so that no conversion can change a value.
"""

from typing import Any

import torch
import triton
import triton.language as tl

BLOCK_ELEMENTS = 1024


@triton.jit  # type: ignore[untyped-decorator]
def _kernel(pixels, rows, out, elements, PLANE: tl.constexpr, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]  # noqa: N803, PLR0917
    # 64 bits: an answer may have more than 2**31 elements.
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = at < elements
    channel = ((at // PLANE) % 3).to(tl.int32)
    byte = tl.load(pixels + at, mask=inside, other=0).to(tl.int32)
    tl.store(out + at, tl.load(rows + channel * 256 + byte, mask=inside), mask=inside)


def look_up(pixels: Any, rows: Any, out: Any, plane: int) -> None:
    """Flat uint8 `pixels` of (N, 3, plane) through `rows` (3, 256) into flat `out`."""
    bits = torch.int16 if rows.element_size() == 2 else torch.int32
    blocks = (triton.cdiv(pixels.numel(), BLOCK_ELEMENTS),)
    with torch.cuda.device_of(pixels):
        _kernel[blocks](
            pixels, rows.view(bits), out.view(bits), pixels.numel(), plane, BLOCK_ELEMENTS
        )
