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

from kernels.cut import Kind
from kernels.tables import Stored


@dataclass(frozen=True, slots=True)
class Recipe:
    """A kind, and what it needs."""

    kind: Kind
    table: NDArray[np.int32]
    """(768,) the stored values of red, then of green, then of blue"""
    formula: NDArray[np.float32]
    """(2, 3) a scale, then an offset, for each channel"""


def choose(values: NDArray[Stored], gives: Callable[[Recipe], bool]) -> Recipe | None:
    """The first recipe that gives `values`, (256, 3); None when there is no kind for them."""
    if values.dtype == np.uint8:
        same = (values == np.arange(256)[:, np.newaxis]).all()
        return _recipe(Kind.BYTES, values) if same else None
    if values.dtype == np.float32:
        floats = {Kind.FLOAT32: values.view(np.float32)}
        rest = _recipe(Kind.LOOKUP_32, values.view(np.int32))
    else:
        floats = {
            Kind.FLOAT16: values.view(np.float16).astype(np.float32),
            Kind.BFLOAT16: (values.astype(np.uint32) << 16).view(np.float32),
        }
        rest = _recipe(Kind.LOOKUP_16, values)
    for kind, known in floats.items():
        # The scale from black to white: (v / 255) * scale + black.
        formula = np.stack([known[255] - known[0], known[0]]) if _tame(known) else None
        if formula is not None:
            recipe = Recipe(kind, rest.table, formula.astype(np.float32))
            if gives(recipe):
                return recipe
    return rest


def _recipe(kind: Kind, values: NDArray[np.generic]) -> Recipe:
    table = np.ascontiguousarray(values.T).reshape(-1).astype(np.int32)
    return Recipe(kind, table, np.zeros((2, 3), np.float32))


def _tame(known: NDArray[np.float32]) -> bool:
    """Are the values numbers of a size at which no formula overflows?"""
    return bool((np.abs(known) < 1e6).all())
