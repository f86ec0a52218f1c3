"""The orientation that metadata asks for, as Pillow's `exif_transpose` sees it.

In: the EXIF block and the XMP packet of a picture, wherever its container
keeps them. Out: 1..8. EXIF wins; XMP's `tiff:Orientation` is asked only when a
readable EXIF block has no such tag or there is none. Every other value, and a
block that cannot be read, means 1: metadata never makes a picture fail.
"""

import re

from service.codec.directory import CLASSIC, Entry, read_directory
from service.codec.reader import ByteOrder, Reader

ORIENTATION = 274  # tag of TIFF 6.0 and EXIF 2.3

# Pillow takes the two headers with swapped magic bytes as well
_BYTE_ORDERS: dict[bytes, ByteOrder] = {
    b"II\x2a\x00": "little",
    b"II\x00\x2a": "little",
    b"MM\x00\x2a": "big",
    b"MM\x2a\x00": "big",
}
_PREFIX = re.compile(rb"(?:Exif\x00\x00){1,2}")
_XMP = re.compile(rb"tiff:Orientation(?:=\"|>)([0-9])")


def orientation(exif: bytes | None, xmp: bytes | None) -> int:
    """The orientation 1..8 of a picture with these two blocks."""
    block = _block(exif)
    if not block:
        return xmp_orientation(xmp)
    if not _readable(block):
        return 1
    entry = _entry(block)
    return entry_orientation(entry) if entry else xmp_orientation(xmp)


def exif_has_orientation(exif: bytes | None) -> bool:
    """Whether an EXIF block keeps XMP from being asked."""
    block = _block(exif)
    return bool(block) and (not _readable(block) or _entry(block) is not None)


def entry_orientation(entry: Entry) -> int:
    """The orientation 1..8 in a directory's entry.

    Any numeric type counts by its first value, as in Pillow: a rational 6/1 is
    a 6, a BYTE is not a number.
    """
    value = entry.first()
    return int(value) if value is not None and value in range(1, 9) else 1


def xmp_orientation(xmp: bytes | None) -> int:
    """The orientation 1..8 in an XMP packet."""
    found = _XMP.search(xmp) if xmp else None
    value = int(found[1]) if found else 1
    return value if value in range(1, 9) else 1


def _block(exif: bytes | None) -> bytes:
    """The block without the name that some containers put before it, also twice."""
    if not exif:
        return b""
    prefix = _PREFIX.match(exif)
    return exif[prefix.end() :] if prefix else exif


def _readable(block: bytes) -> bool:
    return len(block) >= 8 and block[:4] in _BYTE_ORDERS


def _entry(block: bytes) -> Entry | None:
    reader = Reader(block, _BYTE_ORDERS[block[:4]])
    directory = read_directory(reader, reader.u32(4), CLASSIC, {ORIENTATION})
    return directory.entries.get(ORIENTATION)
