"""The ways that others take from pixels to patches, to be timed beside the kernels.

Each takes resized RGB pixels, (H, W, 3) uint8, and gives float32 patches.
`numpy_style` is how image processors are mostly written; `per_element` is one
compiled loop over all elements of the answer, which finds each one's place by
division and remainder, as published kernels do.
"""
# ruff: noqa: PLR0917 - a kernel, as those that it stands for

from typing import Any

import numpy as np
from numba import njit, prange
from numpy.typing import NDArray

MEAN = np.array([0.5, 0.5, 0.5], np.float32)
STD = np.array([0.5, 0.5, 0.5], np.float32)


def numpy_style(pixels: NDArray[np.uint8], grid: tuple[int, int], patch: int) -> Any:
    """Floats, normalise, pad, and a transposed copy."""
    height, width, _ = pixels.shape
    values = (pixels.astype(np.float32) / 255.0 - MEAN) / STD
    edges = ((0, grid[0] * patch - height), (0, grid[1] * patch - width), (0, 0))
    values = np.pad(values, edges)
    cut = values.reshape(grid[0], patch, grid[1], patch, 3)
    return np.ascontiguousarray(cut.transpose(0, 2, 4, 1, 3))


def _per_element(
    pixels: NDArray[np.uint8],
    patch: int,
    grid_w: int,
    mean: NDArray[np.float32],
    std: NDArray[np.float32],
    out: NDArray[np.float32],
) -> None:
    height, width, _ = pixels.shape
    for i in prange(out.size):
        x = i % patch
        y = i // patch % patch
        c = i // (patch * patch) % 3
        n = i // (3 * patch * patch)
        row = n // grid_w * patch + y
        column = n % grid_w * patch + x
        value = np.float32(0)
        if row < height and column < width:
            value = np.float32(pixels[row, column, c]) / np.float32(255)
        out[i] = (value - mean[c]) / std[c]


per_element = njit(nogil=True)(_per_element)
"""On the calling thread."""
per_element_parallel = njit(nogil=True, parallel=True)(_per_element)
"""On numba's threads; only one thread may call it at a time."""
