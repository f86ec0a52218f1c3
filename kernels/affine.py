"""The normalisation of floats: a scale and an offset for each channel.

A dtype's name, a mean and a standard deviation come in, an `Affine` goes out.
It is to the float resize what `tables.py` is to bytes: there a value has 256
inputs and a table, here it can be any number. Nothing is normalised here.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kernels.tables import STORAGE, Channels, Stored

FLOATS = ("float16", "bfloat16", "float32")
"""What a float can be stored as: not uint8, whose bytes hold no overshoot."""


@dataclass(frozen=True, slots=True)
class Affine:
    """The value of a resampled v, of 0 to 255 and somewhat beyond: v * scale + offset."""

    dtype: str
    scale: NDArray[np.float32]
    """(3,)"""
    offset: NDArray[np.float32]
    """(3,)"""

    @property
    def storage(self) -> np.dtype[Stored]:
        """What one element is in memory."""
        return STORAGE[self.dtype]


def affine(dtype: str, mean: Channels, std: Channels) -> Affine:
    """(v / 255 - mean) / std, stored as `dtype`; ValueError for uint8 and for unknown ones."""
    if dtype not in FLOATS:
        raise ValueError(f"dtype is {dtype!r}, must be one of {', '.join(FLOATS)}")
    divisor = np.array(std, np.float64)
    scale = (1.0 / (255.0 * divisor)).astype(np.float32)
    offset = (-np.array(mean, np.float64) / divisor).astype(np.float32)
    scale.flags.writeable = offset.flags.writeable = False
    return Affine(dtype, scale, offset)
