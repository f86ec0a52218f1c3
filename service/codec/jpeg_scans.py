"""How many scans of a JPEG libjpeg decodes.

In: a JPEG's bytes, the place of its first scan and the frame it belongs to.
Out: a count. Each scan of a progressive picture costs about as much as the
whole of a baseline one, so the count bounds the work. Entropy-coded data is
searched by compiled code, never byte by byte.
"""

import re
from dataclasses import dataclass

from service.codec.reader import Reader
from service.errors import CorruptImage, TruncatedImage

MAX_SCANS_COUNTED = 4_096
"""Scans, and segments between them, are counted up to here: the walk stays short."""

MAX_FILL_BYTES = 65_536
"""Fill bytes in a row. libjpeg reads a run anew with every 64 KiB that Pillow feeds it,
so 20 MB of them took 2 s and 40 MB 9 s."""

FILL_MATTERS_FROM_BYTES = 4 << 20
"""Below this the cost, which is quadratic, is under 0.1 s, and the search would be half of
what a sound picture's header costs."""

SOI, EOI, SOS = 0xD8, 0xD9, 0xDA
_PROGRESSIVE = (0xC2, 0xCA)
_FIRST_WITH_LENGTH = 0xC0  # codes below have no meaning, and no length

_PIECE_BYTES = 1 << 20
_FILL = b"\xff" * MAX_FILL_BYTES
_END = b"\xff\xd9"
_MARKER = re.compile(rb"\xff[\x01-\xcf\xd8-\xfe]")  # no stuffing, no RSTn, no fill byte


@dataclass(frozen=True, slots=True)
class Scans:
    """A count; `final` says that later bytes cannot raise it."""

    count: int
    final: bool


NO_SCAN_YET = Scans(1, final=False)


def count_scans(reader: Reader, first_at: int, frame: int, components: int) -> Scans:
    """The scans from the first, whose length field stands at `first_at`.

    libjpeg buffers several only in a progressive frame, or when the first scan
    lacks a component (`has_multiple_scans`); otherwise it stops after the
    first. Raises `CorruptImage` for what would cost it time out of proportion.
    """
    if len(reader) >= FILL_MATTERS_FROM_BYTES and _has_long_fill(reader, first_at):
        raise CorruptImage(f"there are more than {MAX_FILL_BYTES} fill bytes in a row")
    try:
        in_first_scan = reader.u8(first_at + 2)
    except TruncatedImage:
        return Scans(1, final=False)
    if frame not in _PROGRESSIVE and in_first_scan >= components:
        return Scans(1, final=True)
    return _count(reader, first_at)


def _has_long_fill(reader: Reader, first_at: int) -> bool:
    """Whether fill bytes stand before the end marker; what follows that, nobody reads."""
    at = _find(reader, _FILL, first_at, len(reader))
    return at >= 0 and _find(reader, _END, first_at, at) < 0


def _find(reader: Reader, wanted: bytes, start: int, end: int) -> int:
    """Where `wanted` lies, -1 for nowhere: `bytes.find`, which skips (0.1 ms per MB), in pieces.

    The whole as bytes would be a second copy of the body.
    """
    for at in range(start, end, _PIECE_BYTES):
        piece = bytes(reader.data[at : min(end, at + _PIECE_BYTES + len(wanted) - 1)])
        found = piece.find(wanted)
        if found >= 0:
            return at + found
    return -1


def _count(reader: Reader, first_at: int) -> Scans:
    """All start-of-scan markers up to the end marker; segments are skipped by their length."""
    scans = 1
    at = first_at
    try:
        at += reader.u16(at)
        for _ in range(MAX_SCANS_COUNTED):
            found = _MARKER.search(reader.data, at)
            if found is None:
                return Scans(scans, final=False)
            at = found.end()
            code = reader.u8(at - 1)
            if code == EOI:
                return Scans(scans, final=True)
            if code == SOS:
                scans += 1
            if code >= _FIRST_WITH_LENGTH and code != SOI:
                at += reader.u16(at)
    except TruncatedImage:
        return Scans(scans, final=False)
    if scans < MAX_SCANS_COUNTED // 2:
        raise CorruptImage(f"more than {MAX_SCANS_COUNTED} segments stand between the scans")
    return Scans(scans, final=True)
