"""The door: pixels go in, patches lie in the caller's buffer.

An `Engine` holds one way to do it, kernel or NumPy, and checks once what it is
given: a wrong shape is our own bug, told as ValueError before any pixel is
touched. It chooses nothing (`dispatch.py` does) and keeps nothing: many
threads may write at once, each into its own buffer, or each its part of one.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from kernels import arrange, reference
from kernels.affine import FLOATS, Affine
from kernels.float_split import FloatSplit, Part
from kernels.tables import STORAGE, Stored

Split: TypeAlias = Callable[
    [NDArray[np.uint8], tuple[int, int], NDArray[Stored], NDArray[Stored], int], tuple[Part, ...]
]
"""`Engine.split` without its checks; `out` is `arrange.whole`."""

Patchify: TypeAlias = Callable[[NDArray[np.uint8], NDArray[Stored], NDArray[Stored]], None]
"""`reference.patchify`, or a kernel that equals it."""

_Element = TypeVar("_Element", bound=np.generic)


@dataclass(frozen=True, slots=True)
class Engine:
    """One way to make patches. `reason` says in a sentence why it is this one."""

    name: str
    reason: str
    _split: Split = field(repr=False)
    _float_split: FloatSplit = field(repr=False)

    def write_patches(
        self,
        pixels: NDArray[np.uint8],
        resized: tuple[int, int],
        table: NDArray[Stored],
        out: NDArray[Stored],
    ) -> None:
        """Resize `pixels` to `resized`, pad, normalise and cut them into `out`.

        `pixels` is (H, W, 3) or (H, W, 4) uint8, of which the fourth channel is
        not read; `resized` is (height, width) in pixels; `table` is (256, 3)
        from `tables.table`; `out` has the table's dtype and a shape of
        `arrange.py`, and covers the resized pixels. All are in C order, and
        `out` does not overlap the others. Raises ValueError when they are not so.
        """
        for part in self.split(pixels, resized, table, out, 1):
            part()

    def split(
        self,
        pixels: NDArray[np.uint8],
        resized: tuple[int, int],
        table: NDArray[Stored],
        out: NDArray[Stored],
        parts: int,
    ) -> tuple[Part, ...]:
        """The same work as calls that may run in any order, each on a thread of its own.

        There are 1 to `parts` of them, of about the same length: fewer where
        there are fewer rows of patches, and one where Pillow or NumPy resizes. Each
        keeps the arrays alive; `out` is complete when all have returned.
        Raises ValueError as `write_patches` does, before anything is written.
        """
        _check_pixels(pixels, resized)
        _check_table(table)
        _check_out(out, table.dtype)
        _check_covers(out, resized)
        _check_parts(parts)
        return self._split(pixels, resized, table, arrange.whole(out), parts)

    def split_float(  # noqa: PLR0913, PLR0917 - `split`, and where it begins
        self,
        pixels: NDArray[np.uint8],
        resized: tuple[int, int],
        corner: tuple[int, int],
        values: Affine,
        out: NDArray[Stored],
        parts: int,
    ) -> tuple[Part, ...]:
        """The work of the float resize: as `split`, but nothing is rounded to bytes.

        `out` gets the resized picture from `corner` (top, left) on, as far as
        it reaches: all of it from (0, 0), or a tile. `values` is from
        `affine.affine`, and `out` of its storage. Past the resized picture are
        zero pixels. Raises ValueError before anything is written.
        """
        _check_pixels(pixels, resized)
        if values.dtype not in FLOATS:
            raise ValueError(f"dtype is {values.dtype}, must be one of {', '.join(FLOATS)}")
        _check_out(out, values.storage)
        if not all(0 <= at < side for at, side in zip(corner, resized, strict=True)):
            raise ValueError(f"corner is {corner}, must lie in the resized {resized}")
        _check_parts(parts)
        return self._float_split(pixels, resized, corner, values, out, parts)


def by_pillow(patchify: Patchify) -> Split:
    """Resize with Pillow, then `patchify`: in one part, as Pillow resizes a picture whole."""

    def split(
        pixels: NDArray[np.uint8],
        resized: tuple[int, int],
        table: NDArray[Stored],
        out: NDArray[Stored],
        _parts: int,
    ) -> tuple[Part, ...]:
        return (partial(_write, patchify, pixels, resized, table, out),)

    return split


def _write(
    patchify: Patchify,
    pixels: NDArray[np.uint8],
    resized: tuple[int, int],
    table: NDArray[Stored],
    out: NDArray[Stored],
) -> None:
    small = reference.resize(pixels, *resized)
    patchify(read_only(small), read_only(table), out)


def read_only(array: NDArray[_Element]) -> NDArray[_Element]:
    """A read-only view: the kernels are compiled for read-only arrays alone."""
    view = array.view()
    view.flags.writeable = False
    return view


def _check_pixels(pixels: NDArray[np.uint8], resized: tuple[int, int]) -> None:
    if pixels.dtype != np.uint8 or pixels.ndim != 3 or pixels.shape[2] not in (3, 4):
        raise ValueError(f"pixels are {_described(pixels)}, must be (H, W, 3 or 4) uint8")
    if not pixels.flags.c_contiguous or pixels.size == 0:
        raise ValueError("pixels are empty or not C contiguous")
    if min(resized) < 1:
        raise ValueError(f"resized is {resized}, must be at least (1, 1)")


def _check_table(table: NDArray[Stored]) -> None:
    if table.dtype not in STORAGE.values() or table.shape != (256, 3):
        raise ValueError(f"table is {_described(table)}, must come from tables.table")
    if not (table.flags.c_contiguous and table.flags.aligned):
        raise ValueError("table is not C contiguous and aligned")


def _check_out(out: NDArray[Stored], storage: np.dtype[Stored]) -> None:
    if out.dtype != storage:
        raise ValueError(f"out is {out.dtype}, must be the values' {storage}")
    if not arrange.fits(out.shape):
        raise ValueError(f"out is {_described(out)}, must be of a shape of arrange.py")
    if not out.flags.carray:
        raise ValueError("out is not C contiguous, aligned and writable")


def _check_covers(out: NDArray[Stored], resized: tuple[int, int]) -> None:
    covered = arrange.covered(out)
    if covered[0] < resized[0] or covered[1] < resized[1]:
        raise ValueError(f"out covers {covered}, less than the resized {resized}")


def _check_parts(parts: int) -> None:
    if parts < 1:
        raise ValueError(f"parts is {parts}, must be at least 1")


def _described(array: NDArray[_Element]) -> str:
    return f"{array.shape} {array.dtype}"
