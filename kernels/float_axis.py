"""The weights of the float resize: which samples make one of the output, and how much of each.

A size before and a size after come in, a `FloatAxis` goes out. The weights are
those of torch's bicubic with antialias (a = -0.5), the reference, step by step in
float32: what float32 does to the centres of a long axis is part of them. In
double a weight differs by 1e-4 at 2000 samples and by more beyond (docs/wire.md).
Source: `_compute_indices_min_size_weights_aa` in ATen's native/cpu/UpSampleKernel.cpp.
NumPy alone: the twin needs them where numba is missing.
"""

from dataclasses import dataclass
from functools import lru_cache
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

Number = TypeVar("Number", bound=np.generic)

HALF = np.float32(0.5)
GROUP = 2
"""The weights of one output are filled up with zeros to a multiple of this many.

An axis that keeps its length, and none else, has one of 1: it is copied, as torch's weights for
it say.
"""


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
        return FloatAxis(_fixed(np.arange(after)), _fixed(np.ones((after, 1), np.float32)))
    scale = np.float32(before) / np.float32(after)
    filter_scale = max(scale, np.float32(1))
    support = 2 * filter_scale
    centres = scale * (np.arange(after, dtype=np.float32) + HALF)
    starts = np.maximum((centres - support + HALF).astype(np.int64), 0)
    counts = np.minimum((centres + support + HALF).astype(np.int64), before) - starts
    taps = -(-int(counts.max()) // GROUP) * GROUP
    places = np.arange(taps)
    neighbours = (starts[:, np.newaxis] + places).astype(np.float32)
    weights = _bicubic((neighbours - centres[:, np.newaxis] + HALF) * (1 / filter_scale))
    weights[places >= counts[:, np.newaxis]] = 0
    weights /= weights.cumsum(axis=1, dtype=np.float32)[:, -1:]  # one after the other, as torch
    return FloatAxis(_fixed(starts), _fixed(weights))


def _bicubic(x: NDArray[np.float32]) -> NDArray[np.float32]:
    """The cubic convolution kernel of a = -0.5, with the products and sums that torch fuses."""
    x = np.abs(x)
    near = _fused(_fused(x, 1.5, -2.5) * x, x, 1.0)
    far = _fused(_fused(_fused(x, -0.5, 2.5), x, -4.0), x, 2.0)
    return np.where(x < 1, near, np.where(x < 2, far, np.float32(0)))


def _fused(a: NDArray[np.float32], b: NDArray[np.float32] | float, c: float) -> NDArray[np.float32]:
    """a * b + c rounded once: in double the product is exact."""
    return (a * np.asarray(b, np.float64) + c).astype(np.float32)


def _fixed(array: NDArray[Number]) -> NDArray[Number]:
    array.flags.writeable = False
    return array
