"""Pictures to measure with: made from a seed, with the entropy of photographs.

Noise whose amplitude falls with frequency, as in photographs, plus a few hard
edges; at JPEG quality 90 it takes about 2 bits a pixel, as real photographs do.
Flat or pure-noise pictures would flatter or punish a decoder.
"""

import io

import numpy as np
from numpy.typing import NDArray
from PIL import Image

QUALITY = 90


def photo(height: int, width: int, seed: int) -> NDArray[np.uint8]:
    """(H, W, 3) RGB."""
    rng = np.random.default_rng(seed)
    scene = np.zeros((height, width, 3), np.float32)
    for cell_px in (1, 2, 4, 8, 16, 32, 64, 128, 256):
        rows, columns = -(-height // cell_px), -(-width // cell_px)
        noise = rng.normal(0, 1, (rows, columns, 3)).astype(np.float32)
        noise[..., 1:] = 0.8 * noise[..., :1] + 0.3 * noise[..., 1:]  # channels go together
        scale = 3.1 * cell_px**0.55
        for channel in range(3):
            layer = Image.fromarray(noise[..., channel])
            scene[..., channel] += scale * np.asarray(
                layer.resize((width, height), Image.Resampling.BICUBIC)
            )
    scene += 128
    for _ in range(12):  # edges
        top, left = rng.integers(0, height), rng.integers(0, width)
        bottom, right = top + rng.integers(1, height), left + rng.integers(1, width)
        scene[top:bottom, left:right] += rng.normal(0, 25, 3).astype(np.float32)
    return scene.clip(0, 255).astype(np.uint8)


def jpeg(height: int, width: int, seed: int) -> bytes:
    """4:2:0 at quality 90."""
    out = io.BytesIO()
    Image.fromarray(photo(height, width, seed)).save(out, "JPEG", quality=QUALITY)
    return out.getvalue()


def encoded(format_: str, height: int, width: int, seed: int) -> bytes:
    """The same picture as PNG, WebP, …"""
    out = io.BytesIO()
    Image.fromarray(photo(height, width, seed)).save(out, format_)
    return out.getvalue()
