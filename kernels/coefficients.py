"""Pillow's bicubic weights: which samples make one sample of the output, and how much of each.

A size before and a size after come in; an `Axis` goes out, in the form that
`resample.py` multiplies by. The arithmetic is Pillow's (`precompute_coeffs`
and `normalize_coeffs_8bpc` in its src/libImaging/Resample.c): the same
operations in double, in the same order, so that every weight is the same
integer. No pixel is touched here.
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numba import types
from numpy.typing import NDArray

from kernels.jit import compiled, inlined

PRECISION_BITS = 22
"""A weight of 1.0 is 1 << 22."""

WINDOW = 4
"""The horizontal pass reads its source this many pixels at a time."""


@dataclass(frozen=True, slots=True)
class Axis:
    """How one axis is resampled.

    Sample i of the output is made of 2 * `pairs` neighbours from `starts[i]`
    on. `factors[i, p]` are the weights k of neighbours 2p and 2p + 1, split
    into k = 256 * high + low with low in -128 to 127, so that both fit in int16:
    [high, high, low, low]. What is beyond the weights that Pillow has is zero.
    """

    starts: NDArray[np.int32]
    """(outputs,), never descending; the last neighbours may lie past the end"""
    factors: NDArray[np.int16]
    """(outputs, pairs, 4)"""
    pairs: int


def vertical_first(before: tuple[int, int], after: tuple[int, int]) -> bool:
    """Pillow 13's rule; the sizes are (height, width). Pillow 12 knew no such order."""
    lost_h, lost_w = before[0] - after[0], before[1] - after[1]
    return lost_h > 0 and lost_h > 2 * lost_w


def plan_axis(weigh: Any, before: int, after: int, multiple: int) -> Axis:
    """The weights from `before` to `after` samples, for a count rounded up to `multiple`.

    The outputs past `after` have weights of zero. `weigh` is the function
    below, compiled.
    """
    outputs = -(-after // multiple) * multiple
    room = 2 * math.ceil(2.0 * max(before / after, 1.0)) + 1
    starts = np.zeros(outputs, np.int32)
    weights = np.zeros((outputs, room + 1), np.int32)
    pairs = (weigh(before, after, starts, weights, np.empty(room)) + 1) // 2
    starts[after:] = starts[after - 1]
    whole = weights[:, : 2 * pairs].reshape(outputs, pairs, 2)
    factors = np.empty((outputs, pairs, 4), np.int16)
    high = (whole + 128) >> 8
    factors[:, :, :2] = high
    factors[:, :, 2:] = whole - (high << 8)
    return Axis(starts, factors, pairs)


def window(pairs: int) -> int:
    """How many pixels the horizontal pass reads for one of the output."""
    return -(-2 * pairs // WINDOW) * WINDOW


@compiled
def weigh(
    before: int,
    after: int,
    starts: NDArray[np.int32],
    weights: NDArray[np.int32],
    exact: NDArray[np.float64],
) -> int:
    """Each output's first neighbour and the weights from there on; the most that one has.

    `exact` is room for the weights of one.
    """
    scale = before / after
    filter_scale = max(scale, 1.0)
    support = 2.0 * filter_scale
    step = 1.0 / filter_scale
    most = 0
    for i in range(after):
        center = (i + 0.5) * scale
        first = max(int(center - support + 0.5), 0)
        count = min(int(center + support + 0.5), before) - first
        total = 0.0
        for t in range(count):
            exact[t] = _bicubic((t + first - center + 0.5) * step)
            total += exact[t]
        for t in range(count):
            weight = exact[t]
            if total != 0.0:
                weight /= total
            half = -0.5 if weight < 0 else 0.5  # away from zero, as int() is towards it
            weights[i, t] = int(half + weight * (1 << PRECISION_BITS))
        starts[i] = first
        most = max(most, count)
    return most


@inlined
def _bicubic(x: float) -> float:
    """The cubic convolution kernel of a = -0.5."""
    x = abs(x)
    if x < 1.0:
        return ((-0.5 + 2.0) * x - (-0.5 + 3.0)) * x * x + 1
    if x < 2.0:
        return (((x - 5) * x + 8) * x - 4) * -0.5
    return 0.0


ARGUMENTS = (
    types.int64,
    types.int64,
    types.Array(types.int32, 1, "C"),
    types.Array(types.int32, 2, "C"),
    types.Array(types.float64, 1, "C"),
)
"""The signature of `weigh`."""
