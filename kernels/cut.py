"""Cut rows of RGBX pixels into bytes: patches of (3, P, P), or rows of three planes.

Addresses come in, bytes go out, unchanged; `normalise.py` makes values of
them. A row of fewer than eight pixels is not for this module. One of
14 has two vectors a row, pixels 0 to 7 and 6 to 13, so that nothing outside
the patch is read or written.
"""

from kernels.jit import called, inlined
from kernels.job import RGBX
from kernels.llvm import LANES
from kernels.simd import load, planar, store_three_quarters


@called
def cut(patch: int, pixels: int, stride: int, count: int, to: int) -> None:
    """Write `count` patches from the `patch` rows at `pixels`, which are `stride` bytes apart.

    Reads `count` * `patch` pixels of each row, writes 3 * `patch` * `patch`
    bytes for each patch.
    """
    if patch == 14:  # two vectors a row, unrolled: 10 % of the time of a float32 answer
        _cut(14, pixels, stride, count, to)
    else:
        _cut(patch, pixels, stride, count, to)


@called
def cut_row(pixels: int, width: int, red: int, green: int, blue: int) -> None:
    """Write `width` pixels, LANES or more, to three rows of bytes."""
    for i in range(0, width, LANES):
        x = min(i, width - LANES)
        store_three_quarters(red + x, green + x, blue + x, planar(load(pixels + x * RGBX)))


@inlined
def _cut(patch: int, pixels: int, stride: int, count: int, to: int) -> None:
    plane = patch * patch
    for n in range(count):
        row = pixels + n * patch * RGBX
        at = to + n * 3 * plane
        for _ in range(patch):
            for i in range(0, patch, LANES):
                x = min(i, patch - LANES)
                eight = planar(load(row + x * RGBX))
                store_three_quarters(at + x, at + plane + x, at + 2 * plane + x, eight)
            row += stride
            at += patch
