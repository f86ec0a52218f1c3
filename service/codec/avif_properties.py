"""What the properties of an AVIF item or track say.

In: the property boxes that belong to one picture. Out: their facts in one
value. Sizes, sample depth and the transformations are read; the coded pictures
are not.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from service.codec.boxes import Box
from service.codec.facts import checked_size
from service.codec.reader import Reader
from service.types import Colour, Size

_ALPHA_URNS = (
    b"urn:mpeg:mpegB:cicp:systems:auxiliary:alpha\0",
    b"urn:mpeg:hevc:2015:auxid:1\0",
)

# (turns of 90 degrees anticlockwise, mirrored axis) in EXIF's terms: irot comes
# before imir (MIAF 7.3.6.7); axis 0 swaps top and bottom, 1 left and right
_ORIENTATIONS: dict[tuple[int, int | None], int] = {
    (0, None): 1,
    (1, None): 8,
    (2, None): 3,
    (3, None): 6,
    (0, 0): 4,
    (1, 0): 5,
    (2, 0): 2,
    (3, 0): 7,
    (0, 1): 2,
    (1, 1): 7,
    (2, 1): 4,
    (3, 1): 5,
}


@dataclass(frozen=True, slots=True)
class Properties:
    """Facts of one coded picture; None where no property says it."""

    size: Size | None
    bits: int | None
    colour: Colour | None
    orientation: int
    alpha_plane: bool


def read_properties(reader: Reader, found: Iterable[Box]) -> Properties:
    """Fold property boxes into one value; the first of a type counts."""
    by_kind: dict[bytes, Box] = {}
    for box in found:
        by_kind.setdefault(box.kind, box)
    turns, axis = 0, None
    if irot := by_kind.get(b"irot"):
        turns = reader.u8(irot.start) & 3
    if imir := by_kind.get(b"imir"):
        axis = reader.u8(imir.start) & 1
    bits, colour = _configuration(reader, by_kind.get(b"av1C"))
    return Properties(
        size=_size(reader, by_kind.get(b"ispe")),
        bits=bits,
        colour=colour,
        orientation=_ORIENTATIONS[turns, axis],
        alpha_plane=_is_alpha(reader, by_kind.get(b"auxC") or by_kind.get(b"auxi")),
    )


def _size(reader: Reader, ispe: Box | None) -> Size | None:
    if ispe is None:
        return None
    return checked_size(reader.u32(ispe.start + 8), reader.u32(ispe.start + 4))


def _configuration(reader: Reader, av1c: Box | None) -> tuple[int | None, Colour | None]:
    """Depth and colour of the AV1 configuration (AV1-ISOBMFF section 2.3.3)."""
    if av1c is None:
        return None, None
    flags = reader.u8(av1c.start + 2)
    bits = (12 if flags & 0x20 else 10) if flags & 0x40 else 8
    return bits, Colour.GREY if flags & 0x10 else Colour.YCBCR


def _is_alpha(reader: Reader, auxiliary: Box | None) -> bool:
    if auxiliary is None:
        return False
    return any(reader.starts(auxiliary.start + 4, urn) for urn in _ALPHA_URNS)
