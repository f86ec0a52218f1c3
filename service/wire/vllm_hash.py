"""The hash that vLLM 0.32 itself gives a picture: BLAKE3 over framed, typed fields.

Bytes and names go in, 64 hex digits come out. The framing is the engine's own:
every name and value is preceded by its length, a value by its kind, so that no
two contents share a hash. Of a Kimi picture the hash covers the decoded pixels,
of an image the file. What the engine takes from metadata that a client controls
(an ImageID in the EXIF block stands for the whole picture there) is not copied: of
such a file this hash differs from the engine's. Held by tests/golden/vllm.
"""

from collections.abc import Iterable

import numpy as np
from blake3 import blake3
from numpy.typing import NDArray

from service.types import Buffer, Pixels

BAND_ROWS = 64
"""Rows that are brought from RGBX to RGB at a time: 0.7 MB of a picture 3840 wide."""

_NONE, _LIST, _MAP, _LEAF = b"\x00", b"\x01", b"\x02", b"\x03"


def of_chunk(model_id: str, _: Buffer, pixels: Pixels) -> str:
    """Of a picture that is a vision chunk: its pixels decide, whatever file they came in."""
    height, width = pixels.array.shape[:2]
    return _hashed(
        [
            _entry("model_id", _leaf(model_id.encode())),
            _text("vision_chunk"),
            _map(3),
            _entry("type", _leaf(b"image")),
            _entry("image", _leaf(b"image")),
            _map(2),
            _entry("mode", _leaf(b"RGB")),
            _entry("data", _leaf(b"ndarray")),
            _map(3),
            _entry("dtype", _leaf(b"|u1")),
            _entry("shape", _list([height, width, 3])),
            _text("data"),
            _LEAF + _length(height * width * 3),
            *_bands(pixels.array),
            _entry("uuid", _NONE),
        ]
    )


def of_image(model_id: str, file: Buffer, pixels: Pixels) -> str:
    """Of a picture that is an image: its file decides, and whether it was brought to RGB."""
    content: list[Buffer] = [_LEAF, _length(len(file)), file]
    if pixels.converted:
        content = [
            _map(2),
            _text("io_config"),
            _map(2),
            _entry("image_mode", _leaf(b"RGB")),
            _entry("rgba_background_color", _list([255, 255, 255])),
            _text("data"),
            *content,
        ]
    return _hashed(
        [
            _text("image"),
            _leaf(b"image"),
            *content,
            _entry("model_id", _leaf(model_id.encode())),
        ]
    )


def _hashed(fields: Iterable[Buffer]) -> str:
    state = blake3()
    for field in fields:
        state.update(field)
    return state.hexdigest()


def _bands(pixels: NDArray[np.uint8]) -> Iterable[memoryview]:
    """The RGB bytes, some rows at a time, so that there is never a second picture."""
    for top in range(0, len(pixels), BAND_ROWS):
        yield np.ascontiguousarray(pixels[top : top + BAND_ROWS, :, :3]).reshape(-1).data


def _length(number: int) -> bytes:
    return number.to_bytes(8, "little")


def _text(name: str) -> bytes:
    return _length(len(name)) + name.encode()


def _leaf(value: bytes) -> bytes:
    return _LEAF + _length(len(value)) + value


def _list(numbers: list[int]) -> bytes:
    leaves = [_leaf(_length(number)) for number in numbers]
    return _LIST + _length(len(leaves)) + b"".join(leaves)


def _map(pairs: int) -> bytes:
    return _MAP + _length(pairs)


def _entry(name: str, value: bytes) -> bytes:
    return _text(name) + value
