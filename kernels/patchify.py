"""The portable kernel: pad, normalise and cut in one pass, in the order of the answer.

Arrays come in, patches go out; `reference.patchify` is the definition. The
kernel is serial, runs without the GIL and allocates nothing, and its body runs
the same with the JIT off. Importing it imports numba, which may fail, and
compiles nothing. Shapes and dtypes are checked by the one caller, `engine.py`.
"""

from typing import Any

import numpy as np
from numba import types
from numpy.typing import NDArray

from kernels.jit import compiled
from kernels.tables import STORAGE, Stored

SPECIALISATIONS = tuple(dict.fromkeys(STORAGE.values()))
"""The storage dtypes that the kernel is compiled for: uint8, uint16, float32."""


# 2048x2048 to 147x147 patches of 14, RGB: 8.1 ms uint8, 9.6 ms float32, and
# 10.6 and 10.8 with `if y < H and x < W` for each pixel, 140 with / and % for
# each pixel (one thread, EPYC Zen 4).
@compiled
def patchify(pixels: NDArray[np.uint8], table: NDArray[Stored], out: NDArray[Stored]) -> None:
    """As `reference.patchify`, the same bytes; `out` is `arrange.whole`."""
    rows, columns, merge, _, channels, patch_h, patch_w = out.shape
    for gy in range(rows * merge):
        for gx in range(columns * merge):
            top, left = gy * patch_h, gx * patch_w
            for c in range(channels):
                # A slice ends at the border of the pixels, or is empty past it.
                source = pixels[top : top + patch_h, left : left + patch_w, c]
                target = out[gy // merge, gx // merge, gy % merge, gx % merge, c]
                values = table[:, c]
                height, width = source.shape
                if height < patch_h or width < patch_w:
                    target[:, :] = values[0]
                for y in range(height):
                    for x in range(width):
                        target[y, x] = values[source[y, x]]


def arguments(storage: np.dtype[Stored]) -> tuple[Any, ...]:
    """The signature for one storage dtype.

    Pixels and table are typed read-only and the caller passes them so: numba
    would compile once more for writable ones.
    """
    element = getattr(types, storage.name)
    return (
        types.Array(types.uint8, 3, "C", readonly=True),
        types.Array(element, 2, "C", readonly=True),
        types.Array(element, 7, "C"),
    )
