"""Where the bytes of an AVIF's items lie.

In: the bytes and the `meta` box. Out: ranges of the file, item by item, as the
`iloc` table gives them (ISO/IEC 14496-12 section 8.11.3). The ranges may reach
behind the bytes at hand; reading them then says so.
"""

from collections.abc import Sequence, Set
from dataclasses import dataclass

from service.codec.boxes import FULL, Box, child
from service.codec.reader import Reader
from service.errors import CorruptImage

MAX_LOCATIONS = 4_096
"""Entries and extents of the table; each costs a step here, for pictures, alpha and metadata."""

_IN_FILE, _IN_ITEM_DATA = 0, 1  # construction methods of an item's bytes


@dataclass(frozen=True, slots=True)
class Extent:
    """A range of the file."""

    start: int
    count: int


@dataclass(frozen=True, slots=True)
class _Widths:
    """Field widths in bytes of the table."""

    offset: int
    length: int
    base: int
    index: int

    @property
    def extent(self) -> int:
        return self.index + self.offset + self.length


def locate(reader: Reader, meta: Box, wanted: Set[int]) -> dict[int, list[Extent]]:
    """The extents of the wanted items that the table knows."""
    found: dict[int, list[Extent]] = {}
    iloc = child(reader, meta, FULL, b"iloc")
    if iloc is None or not wanted:
        return found
    version = reader.u8(iloc.start)
    sizes = reader.u16(iloc.start + FULL)
    widths = _Widths(sizes >> 12, sizes >> 8 & 15, sizes >> 4 & 15, sizes & 15 if version else 0)
    at = iloc.start + FULL + 2
    count = reader.u32(at) if version == 2 else reader.u16(at)
    at += 4 if version == 2 else 2
    left = MAX_LOCATIONS
    for _ in range(count):
        item = reader.u32(at) if version == 2 else reader.u16(at)
        at += 4 if version == 2 else 2
        method = reader.u16(at) & 15 if version else _IN_FILE
        at += 4 if version else 2  # the method, and the data reference
        base = _number(reader, at, widths.base)
        extents, at = reader.u16(at + widths.base), at + widths.base + 2
        left -= extents + 1
        if left < 0 or at > iloc.end or (extents > 1 and not widths.extent):
            raise CorruptImage("the table of item locations is damaged")
        if item in wanted:
            base += _shift(reader, meta, method)
            found[item] = [
                _extent(reader, at + number * widths.extent, base, widths)
                for number in range(extents)
            ]
        at += extents * widths.extent
    return found


def joined(reader: Reader, extents: Sequence[Extent]) -> memoryview:
    """The bytes of some extents, copied only where there are several.

    Raises `TruncatedImage` where they are not at hand, and `CorruptImage` where
    they are more than the file.
    """
    if len(extents) == 1:
        return reader.view(extents[0].start, extents[0].count)
    if sum(extent.count for extent in extents) > len(reader):
        raise CorruptImage("an item has more bytes than the file")
    return memoryview(b"".join(reader.view(extent.start, extent.count) for extent in extents))


def _shift(reader: Reader, meta: Box, method: int) -> int:
    """Where the offsets of a construction method count from."""
    if method == _IN_FILE:
        return 0
    idat = child(reader, meta, FULL, b"idat") if method == _IN_ITEM_DATA else None
    if idat is None:
        raise CorruptImage("an item's bytes are in a place that is not there")
    return idat.start


def _extent(reader: Reader, at: int, base: int, widths: _Widths) -> Extent:
    at += widths.index
    offset = _number(reader, at, widths.offset)
    return Extent(base + offset, _number(reader, at + widths.offset, widths.length))


def _number(reader: Reader, at: int, width: int) -> int:
    return int.from_bytes(reader.view(at, width), "big")
