"""JPEG straight into a buffer of ours, where that gives Pillow's pixels.

libjpeg-turbo by way of simplejpeg: the library that Pillow uses, without the
detour over Pillow's own image memory. It is asked only for what was seen to be
equal (greyscale, YCbCr, RGB), and refuses with an exception whatever is not
flawless; Pillow then has the last word on the same bytes.
"""

import numpy as np
from numpy.typing import NDArray
from simplejpeg import decode_jpeg

from service.buffers import Buffers
from service.types import Buffer, Colour, Format, Header

_EQUAL = (Colour.GREY, Colour.YCBCR, Colour.RGB)
"""Not CMYK and YCCK, whose conversion to RGB is Pillow's own."""


def decode(data: Buffer, header: Header, buffers: Buffers) -> NDArray[np.uint8] | None:
    """(H, W, 4) RGBX as stored, before the orientation; None when it is Pillow's turn."""
    if header.format is not Format.JPEG or header.colour not in _EQUAL:
        return None
    shape = (header.stored.height, header.stored.width, 4)
    pixels = buffers.take(header.stored.pixels * 4).reshape(shape)
    try:
        # The defaults, spelt out: the fast variants change pixels; `strict` makes a warning an
        # exception, because what libjpeg only warns of may be an error to Pillow.
        decoded = decode_jpeg(
            data, "RGBX", fastdct=False, fastupsample=False, buffer=pixels, strict=True
        )
    except Exception:  # noqa: BLE001 - whatever it was, Pillow tells the client what it means
        return None
    return pixels if decoded.shape == shape else None
