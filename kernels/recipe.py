"""How a table's values are best made: by a formula that gives them all, or by looking them up.

A table comes in, a `Recipe` goes out. A formula is eight values in five
instructions, and looking up is one load for each value; but a formula holds
only where its float32 arithmetic rounds as the definition's double arithmetic
does, as for a mean and std of 0.5. So it is tried on all 768 values, by the
caller's kernel, and never trusted.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kernels.llvm import LANES
from kernels.normalise import Kind
from kernels.tables import Stored


@dataclass(frozen=True, slots=True)
class Recipe:
    """A kind, and what it needs for patches of one size; see `normalise.py`."""

    kind: Kind
    table: NDArray[np.int32]
    """(768,) the stored values of red, then of green, then of blue"""
    channels: NDArray[np.int32]
    """(3 * P * P + LANES,) where in the table the channel of each place begins"""
    formula: NDArray[np.float32]
    """(2,) the scale and the offset"""


def choose(
    values: NDArray[Stored], tried: int, patch: int, gives: Callable[[Recipe], bool]
) -> Recipe | None:
    """The first recipe that gives `values`, (256, 3); None when there is no kind for them.

    `gives` is asked about a recipe for patches of `tried` pixels a side; what
    is returned is for those of `patch`.
    """
    flat = np.ascontiguousarray(values.T).reshape(-1)
    none = np.zeros(2, np.float32)
    if values.dtype == np.uint8:
        same = (values == np.arange(256)[:, np.newaxis]).all()
        return _recipe(Kind.BYTES, flat, none, patch) if same else None
    if values.dtype == np.float32:
        floats = {Kind.FLOAT32: values.view(np.float32)}
        rest = _recipe(Kind.LOOKUP_32, flat.view(np.int32), none, patch)
    else:
        floats = {
            Kind.FLOAT16: values.view(np.float16).astype(np.float32),
            Kind.BFLOAT16: (values.astype(np.uint32) << 16).view(np.float32),
        }
        rest = _recipe(Kind.LOOKUP_16, flat, none, patch)
    for kind, known in floats.items():
        if not (np.abs(known) < _LARGEST).all():
            continue
        # From black to white: v / 255 * scale + black; of red, to be tried on all.
        formula = np.stack([known[255, 0] - known[0, 0], known[0, 0]])
        if gives(_recipe(kind, flat, formula, tried)):
            return _recipe(kind, flat, formula, patch)
    return rest


_LARGEST = 1e6
"""No formula for larger values, nor for those that are no numbers."""


def _recipe(
    kind: Kind, flat: NDArray[np.generic], formula: NDArray[np.float32], patch: int
) -> Recipe:
    channel = np.arange(3).repeat(patch * patch)
    places = np.concatenate([channel, channel[:LANES]])
    return Recipe(
        kind,
        flat.astype(np.int32),
        (256 * places).astype(np.int32),
        formula,
    )
