"""The normalisation tables: every value that a normalised byte can become.

A dtype's name, a mean and a standard deviation come in; a table of 256 values
for each of the three channels goes out, as the kernels read it. Nothing is
normalised here, and 16-bit floats are handled as their bits, because numba and
NumPy know no bfloat16.
"""

from collections.abc import Mapping
from functools import lru_cache
from types import MappingProxyType
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Stored: TypeAlias = np.uint8 | np.uint16 | np.float32
"""What one element of an answer is in memory."""

Channels: TypeAlias = tuple[float, float, float]
"""One number for each of red, green and blue."""

STORAGE: Mapping[str, np.dtype[Stored]] = MappingProxyType(
    {
        "uint8": np.dtype(np.uint8),
        "float16": np.dtype(np.uint16),
        "bfloat16": np.dtype(np.uint16),
        "float32": np.dtype(np.float32),
    }
)
"""The storage dtype of each element type."""

_FLOAT16_MAX = 65504.0


@lru_cache(maxsize=64)  # making one takes 27 us; there are as many as profiles times dtypes
def table(dtype: str, mean: Channels, std: Channels) -> NDArray[Stored]:
    """The stored value of byte v in channel c at [v, c]: (256, 3), C order, read-only.

    The reference's arithmetic: v / 255, minus mean, times 1 / std, each step
    in double and rounded to float32; mean and 1 / std stay double. "float16"
    and "bfloat16" are that float32 rounded to nearest, ties to even, as bits.
    "uint8" is not normalised: the identity. Raises ValueError for an unknown
    dtype, for a std that is not above zero, and for values that float16 cannot
    hold (the same rule for all float types).
    """
    if dtype not in STORAGE:
        raise ValueError(f"dtype is {dtype!r}, must be one of {', '.join(STORAGE)}")
    if dtype == "uint8":
        stored: NDArray[Stored] = np.repeat(np.arange(256, dtype=np.uint8), 3).reshape(256, 3)
    elif dtype == "float16":
        stored = _normalised(mean, std).astype(np.float16).view(np.uint16)
    elif dtype == "bfloat16":
        stored = bfloat16_bits(_normalised(mean, std))
    else:
        stored = _normalised(mean, std)
    stored.flags.writeable = False
    return stored


def _normalised(mean: Channels, std: Channels) -> NDArray[np.float32]:
    """(256, 3) float32, within the range of float16."""
    if not all(value > 0 for value in std):
        raise ValueError(f"std is {std}, every channel must be above zero")
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):  # refused below
        scale = 1.0 / np.array(std, np.float64)
        unit = _float32(np.arange(256, dtype=np.float64)[:, np.newaxis] / 255.0)
        centred = _float32(unit.astype(np.float64) - np.array(mean, np.float64))
        values = _float32(centred.astype(np.float64) * scale)
    if not (np.abs(values) <= _FLOAT16_MAX).all():
        raise ValueError(f"mean {mean} and std {std} give values that float16 cannot hold")
    return values


def _float32(values: NDArray[np.float64]) -> NDArray[np.float32]:
    return values.astype(np.float32)


def bfloat16_bits(values: NDArray[np.float32]) -> NDArray[np.uint16]:
    """The upper half of each float32, rounded: half of its lowest bit, less one when even."""
    bits = values.view(np.uint32)
    return ((bits + 0x7FFF + (bits >> 16 & 1)) >> 16).astype(np.uint16)
