"""The start-up self-test: does an engine write the bytes of its definition here?

An engine's `write_patches` comes in; nothing goes out when every byte equals
`reference`, and `SelfTestError` says what differs. It covers all 768 table
values, each element type, three and four channels, odd sizes, padding of part
of a patch and of whole patches, every arrangement, and resizing both ways: both
orders of the passes, each alone, and every count of neighbours that has code of
its own. Its pictures are small: it takes 10 ms (EPYC Zen 4).
"""

from collections.abc import Callable
from itertools import product
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from kernels import reference
from kernels.affine import FLOATS, affine
from kernels.float_split import FloatSplit, by_twin
from kernels.tables import STORAGE, Stored, table

WritePatches: TypeAlias = Callable[
    [NDArray[np.uint8], tuple[int, int], NDArray[Stored], NDArray[Stored]], None
]


class SelfTestError(Exception):
    """The engine's bytes are not those of the definition."""


class _Case(NamedTuple):
    pixels: tuple[int, int, int]
    """(H, W, C)"""
    resized: tuple[int, int]
    out: tuple[int, ...]
    """A shape of `arrange.py`"""


_CASES = (
    _Case((16, 16, 3), (16, 16), (4, 4, 3, 5, 5)),
    _Case((16, 16, 4), (16, 16), (2, 2, 3, 16, 16)),
    _Case((1, 1, 3), (1, 1), (2, 2, 3, 14, 14)),
    _Case((29, 31, 4), (29, 31), (4, 6, 3, 14, 14)),
    _Case((37, 53, 3), (28, 41), (2, 3, 3, 14, 14)),
    _Case((64, 20, 4), (21, 17), (2, 2, 3, 14, 14)),
    _Case((9, 11, 3), (33, 30), (4, 2, 3, 16, 16)),
    # Both passes: scales of 1.3, of 1.9, of more; each channel count.
    _Case((40, 73, 4), (31, 56), (3, 4, 3, 14, 14)),
    _Case((58, 61, 3), (30, 33), (3, 3, 3, 14, 14)),
    _Case((50, 97, 4), (17, 22), (2, 2, 3, 14, 14)),
    # Vertical first.
    _Case((97, 40, 3), (41, 36), (3, 3, 3, 14, 14)),
    _Case((60, 33, 4), (40, 40), (3, 3, 3, 16, 16)),
    # One pass alone, and rows of less than a vector.
    _Case((33, 50, 4), (33, 20), (3, 2, 3, 14, 14)),
    _Case((50, 33, 3), (20, 33), (2, 3, 3, 14, 14)),
    _Case((50, 5, 4), (20, 5), (2, 1, 3, 14, 14)),
    _Case((90, 7, 3), (9, 3), (1, 1, 3, 14, 14)),
    # Tokens of 2 x 2 patches, and pictures that are not cut.
    _Case((29, 61, 4), (29, 61), (2, 3, 2, 2, 3, 14, 14)),
    _Case((45, 73, 3), (31, 56), (2, 2, 2, 2, 3, 16, 16)),
    _Case((29, 31, 4), (29, 31), (3, 42, 48)),
    _Case((40, 73, 3), (31, 56), (3, 31, 59)),
)

_FLOAT_CASES = (
    _Case((40, 73, 4), (32, 64), (2, 4, 3, 16, 16)),
    _Case((40, 73, 3), (64, 80), (2, 2, 2, 2, 3, 16, 16)),
    _Case((31, 90, 3), (20, 13), (3, 32, 28)),
    _Case((32, 32, 4), (32, 32), (1, 1, 3, 32, 32)),
    _Case((40, 45, 3), (32, 45), (3, 35, 60)),
    _Case((1, 1, 4), (16, 16), (2, 2, 3, 8, 8)),
)
"""Shrunk, enlarged, padded, not resized, rows alone, and of one pixel."""

_CONSTANTS = (
    # Of no model: three numbers unlike each other, so that a mixed-up channel shows.
    ((0.481, 0.457, 0.408), (0.268, 0.261, 0.275)),
    # Those for which an engine may have a formula instead of the table.
    ((0.5, 0.5, 0.5), (0.5, 0.5, 0.5)),
)


def self_test(write_patches: WritePatches) -> None:
    """Raise SelfTestError unless `write_patches` equals its definition on every case."""
    for case in _CASES:
        pixels = _picture(case)
        small = reference.resize(pixels, *case.resized)
        for dtype, (mean, std) in product(STORAGE, _CONSTANTS):
            values = table(dtype, mean, std)
            got, wanted = _junk(case.out, values.dtype), np.empty(case.out, values.dtype)
            write_patches(pixels, case.resized, values, got)
            reference.patchify(small, values, wanted)
            _compare(got, wanted, f"{dtype} values differ in {case}")


def self_test_floats(split: FloatSplit) -> None:
    """The same for an engine's `split_float`."""
    mean, std = _CONSTANTS[0]
    for case, dtype in product(_FLOAT_CASES, FLOATS):
        values = affine(dtype, mean, std)
        got, wanted = _junk(case.out, values.storage), np.empty(case.out, values.storage)
        for write, out in ((split, got), (by_twin, wanted)):
            for part in write(_picture(case), case.resized, (0, 0), values, out, 2):
                part()
        _compare(got, wanted, f"resampled {dtype} values differ in {case}")


def _compare(got: NDArray[Stored], wanted: NDArray[Stored], words: str) -> None:
    if got.tobytes() != wanted.tobytes():
        raise SelfTestError(f"{np.count_nonzero(got != wanted)} of {got.size} {words}")


def _picture(case: _Case) -> NDArray[np.uint8]:
    """Every byte in each channel when it has 256 pixels or more: 7 and 256 share no factor."""
    height, width, channels = case.pixels
    steps = np.arange(height * width)[:, np.newaxis] * 7 + np.arange(channels) * 85
    return (steps % 256).astype(np.uint8).reshape(case.pixels)


def _junk(shape: tuple[int, ...], dtype: np.dtype[Stored]) -> NDArray[Stored]:
    """An array full of 0xA5 bytes, so that what is left unwritten shows."""
    return np.full(int(np.prod(shape)) * dtype.itemsize, 0xA5, np.uint8).view(dtype).reshape(shape)
