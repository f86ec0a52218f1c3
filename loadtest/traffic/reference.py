"""What the service must answer for a picture of the Kimi-K2.5 profile, computed apart from it.

File bytes go in, the tokens and the digests of the tensor come out, by Pillow and a few
lines of NumPy. Nothing here is the service's or the kernels': it is what their
answers are held against. tests/loadtest holds it against the reference vectors.
"""

import hashlib
import io
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageOps

PATCH_PX = 14
TOKEN_PX = 28
SIDE_LIMIT_PX = 512 * PATCH_PX
PICTURE_PATCHES = 16384
FRAME_PATCHES = 4096
"""Sizes of the Kimi-K2.5 checkpoint; service/plan/profiles/kimi-k2.5.toml names the source."""

DTYPES = ("uint8", "bfloat16", "float32")


@dataclass(frozen=True)
class Answer:
    """Upright size in pixels, tokens, and by dtype the SHA-256 of the elements."""

    height: int
    width: int
    tokens: int
    digests: Mapping[str, str]


def answer(files: Sequence[bytes]) -> Answer:
    """What one item must come to: a picture, or a chunk of several frames of one size."""
    limit = PICTURE_PATCHES if len(files) == 1 else FRAME_PATCHES
    frames = [_upright(each) for each in files]
    width, height = frames[0].size
    patches = np.concatenate([_patches(each, limit) for each in frames])
    tokens = len(patches) // len(files) // (TOKEN_PX // PATCH_PX) ** 2
    digests = {dtype: hashlib.sha256(_as(dtype, patches)).hexdigest() for dtype in DTYPES}
    return Answer(height, width, tokens, digests)


def _upright(data: bytes) -> Image.Image:
    """RGB, turned as EXIF says, transparency on white."""
    image = ImageOps.exif_transpose(Image.open(io.BytesIO(data)))
    if not image.has_transparency_data:
        return image.convert("RGB")
    colours = image.convert("RGBA")
    white = Image.new("RGBA", colours.size, (255, 255, 255, 255))
    return Image.alpha_composite(white, colours).convert("RGB")


def _patches(image: Image.Image, limit: int) -> NDArray[np.uint8]:
    """(N, 3, 14, 14): resized, padded with zeros, cut row by row."""
    width, height = image.size
    scale = min(
        1.0,
        math.sqrt(limit / (max(1, width // PATCH_PX) * max(1, height // PATCH_PX))),
        SIDE_LIMIT_PX / width,
        SIDE_LIMIT_PX / height,
    )
    size = tuple(min(max(1, int(side * scale)), SIDE_LIMIT_PX) for side in (width, height))
    pixels = np.asarray(image.resize(size, Image.Resampling.BICUBIC))  # type: ignore[arg-type]
    below, right = (-side % TOKEN_PX for side in pixels.shape[:2])
    whole = np.pad(pixels, ((0, below), (0, right), (0, 0)))
    rows, columns = whole.shape[0] // PATCH_PX, whole.shape[1] // PATCH_PX
    cut = whole.reshape(rows, PATCH_PX, columns, PATCH_PX, 3).transpose(0, 2, 4, 1, 3)
    return cut.reshape(rows * columns, 3, PATCH_PX, PATCH_PX)


def _as(dtype: str, patches: NDArray[np.uint8]) -> bytes:
    """Little-endian elements: the bytes themselves, or normalised by mean and std 0.5."""
    if dtype == "uint8":
        return patches.tobytes()
    levels = (np.arange(256) / 255).astype(np.float32)
    levels = (levels - np.float64(0.5)).astype(np.float32)
    table = (levels * (1 / np.float64(0.5))).astype("<f4")
    if dtype == "bfloat16":  # to nearest, ties to even, on the bits
        bits = table.view("<u4")
        table = ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype("<u2")
    return bytes(table[patches].data)
