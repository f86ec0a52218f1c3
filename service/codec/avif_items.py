"""The primary picture of an AVIF's `meta` box.

In: the bytes and the box. Out: `Facts`. Item tables are read entry by entry
inside their boxes, each once (HEIF, ISO/IEC 23008-12 section 9).
"""

from collections import defaultdict
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass

from service.codec.av1 import sequence_size
from service.codec.avif_locations import joined, locate
from service.codec.avif_metadata import read_metadata
from service.codec.avif_properties import Properties, read_properties
from service.codec.boxes import FULL, Box, boxes, child, required
from service.codec.exif import exif_has_orientation, xmp_orientation
from service.codec.facts import Fact, Facts
from service.codec.reader import Reader
from service.errors import CorruptImage, TruncatedImage
from service.types import Colour, Format, Size

MAX_LINKS = 8_192
"""References between items, and links from items to properties: a step each."""

MAX_EXIF_BYTES = 1 << 20
"""Bytes of EXIF, of which Pillow may read every number while opening, 1.5 us each."""

MAX_CELLS = 1024
"""Cells of a grid; at 512x512 pixels each they make 268 megapixels."""


@dataclass(frozen=True, slots=True)
class Reference:
    """One item refers to another: a cell to its grid, alpha or metadata to its picture."""

    kind: bytes
    source: int
    target: int


def parse(reader: Reader, meta: Box) -> Facts:
    """The facts of the primary item; raises `CorruptImage` where a table is missing."""
    primary = _primary(reader, required(reader, meta, FULL, b"pitm"))
    references = list(_references(reader, child(reader, meta, FULL, b"iref")))
    properties = _properties(reader, required(reader, meta, FULL, b"iprp"))
    shown = properties.get(primary)
    if shown is None or shown.size is None:
        raise CorruptImage("the primary picture has no size")
    reader.on_size(shown.size)
    cells_of: dict[int, list[int]] = defaultdict(list)
    for link in references:
        if link.kind == b"dimg":
            cells_of[link.source].append(link.target)
    cells = cells_of.get(primary, [])
    coded = properties.get(cells[0], shown) if cells else shown
    alpha_of = {
        link.target: link.source
        for link in references
        if link.kind == b"auxl" and link.source in properties
        if properties[link.source].alpha_plane
    }
    alpha = [alpha_of[item] for item in (primary, *cells) if item in alpha_of]
    pictures = [
        [cell for item in items for cell in cells_of.get(item, [item])]
        for items in ([primary], alpha)
    ]
    orientation = _orientation(reader, meta, shown, primary, references)
    return Facts(
        Format.AVIF,
        shown.size,
        coded.bits or 8,
        coded.colour or Colour.YCBCR,
        orientation=orientation or 1,
        alpha=primary in alpha_of or (bool(cells) and alpha_of.keys() >= set(cells)),
        decoded=_decoded(reader, meta, pictures),
        undecided={Fact.ORIENTATION} if orientation is None else set(),
    )


def _decoded(reader: Reader, meta: Box, pictures: list[list[int]]) -> tuple[Size, ...]:
    """The coded frames of the picture, or those of its alpha where they are larger.

    `pictures` are the coded items of the one and of the other, the cells of a
    grid each. Frames that are not at hand count for nothing: decoding then
    fails by itself.
    """
    sizes: list[tuple[Size, ...]] = []
    for coded in pictures:
        if len(coded) > MAX_CELLS:
            raise CorruptImage(f"a picture has more than {MAX_CELLS} cells")
        extents = locate(reader, meta, set(coded))
        with suppress(TruncatedImage):
            frames = (sequence_size(joined(reader, extents[i])) for i in coded if i in extents)
            sizes.append(tuple(size for size in frames if size is not None))
    return max(sizes, key=lambda areas: sum(area.pixels for area in areas), default=())


def _orientation(
    reader: Reader, meta: Box, shown: Properties, primary: int, references: list[Reference]
) -> int | None:
    """The properties' orientation; XMP's where they and EXIF are silent, as in Pillow.

    Pillow writes the properties' orientation over EXIF's, so EXIF only decides
    whether XMP is asked. None where the metadata is not at hand yet.
    """
    described = {
        link.source for link in references if (link.kind, link.target) == (b"cdsc", primary)
    }
    if not described:
        return shown.orientation
    try:
        exif, xmp = read_metadata(reader, meta, described)
    except TruncatedImage:
        return None if shown.orientation == 1 else shown.orientation
    if exif and len(exif) > MAX_EXIF_BYTES:
        raise CorruptImage(f"there are more than {MAX_EXIF_BYTES} bytes of EXIF")
    if shown.orientation != 1:
        return shown.orientation
    return 1 if exif_has_orientation(exif) else xmp_orientation(xmp)


def _primary(reader: Reader, pitm: Box) -> int:
    return _item_id(reader, pitm.start + FULL, reader.u8(pitm.start))[0]


def _item_id(reader: Reader, at: int, version: int) -> tuple[int, int]:
    """An item's number and the offset behind it: two bytes in version 0, else four."""
    return (reader.u32(at), at + 4) if version else (reader.u16(at), at + 2)


def _references(reader: Reader, iref: Box | None) -> Iterator[Reference]:
    if iref is None:
        return
    version = reader.u8(iref.start)
    left = MAX_LINKS
    for box in boxes(reader, iref.start + FULL, iref.end):
        source, at = _item_id(reader, box.start, version)
        count, at = reader.u16(at), at + 2
        left -= count
        if left < 0:
            raise CorruptImage(f"there are more than {MAX_LINKS} references")
        for _ in range(count):
            target, at = _item_id(reader, at, version)
            yield Reference(box.kind, source, target)
        if at > box.end:
            raise CorruptImage("a reference box is shorter than its references")


def _properties(reader: Reader, iprp: Box) -> dict[int, Properties]:
    """Each item's properties: the boxes of `ipco`, linked by number in `ipma`."""
    container = required(reader, iprp, 0, b"ipco")
    all_boxes = list(boxes(reader, container.start, container.end))
    linked: dict[int, list[Box]] = defaultdict(list)
    left = MAX_LINKS
    for table in boxes(reader, iprp.start, iprp.end):
        if table.kind == b"ipma":
            left = _read_links(reader, table, all_boxes, linked, left)
    return {item: read_properties(reader, found) for item, found in linked.items()}


def _read_links(
    reader: Reader, ipma: Box, all_boxes: list[Box], linked: dict[int, list[Box]], left: int
) -> int:
    """Add one table's links to `linked`; returns how many more are allowed."""
    version, wide = reader.u8(ipma.start), reader.u8(ipma.start + 3) & 1
    count, at = reader.u32(ipma.start + FULL), ipma.start + FULL + 4
    for _ in range(count):
        item, at = _item_id(reader, at, version)
        links, at = reader.u8(at), at + 1
        left -= links + 1
        if at > ipma.end or left < 0:
            raise CorruptImage("the table of properties is damaged")
        for _ in range(links):
            number = reader.u16(at) & 0x7FFF if wide else reader.u8(at) & 0x7F
            at += 2 if wide else 1
            if number > len(all_boxes):
                raise CorruptImage("an item has a property that is not there")
            if number:  # 0 stands for none
                linked[item].append(all_boxes[number - 1])
    return left
