"""How many scans the JPEG strips or tiles of a TIFF hold.

In: the bytes, and where the strips lie. Out: the most that one of them has.
libtiff decodes each strip as a JPEG of its own and allows a hundred scans in
each, which is a hundred times the work of the picture.
"""

import re
from itertools import islice

from service.codec.directory import Entry
from service.codec.reader import Reader
from service.errors import CorruptImage

MAX_STRIPS = 16_384
"""Strips or tiles that are looked into; at 256x256 pixels each they make a gigapixel."""

MAX_SCANS_COUNTED = 65_536

_SCAN = re.compile(rb"\xff\xda")  # a start of scan; no entropy-coded data holds these bytes


def most_scans(reader: Reader, offsets: Entry | None, counts: Entry | None) -> int:
    """The scans of the strip with the most; of the whole file where strips are not told apart.

    Raises `CorruptImage` for strips that overlap, which would be searched again
    and again, and for more than `MAX_STRIPS`.
    """
    if any(entry is not None and entry.count > MAX_STRIPS for entry in (offsets, counts)):
        raise CorruptImage(f"the directory lists more than {MAX_STRIPS} strips or tiles")
    starts = offsets.integers() if offsets else None
    lengths = counts.integers() if counts else None
    if starts is None or lengths is None or len(starts) != len(lengths):
        return _scans(reader, 0, len(reader))
    if sum(lengths) > len(reader):
        raise CorruptImage("the strips or tiles have more bytes than the file")
    strips = zip(starts, lengths, strict=True)
    return max((_scans(reader, start, start + length) for start, length in strips), default=1)


def _scans(reader: Reader, start: int, end: int) -> int:
    if start >= len(reader):
        return 1
    found = _SCAN.finditer(reader.data, start, min(end, len(reader)))
    return max(1, sum(1 for _ in islice(found, MAX_SCANS_COUNTED)))
