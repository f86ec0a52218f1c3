"""The weights of the float resize: which samples make one of the output, and how much of each.

A size before and a size after come in, a `FloatAxis` goes out. The weights are
those of Pillow's bicubic with antialias (a = -0.5, `precompute_coeffs` in its
src/libImaging/Resample.c) in double, then rounded to float32, as torch's
antialias has them. NumPy alone: the twin needs them where numba is missing.
"""

from dataclasses import dataclass
from functools import lru_cache
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

Number = TypeVar("Number", bound=np.generic)

GROUP = 2
"""The weights of one output are filled up with zeros to a multiple of this many."""


@dataclass(frozen=True, slots=True)
class FloatAxis:
    """How one axis is resampled: sample i is the sum of `weights[i]` times neighbours.

    The neighbours begin at `starts[i]`; those of weight zero may lie past the end.
    """

    starts: NDArray[np.int64]
    """(outputs,)"""
    weights: NDArray[np.float32]
    """(outputs, taps)"""

    def window(self, first: int, count: int) -> "FloatAxis":
        """The outputs from `first` on, `count` of them; those past the end are zero."""
        starts = np.zeros(count, np.int64)
        weights = np.zeros((count, self.weights.shape[1]), np.float32)
        inside = max(min(len(self.starts) - first, count), 0)
        starts[:inside] = self.starts[first : first + inside]
        weights[:inside] = self.weights[first : first + inside]
        return FloatAxis(_fixed(starts), _fixed(weights))


@lru_cache(maxsize=64)
def float_axis(before: int, after: int) -> FloatAxis:
    """The axis from `before` to `after` samples, kept for the next frame."""
    if before == after:
        starts, weights = np.arange(after), np.zeros((after, GROUP), np.float32)
        weights[:, 0] = 1
        return FloatAxis(_fixed(starts), _fixed(weights))
    scale = before / after
    filter_scale = max(scale, 1.0)
    support = 2.0 * filter_scale
    centres = (np.arange(after) + 0.5) * scale
    starts = np.maximum((centres - support + 0.5).astype(np.int64), 0)
    counts = np.minimum((centres + support + 0.5).astype(np.int64), before) - starts
    taps = -(-int(counts.max()) // GROUP) * GROUP
    places = np.arange(taps)
    exact = _bicubic((places + (starts - centres + 0.5)[:, np.newaxis]) * (1.0 / filter_scale))
    exact[places >= counts[:, np.newaxis]] = 0
    exact /= exact.sum(axis=1, keepdims=True)
    return FloatAxis(_fixed(starts), _fixed(exact.astype(np.float32)))


def _bicubic(x: NDArray[np.float64]) -> NDArray[np.float64]:
    """The cubic convolution kernel of a = -0.5."""
    x = np.abs(x)
    near = ((-0.5 + 2.0) * x - (-0.5 + 3.0)) * x * x + 1
    far = (((x - 5) * x + 8) * x - 4) * -0.5
    return np.where(x < 1.0, near, np.where(x < 2.0, far, 0.0))


def _fixed(array: NDArray[Number]) -> NDArray[Number]:
    array.flags.writeable = False
    return array
