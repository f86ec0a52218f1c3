"""The EXIF and XMP items of an AVIF's `meta` box.

In: the bytes, the box and the items that describe the primary picture. Out: the
first EXIF block and the first XMP packet among them. Their bytes may lie
anywhere in the file.
"""

from collections.abc import Set
from itertools import islice

from service.codec.avif_locations import joined, locate
from service.codec.boxes import FULL, Box, boxes, child
from service.codec.facts import checked_metadata
from service.codec.reader import Reader

_XMP_TYPE = b"application/rdf+xml\0"


def read_metadata(
    reader: Reader, meta: Box, described: Set[int]
) -> tuple[bytes | None, bytes | None]:
    """EXIF behind its four bytes of offset, and XMP; None where there is none.

    Raises `TruncatedImage` where their bytes are not at hand.
    """
    exif_item, xmp_item = _find_items(reader, child(reader, meta, FULL, b"iinf"), described)
    wanted = {item for item in (exif_item, xmp_item) if item is not None}
    found = locate(reader, meta, wanted)
    exif = bytes(joined(reader, found[exif_item])[4:]) if exif_item in found else None
    if xmp_item in found:
        checked_metadata(sum(extent.count for extent in found[xmp_item]))
    xmp = bytes(joined(reader, found[xmp_item])) if xmp_item in found else None
    return exif, xmp


def _find_items(
    reader: Reader, iinf: Box | None, described: Set[int]
) -> tuple[int | None, int | None]:
    if iinf is None:
        return None, None
    exif_item: int | None = None
    xmp_item: int | None = None
    wide_count = reader.u8(iinf.start) > 0
    at = iinf.start + FULL
    count = reader.u32(at) if wide_count else reader.u16(at)
    entries = boxes(reader, at + (4 if wide_count else 2), iinf.end)
    for box in islice(entries, count):  # libavif reads as many as announced
        version = reader.u8(box.start)
        if box.kind != b"infe" or version < 2:
            continue
        wide = version > 2
        item = reader.u32(box.start + FULL) if wide else reader.u16(box.start + FULL)
        at = box.start + FULL + (4 if wide else 2) + 2  # behind the protection index
        kind = reader.take(at, 4)
        if item not in described:
            continue
        if kind == b"Exif" and exif_item is None:
            exif_item = item
        elif kind == b"mime" and xmp_item is None:
            rest = reader.take(at + 4, max(box.end - at - 4, 0))
            if rest.partition(b"\0")[2].startswith(_XMP_TYPE):
                xmp_item = item
    return exif_item, xmp_item
