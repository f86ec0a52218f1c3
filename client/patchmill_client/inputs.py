"""What callers have, turned into what is sent: paths, bytes and images into encoded items.

In come a picture, a video chunk, or a sequence of either; out come items of
encoded bytes. Bytes and files go out as they are: the service decides their
format by their content. Nothing is fetched from anywhere, and Pillow is needed
only by callers who hand in its images.
"""

import io
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from patchmill_client.errors import InvalidInput
from patchmill_client.values import ItemType

if TYPE_CHECKING:
    from PIL.Image import Image

Picture: TypeAlias = "str | PathLike[str] | bytes | bytearray | memoryview | Image"
"""A path, encoded bytes, or a PIL image."""
Source: TypeAlias = "Picture | Sequence[Picture]"
"""One item: a picture, or the consecutive frames of a video chunk."""
Sources: TypeAlias = "Picture | Sequence[Source]"
"""What one call takes: a picture, or a sequence of items."""

PNG_MODES = frozenset({"1", "L", "LA", "P", "RGB", "RGBA", "I;16"})
"""The modes that PNG holds without loss."""
ORIENTATION = 0x0112
"""The EXIF tag."""


@dataclass(frozen=True, slots=True)
class Sendable:
    """One item, encoded: one frame for an image, several for a chunk. None is empty."""

    type: ItemType
    frames: tuple[bytes, ...]


def gather(sources: Sources) -> tuple[Sendable, ...]:
    """The items of one call, in order; raises InvalidInput with the item at fault."""
    if _is_picture(sources):
        return (gather_one(sources, 0),)
    if not isinstance(sources, Sequence):
        raise InvalidInput(
            f"pictures come as a path, bytes, a PIL image or a sequence of these, "
            f"not as {type(sources).__name__}"
        )
    if not sources:
        raise InvalidInput("there are no pictures")
    return tuple(gather_one(source, index) for index, source in enumerate(sources))


def gather_one(source: object, index: int) -> Sendable:
    """One item: a picture, or a sequence of frames as a video chunk."""
    if _is_picture(source):
        return Sendable(ItemType.IMAGE, (_encoded(source, index),))
    if not isinstance(source, Sequence):
        raise InvalidInput(f"{type(source).__name__} is neither a picture nor frames", index)
    if not source:
        raise InvalidInput("the video chunk has no frames", index)
    return Sendable(ItemType.VIDEO_CHUNK, tuple(_encoded(frame, index) for frame in source))


def _is_picture(source: object) -> bool:
    kinds = (str, PathLike, bytes, bytearray, memoryview)
    return isinstance(source, kinds) or _is_image(source)


def _is_image(source: object) -> bool:
    """Whether it is a PIL image; whoever has one has imported Pillow."""
    pillow = sys.modules.get("PIL.Image")
    return pillow is not None and isinstance(source, pillow.Image)


def _encoded(picture: object, index: int) -> bytes:
    if isinstance(picture, str | PathLike):
        data = _read(picture, index)
    elif isinstance(picture, bytes):
        data = picture
    elif isinstance(picture, bytearray | memoryview):
        data = bytes(picture)
    elif _is_image(picture):
        data = _png(picture, index)
    else:
        raise InvalidInput(f"{type(picture).__name__} is not a picture", index)
    if not data:
        raise InvalidInput("the picture has no bytes", index)
    return data


def _read(path: "str | PathLike[str]", index: int) -> bytes:
    try:
        return Path(path).read_bytes()
    except (OSError, ValueError) as error:  # ValueError: a NUL in the name
        raise InvalidInput(f"{str(path)[:200]!r} cannot be read: {error}", index) from error


def _png(image: Any, index: int) -> bytes:
    """The image's pixels, without loss. An orientation still to be applied goes with them.

    So `Image.open(path)` and `path` stand for the same upright picture. Colour
    profiles and other metadata stay here; the service reads none.
    """
    if image.mode not in PNG_MODES:
        raise InvalidInput(
            f"a PIL image of mode {image.mode} cannot be sent without loss; convert it to RGB",
            index,
        )
    if 0 in image.size:
        raise InvalidInput("the PIL image has no pixels", index)
    encoded = io.BytesIO()
    options: dict[str, Any] = {"compress_level": 1, "icc_profile": None}
    try:
        image.load()  # of a TIFF this applies the orientation and takes it off
        orientation = image.getexif().get(ORIENTATION, 1)
        if orientation != 1:
            exif = sys.modules["PIL.Image"].Exif()
            exif[ORIENTATION] = orientation
            options["exif"] = exif
        image.save(encoded, "PNG", **options)
    except (OSError, ValueError, SyntaxError, EOFError) as error:  # Pillow's, for broken files
        raise InvalidInput(f"the PIL image cannot be encoded: {error}", index) from error
    return encoded.getvalue()
