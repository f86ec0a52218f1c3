"""Boxes of ISO base media files (ISO/IEC 14496-12 section 4.2), in one flat walk.

In: bytes and the range to look at. Out: the boxes in that range, each with the
range of its body. Nesting is the caller's: it asks for the range of a body.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from service.codec.reader import Reader
from service.errors import CorruptImage, TruncatedImage

FULL = 4
"""Bytes of version and flags at the start of a full box."""

MAX_BOXES = 2048
"""Boxes beside each other; a picture of a few hundred tiles has about a thousand."""


@dataclass(frozen=True, slots=True)
class Box:
    """A box's type and the range of its body; `end` may lie behind the bytes at hand."""

    kind: bytes
    start: int
    end: int


def boxes(reader: Reader, start: int, end: int) -> Iterator[Box]:
    """The boxes from `start` to `end`, in order.

    Raises `TruncatedImage` where the bytes end inside a box's header, and
    `CorruptImage` for a box that is shorter than its own header or longer than
    what it lies in.
    """
    at = start
    for _ in range(MAX_BOXES):
        if at >= end:
            return
        length, kind, body = reader.u32(at), reader.take(at + 4, 4), at + 8
        if length == 1:
            length, body = reader.u64(at + 8), at + 16
        following = at + length if length else end
        if following < body or following > end:
            raise CorruptImage("a box does not fit into the one around it")
        yield Box(kind, body, following)
        at = following
    raise CorruptImage(f"more than {MAX_BOXES} boxes lie beside each other")


def child(reader: Reader, parent: Box, skip: int, kind: bytes) -> Box | None:
    """The first box of a type inside a parent whose own fields take `skip` bytes."""
    for box in boxes(reader, parent.start + skip, parent.end):
        if box.kind == kind:
            return box
    return None


def required(reader: Reader, parent: Box, skip: int, kind: bytes) -> Box:
    """As `child`; a missing box raises `CorruptImage`."""
    box = child(reader, parent, skip, kind)
    if box is None:
        raise CorruptImage(f"there is no {kind.decode('ascii')} box")
    return box


def check_at_hand(reader: Reader, box: Box) -> None:
    """Raise `TruncatedImage` unless the whole box is in the bytes at hand."""
    if box.end > len(reader):
        raise TruncatedImage("the file ends inside its header")
