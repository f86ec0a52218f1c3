"""JPEG headers, multi-picture (MPO) files among them.

In: a JPEG's bytes. Out: `Facts`. Segments are walked up to the first scan;
what follows is counted by `jpeg_scans`. Of the segments, those count that
Pillow and libjpeg go by (T.81 annex B).
"""

import re
from dataclasses import dataclass, field

from service.codec.directory import CLASSIC, read_directory
from service.codec.exif import orientation
from service.codec.facts import Fact, Facts, checked_size
from service.codec.jpeg_scans import EOI, NO_SCAN_YET, SOI, SOS, Scans, count_scans
from service.codec.reader import ByteOrder, Reader
from service.errors import (
    CorruptImage,
    TruncatedImage,
    UnsupportedFormat,
    UnsupportedSampleFormat,
)
from service.types import Colour, Format, Size

MAX_SEGMENTS = 1024
"""Segments before the first scan. Pillow spends Python time and memory on each."""

MAX_JUNK_BYTES = 8_192
"""Bytes between segments. Pillow reads them one at a time: 20 MB take seconds."""

MAX_TABLE_BYTES = 65_536
"""Bytes of quantisation tables, which Pillow unpacks into Python lists."""

MAX_EXIF_BYTES = 1 << 20
"""Bytes of EXIF, of which Pillow may read every number while opening, 1.5 us each."""

_DQT, _DHP, _TEM = 0xDB, 0xDE, 0x01
_APP0, _APP1, _APP2, _APP14 = 0xE0, 0xE1, 0xE2, 0xEE
_FRAMES = {*range(0xC0, 0xD0)} - {0xC4, 0xC8, 0xCC}  # SOFn; the three are DHT, JPG, DAC
_NOT_DECODED = (0xC5, 0xC6, 0xC7, 0xCB, 0xCD, 0xCE, 0xCF)  # hierarchical, arithmetic lossless

_ANY_FF = re.compile(rb"\xff")


@dataclass(slots=True)
class _Seen:
    """What the segments before the first scan said; the later of two wins, as in Pillow."""

    frame: int = 0
    size: Size | None = None
    components: bytes = b""
    jfif: bool = False
    adobe_transform: int | None = None
    exif: list[bytes] = field(default_factory=list)
    exif_bytes: int = 0
    xmp: bytes | None = None
    mpf: bytes | None = None
    ultra_hdr: bool = False
    table_bytes: int = 0


def parse(reader: Reader) -> Facts:
    """The facts of a JPEG.

    Raises `TruncatedImage` where the bytes end before the size, `CorruptImage`
    and `Unsupported` faults for what no decoder here reads.
    """
    seen = _Seen()
    try:
        scan_at = _walk_to_first_scan(reader, seen)
    except TruncatedImage:
        if seen.size is None:
            raise
        return _facts(seen, NO_SCAN_YET)
    if seen.size is None:
        raise CorruptImage("the first scan comes before the frame header")
    return _facts(seen, count_scans(reader, scan_at, seen.frame, len(seen.components)))


def _facts(seen: _Seen, scans: Scans) -> Facts:
    assert seen.size is not None
    exif = seen.exif[0] + b"".join(block[6:] for block in seen.exif[1:]) if seen.exif else None
    undecided = set() if scans.final else {Fact.SCANS}
    if scans is NO_SCAN_YET:
        undecided |= {Fact.ORIENTATION, Fact.MORE_FRAMES}
    return Facts(
        format=Format.JPEG,
        stored=seen.size,
        bits=8,
        colour=_colour(seen),
        orientation=orientation(exif, seen.xmp),
        more_frames=_more_frames(seen),
        scans=scans.count,
        undecided=undecided,
    )


def _walk_to_first_scan(reader: Reader, seen: _Seen) -> int:
    """Fill `seen` from the segments; the offset of the first SOS segment's length field."""
    at = 2
    junk_bytes = 0
    for _ in range(MAX_SEGMENTS):
        code, start = _next_marker(reader, at, MAX_JUNK_BYTES - junk_bytes)
        junk_bytes += start - at - 2
        at = start
        if code == SOS:
            return at
        if code == EOI:
            raise CorruptImage("the end marker comes before the first scan")
        if code == SOI or 0xD0 <= code <= 0xD7:
            continue
        if code == _TEM or code in range(0x02, 0xC0) or code in range(0xF0, 0xFE):
            raise CorruptImage("a marker between the segments has no meaning")
        length = max(reader.u16(at), 2)  # a shorter one is taken for empty, as libjpeg does
        _read_segment(code, reader.take(at + 2, length - 2), seen)
        if code in _FRAMES and seen.size:
            reader.on_size(seen.size)
        at += length
    raise CorruptImage(f"more than {MAX_SEGMENTS} segments come before the first scan")


def _next_marker(reader: Reader, at: int, junk_allowed: int) -> tuple[int, int]:
    """The next marker's code and the offset behind it, over fill bytes and junk."""
    end = at + junk_allowed + 2
    while found := _ANY_FF.search(reader.data, at, end):
        at = found.end()
        code = reader.u8(at)
        if code not in (0x00, 0xFF):
            return code, at + 1
    if end <= len(reader):
        raise CorruptImage("there is too much data between the segments")
    raise TruncatedImage("the file ends before its first scan")


def _read_segment(code: int, body: bytes, seen: _Seen) -> None:
    if code in _FRAMES:
        _read_frame(code, body, seen)
    elif code == _DHP:
        raise UnsupportedFormat("the bytes look like a hierarchical JPEG")
    elif code == _DQT:
        seen.table_bytes += len(body)
        if seen.table_bytes > MAX_TABLE_BYTES:
            raise CorruptImage("the quantisation tables are too many")
    elif code == _APP0:
        seen.jfif |= len(body) >= 14 and body.startswith(b"JFIF\0")
    elif code == _APP1:
        _read_metadata(body, seen)
    elif code == _APP2 and body.startswith(b"MPF\0"):
        seen.mpf = body[4:]
    elif code == _APP14 and len(body) >= 12 and body.startswith(b"Adobe"):
        seen.adobe_transform = body[11]


def _read_metadata(body: bytes, seen: _Seen) -> None:
    seen.ultra_hdr |= b' hdrgm:Version="' in body
    if body.startswith(b"Exif\0\0"):
        seen.exif.append(body)
        seen.exif_bytes += len(body)
        if seen.exif_bytes > MAX_EXIF_BYTES:
            raise CorruptImage(f"there are more than {MAX_EXIF_BYTES} bytes of EXIF")
    elif body.startswith(b"http://ns.adobe.com/xap/1.0/\0"):
        seen.xmp = body.split(b"\0", 1)[1]


def _read_frame(code: int, body: bytes, seen: _Seen) -> None:
    """Size, sample depth and components (T.81 B.2.2)."""
    if seen.size is not None:
        raise CorruptImage("there are two frame headers")
    if code in _NOT_DECODED:
        raise UnsupportedFormat("the bytes look like a hierarchical or arithmetic lossless JPEG")
    if len(body) < 6:
        raise CorruptImage("the frame header is too short")
    components = body[5]
    if body[0] != 8:
        raise UnsupportedSampleFormat(f"a JPEG of {body[0]} bits a sample")
    if components not in (1, 3, 4):
        raise UnsupportedSampleFormat(f"a JPEG of {components} components")
    if len(body) != 6 + 3 * components:
        raise CorruptImage("the frame header has the wrong length")
    seen.frame = code
    seen.components = body[6::3]
    seen.size = checked_size(
        int.from_bytes(body[1:3], "big"),
        int.from_bytes(body[3:5], "big"),
    )


def _colour(seen: _Seen) -> Colour:
    """The colour space as libjpeg guesses it (`default_decompress_parms`)."""
    if len(seen.components) == 1:
        return Colour.GREY
    if len(seen.components) == 4:
        return Colour.CMYK if seen.adobe_transform in (None, 0) else Colour.YCCK
    if seen.jfif:
        return Colour.YCBCR
    if seen.adobe_transform is not None:
        return Colour.RGB if seen.adobe_transform == 0 else Colour.YCBCR
    return Colour.RGB if seen.components == b"RGB" else Colour.YCBCR


def _more_frames(seen: _Seen) -> bool:
    """Whether Pillow takes the file for a multi-picture one (CIPA DC-007).

    Ultra HDR files keep a gain map as a second picture; Pillow takes them for
    plain JPEG, and so for one frame.
    """
    if seen.mpf is None or seen.ultra_hdr or len(seen.mpf) < 8:
        return False
    order: ByteOrder = "big" if seen.mpf.startswith(b"MM\x00\x2a") else "little"
    reader = Reader(seen.mpf, order)
    entries = read_directory(reader, reader.u32(4), CLASSIC, {0xB001, 0xB002}).entries
    number = entries[0xB001].first() if 0xB001 in entries else None
    rows = entries[0xB002].octets() if 0xB002 in entries else None
    if not isinstance(number, int) or number < 2 or rows is None or len(rows) < 16 * number:
        return False
    attributes = (int.from_bytes(rows[row * 16 : row * 16 + 4], order) for row in range(number))
    return all((attribute >> 24) & 7 == 0 for attribute in attributes)  # 0: a JPEG
