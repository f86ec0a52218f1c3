"""The start-up self-test: does an engine write the bytes of its definition here?

An engine's `write_patches` comes in; nothing goes out when every byte equals
`reference`, and `SelfTestError` says what differs. It covers all 768 table
values, each element type, three and four channels, odd sizes, padding of part
of a patch and of whole patches, and resizing both ways. Its pictures are
small: it takes 3 ms (EPYC Zen 4).
"""

from collections.abc import Callable
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from kernels import reference
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
    grid: tuple[int, int]
    patch: int


_CASES = (
    _Case((16, 16, 3), (16, 16), (4, 4), 5),
    _Case((16, 16, 4), (16, 16), (2, 2), 16),
    _Case((1, 1, 3), (1, 1), (2, 2), 14),
    _Case((29, 31, 4), (29, 31), (4, 6), 14),
    _Case((37, 53, 3), (28, 41), (2, 3), 14),
    _Case((64, 20, 4), (21, 17), (2, 2), 14),
    _Case((9, 11, 3), (33, 30), (4, 2), 16),
)

_MEAN = (0.481, 0.457, 0.408)  # of no model: three numbers unlike each other,
_STD = (0.268, 0.261, 0.275)  # so that a mixed-up channel shows


def self_test(write_patches: WritePatches) -> None:
    """Raise SelfTestError unless `write_patches` equals its definition on every case."""
    for case in _CASES:
        pixels = _picture(case)
        for dtype in STORAGE:
            values = table(dtype, _MEAN, _STD)
            shape = (*case.grid, 3, case.patch, case.patch)
            got, wanted = _junk(shape, values.dtype), np.empty(shape, values.dtype)
            write_patches(pixels, case.resized, values, got)
            reference.patchify(reference.resize(pixels, *case.resized), values, wanted)
            if got.tobytes() != wanted.tobytes():
                differing = np.count_nonzero(got != wanted)
                raise SelfTestError(f"{differing} of {got.size} {dtype} values differ in {case}")


def _picture(case: _Case) -> NDArray[np.uint8]:
    """Every byte in each channel when it has 256 pixels or more: 7 and 256 share no factor."""
    height, width, channels = case.pixels
    steps = np.arange(height * width)[:, np.newaxis] * 7 + np.arange(channels) * 85
    return (steps % 256).astype(np.uint8).reshape(case.pixels)


def _junk(shape: tuple[int, ...], dtype: np.dtype[Stored]) -> NDArray[Stored]:
    """An array full of 0xA5 bytes, so that what is left unwritten shows."""
    return np.full(int(np.prod(shape)) * dtype.itemsize, 0xA5, np.uint8).view(dtype).reshape(shape)
