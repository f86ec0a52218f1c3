"""The definitions: what the kernels must equal, byte for byte.

Pixels come in; resized pixels or patches go out, by Pillow and plain NumPy.
These functions are slow, and serve where no kernel can. They check nothing
(`engine.py` does), and this is the one module here that knows Pillow: its bits
are the contract, whatever the order of its passes.
"""

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from kernels.arrange import whole
from kernels.tables import Stored

_MODES = {3: "RGB", 4: "RGBX"}


def resize(pixels: NDArray[np.uint8], height: int, width: int) -> NDArray[np.uint8]:
    """Pillow's bicubic: (H, W, C) to (height, width, C), C being 3 or 4, C order.

    Pixels that have the size already are returned as they are, not as a copy;
    others come back read-only.
    """
    if pixels.shape[:2] == (height, width):
        return pixels
    mode = _MODES[pixels.shape[2]]
    size = (pixels.shape[1], pixels.shape[0])
    # Pillow reads RGBX in place. fromarray would take the fourth channel for
    # alpha, and resize would multiply the others by it.
    image = Image.frombuffer(mode, size, pixels, "raw", mode, 0, 1)
    return np.asarray(image.resize((width, height), Image.Resampling.BICUBIC))


def patchify(pixels: NDArray[np.uint8], table: NDArray[Stored], out: NDArray[Stored]) -> None:
    """Pad with zero pixels right and below, normalise by `table`, cut into patches.

    `pixels` is (H, W, 3) or (H, W, 4), of which the fourth channel is not
    read; `table` is (256, 3); `out` has a shape of `arrange.py` and covers the
    pixels.
    """
    patches = whole(out)
    rows, columns, merge, _, channels, patch_h, patch_w = patches.shape
    height, width, _ = pixels.shape
    padded = np.zeros((rows * merge * patch_h, columns * merge * patch_w), np.uint8)
    for c in range(channels):
        padded[:height, :width] = pixels[:, :, c]
        cut = padded.reshape(rows, merge, patch_h, columns, merge, patch_w)
        patches[:, :, :, :, c] = table[cut.transpose(0, 3, 1, 4, 2, 5), c]
