"""The first picture track of an AVIF sequence's `moov` box.

In: the bytes and the box. Out: `Facts`. The size is the track's, the number of
frames that of its samples; the samples themselves are not looked at.
"""

from contextlib import suppress
from dataclasses import dataclass

from service.codec.av1 import sequence_size
from service.codec.avif_properties import Properties, read_properties
from service.codec.boxes import FULL, Box, boxes, child
from service.codec.facts import Facts, checked_size
from service.codec.reader import Reader
from service.errors import CorruptImage, TruncatedImage
from service.types import Colour, Format, Size

_SAMPLE_ENTRY_BYTES = 78  # fields of a visual sample entry before its boxes


@dataclass(frozen=True, slots=True)
class _Track:
    """One AV1 track; `describes` is the track that it is an auxiliary of, or 0."""

    number: int
    describes: int
    size: tuple[int, int]
    samples: int
    properties: Properties
    decoded: tuple[Size, ...]


def parse(reader: Reader, moov: Box) -> Facts:
    """The facts of the first track that is no auxiliary of another."""
    tracks = [
        track
        for box in boxes(reader, moov.start, moov.end)
        if box.kind == b"trak" and (track := _track(reader, box))
    ]
    shown = next((track for track in tracks if not track.describes), None)
    if shown is None:
        raise CorruptImage("there is no AV1 track")
    size: Size = checked_size(*shown.size)
    return Facts(
        Format.AVIF,
        size,
        shown.properties.bits or 8,
        shown.properties.colour or Colour.YCBCR,
        orientation=shown.properties.orientation,
        alpha=any(track.describes == shown.number for track in tracks),
        more_frames=shown.samples > 1,
        decoded=max((track.decoded for track in tracks), key=_total_pixels),
    )


def _total_pixels(areas: tuple[Size, ...]) -> int:
    return sum(area.pixels for area in areas)


def _track(reader: Reader, trak: Box) -> _Track | None:
    """A track of AV1 samples; None for other media."""
    header = child(reader, trak, 0, b"tkhd")
    table = _inside(reader, trak, b"mdia", b"minf", b"stbl")
    if header is None or table is None:
        return None
    entry = _sample_entry(reader, table)
    sizes = child(reader, table, 0, b"stsz")
    if entry is None or sizes is None:
        return None
    wide = reader.u8(header.start) == 1
    number = reader.u32(header.start + (20 if wide else 12))
    dimensions_at = header.start + (88 if wide else 76)
    size = (reader.u32(dimensions_at + 4) >> 16, reader.u32(dimensions_at) >> 16)  # 16.16
    auxiliary = _inside(reader, trak, b"tref", b"auxl")
    return _Track(
        number=number,
        describes=reader.u32(auxiliary.start) if auxiliary else 0,
        size=size,
        samples=reader.u32(sizes.start + FULL + 4),
        properties=read_properties(
            reader, boxes(reader, entry.start + _SAMPLE_ENTRY_BYTES, entry.end)
        ),
        decoded=_first_frame(reader, table, sizes),
    )


def _first_frame(reader: Reader, table: Box, sizes: Box) -> tuple[Size, ...]:
    """The size of the track's first coded frame; nothing where it is not at hand."""
    narrow = child(reader, table, 0, b"stco")
    offsets = narrow or child(reader, table, 0, b"co64")
    if offsets is None:
        return ()
    with suppress(TruncatedImage):
        at = offsets.start + FULL + 4
        start = reader.u32(at) if narrow else reader.u64(at)
        count = reader.u32(sizes.start + FULL) or reader.u32(sizes.start + FULL + 8)
        size = sequence_size(reader.view(start, count))
        return () if size is None else (size,)
    return ()


def _inside(reader: Reader, outer: Box, *path: bytes) -> Box | None:
    """The box at the end of a path of boxes that have no fields of their own."""
    box: Box | None = outer
    for kind in path:
        box = child(reader, box, 0, kind) if box else None
    return box


def _sample_entry(reader: Reader, table: Box) -> Box | None:
    """The first AV1 entry of the sample descriptions."""
    descriptions = child(reader, table, 0, b"stsd")
    if descriptions is None:
        return None
    return child(reader, descriptions, FULL + 4, b"av01")
