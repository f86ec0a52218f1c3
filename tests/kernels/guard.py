"""Arrays between two pages that nobody may touch: a step outside ends the process."""

import ctypes
import mmap
from enum import Enum

import numpy as np

_PAGE = mmap.PAGESIZE
_libc = ctypes.CDLL(None, use_errno=True)


class End(Enum):
    """Which end of the array touches a forbidden page."""

    FIRST = "first"
    LAST = "last"


def guarded(array: np.ndarray, end: End) -> np.ndarray:
    """A copy that ends where a forbidden page begins, or that begins where one ends."""
    pages = max(1, -(-array.nbytes // _PAGE))
    region = mmap.mmap(-1, (pages + 2) * _PAGE)
    raw = np.frombuffer(region, np.uint8)
    for page in (0, pages + 1):
        _forbid(raw.ctypes.data + page * _PAGE)
    start = (pages + 1) * _PAGE - array.nbytes if end is End.LAST else _PAGE
    copy = raw[start : start + array.nbytes].view(array.dtype).reshape(array.shape)
    copy[...] = array
    return copy


def _forbid(page: int) -> None:
    forbidden = 0
    if _libc.mprotect(ctypes.c_void_p(page), ctypes.c_size_t(_PAGE), forbidden) != 0:
        raise OSError(ctypes.get_errno(), "mprotect")
