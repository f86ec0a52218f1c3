"""Cut rows of RGBX pixels into patches of bytes: (3, P, P) each, in the order of the answer.

Addresses come in, bytes go out, unchanged; `normalise.py` makes values of
them. A patch of fewer than eight pixels a row is not for this module. One of
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
