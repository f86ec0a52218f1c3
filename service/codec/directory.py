"""Entries of one TIFF image file directory, as Pillow reads them.

TIFF files, EXIF blocks and the index of multi-picture JPEGs are all made of
such directories (TIFF 6.0 section 2; BigTIFF uses wider fields). The rules by
which Pillow 13 skips an entry, or gives up and keeps what it has, decide which
orientation a damaged directory yields, so they are kept here:

- an entry of unknown type, without values or with an offset of 2**63 or more
  is skipped, and a later entry of the same tag may take its place;
- an entry whose values would bring the total beyond the length of the bytes is
  skipped; one whose values lie outside ends the reading;
- a directory that is cut off keeps the entries before the cut.
"""

import struct
from collections.abc import Set
from dataclasses import dataclass
from fractions import Fraction

from service.codec.reader import Reader
from service.errors import TruncatedImage

MAX_ENTRIES = 65_535  # what a classic count can hold; BigTIFF counts are cut off here too

Number = int | float | Fraction

# type: (bytes of one value, struct code); no code where a value is not a number
_TYPES: dict[int, tuple[int, str]] = {
    1: (1, ""),  # BYTE, which Pillow hands out as bytes
    2: (1, ""),  # ASCII
    3: (2, "H"),
    4: (4, "L"),
    5: (8, "L"),  # RATIONAL, two numbers each
    6: (1, "b"),
    7: (1, ""),  # UNDEFINED
    8: (2, "h"),
    9: (4, "l"),
    10: (8, "l"),  # SRATIONAL
    11: (4, "f"),
    12: (8, "d"),
    13: (4, "L"),  # IFD
    16: (8, "Q"),  # LONG8
}
_RATIONALS = (5, 10)
_FLOATS = (11, 12)


@dataclass(frozen=True, slots=True)
class Entry:
    """One tag's values: their type, their bytes and struct's sign of their order."""

    kind: int
    raw: memoryview
    order: str

    @property
    def count(self) -> int:
        return len(self.raw) // _TYPES[self.kind][0]

    @property
    def numbers(self) -> int:
        """How many numbers a reader of all values makes of them; 0 for text and bytes."""
        return self.count if _TYPES[self.kind][1] else 0

    @property
    def rationals(self) -> int:
        """How many of its numbers are rationals."""
        return self.count if self.kind in _RATIONALS else 0

    def first(self) -> Number | None:
        """The first value as a number; None for text, raw bytes or x/0."""
        size, code = _TYPES[self.kind]
        if not code:
            return None
        if self.kind in _RATIONALS:
            over, under = struct.unpack(self.order + code * 2, self.raw[:size])
            return Fraction(over, under) if under else None
        value: Number = struct.unpack(self.order + code, self.raw[:size])[0]
        return value

    def integers(self) -> tuple[int, ...] | None:
        """All values; None where their type is not one of integers."""
        size, code = _TYPES[self.kind]
        if not code or self.kind in _RATIONALS or self.kind in _FLOATS:
            return None
        return struct.unpack(f"{self.order}{len(self.raw) // size}{code}", self.raw)

    def octets(self) -> bytes | None:
        """The bytes of a BYTE or UNDEFINED entry; None for other types."""
        return bytes(self.raw) if self.kind in (1, 7) else None


@dataclass(frozen=True, slots=True)
class Directory:
    """The wanted entries of a directory and the offset of the next one.

    `count` is what the directory announces. `next` is None where the bytes end
    before it; `whole` says that every entry and its values were at hand.
    """

    count: int
    entries: dict[int, Entry]
    next: int | None
    whole: bool


@dataclass(frozen=True, slots=True)
class Layout:
    """Field widths of a directory: classic TIFF or BigTIFF."""

    count_bytes: int
    entry: str
    inline_bytes: int


CLASSIC = Layout(2, "HHL4s", 4)
BIG = Layout(8, "HHQ8s", 8)


def read_directory(reader: Reader, offset: int, layout: Layout, wanted: Set[int]) -> Directory:
    """The entries of `wanted` tags of the directory at `offset`; never raises.

    At most `MAX_ENTRIES` entries are looked at, each once.
    """
    order = "<" if reader.order == "little" else ">"
    entry = struct.Struct(order + layout.entry)
    try:
        count = int.from_bytes(reader.view(offset, layout.count_bytes), reader.order)
    except TruncatedImage:
        return Directory(0, {}, None, whole=False)
    start = offset + layout.count_bytes
    present = min(count, MAX_ENTRIES, (len(reader) - start) // entry.size)
    rows = entry.iter_unpack(reader.view(start, present * entry.size))

    seen: set[int] = set()
    found: dict[int, Entry] = {}
    total_bytes = 0
    skipped = False
    for tag, kind, number, inline in rows:
        if tag in seen or kind not in _TYPES or number == 0:
            continue
        size = number * _TYPES[kind][0]
        if size <= layout.inline_bytes:
            values = memoryview(inline)[:size]
        else:
            at = int.from_bytes(inline, reader.order)
            if at >= 2**63:
                continue
            total_bytes += size
            if total_bytes > len(reader):
                skipped = True
                continue
            if at + size > len(reader):
                return Directory(count, found, None, whole=False)
            values = reader.view(at, size)
        seen.add(tag)
        if tag in wanted:
            found[tag] = Entry(kind, values, order)

    end = start + count * entry.size
    if present < count or end + layout.inline_bytes > len(reader):
        return Directory(count, found, None, whole=False)
    following = int.from_bytes(reader.view(end, layout.inline_bytes), reader.order)
    return Directory(count, found, following, whole=not skipped)
