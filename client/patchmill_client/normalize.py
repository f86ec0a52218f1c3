"""Normalisation of uint8 elements on the CPU, in the reference's own arithmetic.

A byte has 256 values and a picture three channels, so the arithmetic is done
768 times and then looked up: exact by construction. Values go out in the
storage type of a dtype, 16-bit floats as their bits.
"""

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from patchmill_client.values import Channels, Dtype, Shape

BLOCK_ELEMENTS = 1 << 18
"""Elements looked up at a time: NumPy widens the indices to 8 bytes, and 2 MiB
of them stay in the cache."""


def table(dtype: Dtype, mean: Channels, std: Channels) -> NDArray[np.generic]:
    """The stored value of byte v in channel c at [c, v]: (3, 256), C order.

    `v / 255`, minus mean, times `1 / std`, each step in double and rounded to
    float32; mean and `1 / std` stay double. 16-bit floats are that value rounded
    to nearest, ties to even (docs/wire.md, "The data"). `dtype` is a float type.
    """
    scale = 1.0 / np.array(std, np.float64)[:, np.newaxis]
    unit = _float32(np.arange(256, dtype=np.float64)[np.newaxis] / 255.0)
    centred = _float32(unit.astype(np.float64) - np.array(mean, np.float64)[:, np.newaxis])
    values = _float32(centred.astype(np.float64) * scale)
    if dtype is Dtype.BFLOAT16:
        return _bfloat16_bits(values)
    return values.astype(dtype.storage)


def normalized(
    data: NDArray[np.uint8], shapes: Sequence[Shape], values: NDArray[np.generic]
) -> NDArray[np.generic]:
    """Flat uint8 elements of several items through a table of (3, 256): flat, of its type."""
    out = np.empty(data.size, values.dtype)
    start = 0
    for shape in shapes:
        end = start + math.prod(shape)
        each = (-1, *shape[-3:])
        _look_up(data[start:end].reshape(each), values, out[start:end].reshape(each))
        start = end
    return out


def _look_up(
    pixels: NDArray[np.uint8], values: NDArray[np.generic], out: NDArray[np.generic]
) -> None:
    """(N, 3, P, P) or (N, 3, H, W) through the table, a block of patches at a time."""
    step = max(1, BLOCK_ELEMENTS // pixels[0].size)
    for first in range(0, len(pixels), step):
        block = slice(first, first + step)
        for channel, row in enumerate(values):
            out[block, channel] = row[pixels[block, channel]]


def _float32(values: NDArray[np.float64]) -> NDArray[np.float32]:
    return values.astype(np.float32)


def _bfloat16_bits(values: NDArray[np.float32]) -> NDArray[np.uint16]:
    """The upper half of each float32, rounded: half of its lowest bit, less one when even."""
    bits = values.view(np.uint32)
    return ((bits + 0x7FFF + (bits >> 16 & 1)) >> 16).astype(np.uint16)
