"""The compiled kernel: pad, normalise and cut in one pass, in the order of the answer.

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
    """The same as `reference.patchify`: same arguments, same bytes."""
    grid_h, grid_w, channels, patch, _ = out.shape
    for gy in range(grid_h):
        for gx in range(grid_w):
            for c in range(channels):
                # A slice ends at the border of the pixels, or is empty past it.
                source = pixels[gy * patch : (gy + 1) * patch, gx * patch : (gx + 1) * patch, c]
                target = out[gy, gx, c]
                values = table[:, c]
                height, width = source.shape
                if height < patch or width < patch:
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
        types.Array(element, 5, "C"),
    )
