"""Random cases for the kernels, and the bytes that they must give: Pillow, then the twin."""

from dataclasses import dataclass

import numpy as np

from kernels import reference
from kernels.tables import STORAGE, table

NORMALISATIONS = (
    ((0.5, 0.5, 0.5), (0.5, 0.5, 0.5)),
    ((0.48145466, 0.4578275, 0.40821073), (0.26862954, 0.26130258, 0.27577711)),
    ((0.0, 0.0, 0.0), (1.0, 1.0, 1.0)),
)
PATCHES = (14, 14, 16, 8, 9, 27, 5)
LONGEST = 4000
MOST_PIXELS = 600_000


@dataclass(frozen=True)
class Case:
    """What `Engine.write_patches` is given; `shape` is that of `out`."""

    pixels: np.ndarray
    resized: tuple[int, int]
    values: np.ndarray
    shape: tuple[int, ...]
    shift: int = 0
    """`out` begins so many elements after an aligned address."""

    def wanted(self) -> bytes:
        out = np.empty(self.shape, self.values.dtype)
        small = reference.resize(self.pixels, *self.resized)
        reference.patchify(small, self.values, out)
        return out.tobytes()

    def junk(self) -> np.ndarray:
        """An `out` in which what is left unwritten shows."""
        itemsize = self.values.dtype.itemsize
        before = self.shift * itemsize
        raw = np.full(before + int(np.prod(self.shape)) * itemsize, 0xA5, np.uint8)
        return raw[before:].view(self.values.dtype).reshape(self.shape)

    def __str__(self) -> str:
        return f"{self.pixels.shape} to {self.resized} in {self.values.dtype} {self.shape}"


def random_case(rng: np.random.Generator) -> Case:
    """Any sizes and ratios, the extremes more often than chance would have them."""
    height, width = _size(rng)
    resized = _size(rng)
    match rng.integers(8):
        case 0:
            resized = (height, resized[1])
        case 1:
            resized = (resized[0], width)
        case 2:
            resized = (height, width)
        case 3:  # what the profiles do most: a little smaller, the same on both axes
            scale = rng.uniform(1.0, 2.2)
            resized = (max(1, int(height / scale)), max(1, int(width / scale)))
    if resized[0] * resized[1] > MOST_PIXELS:
        resized = (max(1, MOST_PIXELS // resized[1]), resized[1])
    patch = int(rng.choice(PATCHES))
    grid = tuple(-(-side // patch) + int(rng.integers(3)) for side in resized)
    dtype = str(rng.choice(list(STORAGE)))
    values = table(dtype, *NORMALISATIONS[rng.integers(len(NORMALISATIONS))])
    pixels = _noise(rng, (height, width, int(rng.integers(3, 5))))
    shift = int(rng.integers(32))
    return Case(pixels, resized, values, _arrangement(rng, resized, grid, patch), shift)


def _arrangement(
    rng: np.random.Generator, resized: tuple[int, int], grid: tuple[int, ...], patch: int
) -> tuple[int, ...]:
    """A shape of `arrange.py`: raster, tokens of 2 x 2 or 3 x 3 patches, or not cut."""
    match rng.integers(6):
        case 0 | 1:
            merge = int(rng.integers(2, 4))
            tokens = tuple(-(-side // merge) for side in grid)
            return (*tokens, merge, merge, 3, patch, patch)
        case 2:
            return (3, *(side + int(rng.integers(20)) for side in resized))
    return (*grid, 3, patch, patch)


def _size(rng: np.random.Generator) -> tuple[int, int]:
    kind = rng.integers(6)
    if kind == 0:
        sides = rng.integers(1, 12), rng.integers(1, LONGEST + 1)
    elif kind == 1:
        sides = rng.integers(1, LONGEST + 1), 1
    else:
        sides = np.exp(rng.uniform(0, np.log(LONGEST), 2)).astype(int)
    height, width = (int(side) for side in rng.permutation(sides))
    return min(height, max(1, MOST_PIXELS // width)), width


def _noise(rng: np.random.Generator, shape: tuple[int, int, int]) -> np.ndarray:
    """Bytes of any value, or of 0 and 255 alone, which reach the limits of the sums."""
    if rng.integers(2):
        return rng.integers(0, 256, shape, dtype=np.uint8)
    return rng.integers(0, 2, shape, dtype=np.uint8) * np.uint8(255)
