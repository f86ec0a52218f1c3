"""The caller of the float resize: picks axes, makes scratch, and splits the work by bands.

Checked arrays come in (`engine.py` checked them), calls of `floats.write_bands`
or of its twin go out. No pixel is touched here. A corner and the size of `out`
say which part of the resized picture is wanted: a tile is such a part.
"""

from collections.abc import Callable
from functools import partial
from itertools import pairwise
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from kernels import float_reference
from kernels.affine import Affine
from kernels.arrange import STREAMED_BYTES, covered, whole
from kernels.float_axis import FloatAxis, float_axis
from kernels.tables import Stored

_PIECE_BYTES = 64
"""What goes past the caches are whole lines of theirs. Parts of lines cost 7 to 16 ms where an
image keeps its columns (1088x1920), and 3 ms but now and then 12 to 20 as patches; not sent past
them, 5.5 and 3.5. The service's buffers begin at such a place, those of NumPy at 16 of 64."""

Part: TypeAlias = Callable[[], None]
"""Writes its rows of patches when called: once, on any thread, without the GIL."""

FloatSplit: TypeAlias = Callable[
    [NDArray[np.uint8], tuple[int, int], tuple[int, int], Affine, NDArray[Stored], int],
    tuple[Part, ...],
]
"""`Engine.split_float` without its checks."""


def by_twin(
    pixels: NDArray[np.uint8],
    resized: tuple[int, int],
    corner: tuple[int, int],
    values: Affine,
    out: NDArray[Stored],
    _parts: int,
) -> tuple[Part, ...]:
    """`FloatSplit` in one part by NumPy."""
    rows, columns = _axes(pixels, resized, corner, out)
    return (partial(float_reference.patchify, pixels, rows, columns, values, out),)


def by_kernel(write_bands: Any) -> FloatSplit:
    """`FloatSplit` by `floats.write_bands`, compiled."""
    # Only where numba is: its modules hold what the kernel is told.
    from kernels.float_put import BAND, BFLOAT16, FLOAT16, FLOAT32, FloatJob  # noqa: PLC0415
    from kernels.floats import scratch  # noqa: PLC0415

    kinds = {"float32": FLOAT32, "float16": FLOAT16, "bfloat16": BFLOAT16}

    def split(  # noqa: PLR0913, PLR0917 - as `Engine.split_float`
        pixels: NDArray[np.uint8],
        resized: tuple[int, int],
        corner: tuple[int, int],
        values: Affine,
        out: NDArray[Stored],
        parts: int,
    ) -> tuple[Part, ...]:
        rows, columns = _axes(pixels, resized, corner, out)
        grid_h, grid_w, merge, _, _, height, width = whole(out).shape
        job = FloatJob(
            channels=pixels.shape[2],
            grid_w=grid_w * merge,
            merge=merge,
            height=height,
            width=width,
            bands=-(-height // BAND),
            kind=kinds[values.dtype],
            streamed=int(_streamed(out, width)),
        )
        source = pixels.reshape(len(pixels), -1).view()
        source.flags.writeable = False
        target = out.reshape(-1).view(np.uint8)

        def write(first: int, stop: int) -> None:
            write_bands(
                first,
                stop,
                job,
                source,
                rows.starts,
                rows.weights,
                columns.starts,
                columns.weights,
                values.scale,
                values.offset,
                *scratch(pixels.shape[1] + columns.weights.shape[1]),
                target,
            )

        bands = grid_h * merge * job.bands
        parts = min(parts, bands)
        edges = [bands * part // parts for part in range(parts + 1)]
        return tuple(partial(write, *ends) for ends in pairwise(edges))

    return split


def _streamed(out: NDArray[Stored], width: int) -> bool:
    """Large floats, each row of a patch at a place where they may go past the caches."""
    begins = out.ctypes.data | width * out.itemsize
    return out.dtype == np.float32 and out.nbytes >= STREAMED_BYTES and begins % _PIECE_BYTES == 0


def _axes(
    pixels: NDArray[np.uint8],
    resized: tuple[int, int],
    corner: tuple[int, int],
    out: NDArray[Stored],
) -> tuple[FloatAxis, FloatAxis]:
    """The rows and the columns that `out` covers, from the corner on."""
    rows, columns = (
        float_axis(before, after).window(first, count)
        for before, after, first, count in zip(
            pixels.shape[:2], resized, corner, covered(out), strict=True
        )
    )
    return rows, columns
