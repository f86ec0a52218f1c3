"""AVIF headers: still pictures and sequences (`avis`).

In: an AVIF's bytes. Out: `Facts`. The `meta` box describes still pictures, the
`moov` box sequences (HEIF, ISO/IEC 23008-12; MIAF). libavif shows a sequence's
first frame when the major brand says so. The upright picture is the work of the
`irot` and `imir` properties; EXIF's orientation is not asked, XMP's only where
Pillow asks it.
"""

from dataclasses import replace

from service.codec import avif_items, avif_tracks
from service.codec.boxes import Box, boxes, check_at_hand
from service.codec.facts import Fact, Facts
from service.codec.reader import Reader
from service.errors import TruncatedImage


def parse(reader: Reader) -> Facts:
    """The facts of an AVIF; raises `TruncatedImage` and `CorruptImage`."""
    sequence = reader.starts(8, b"avis")
    meta: Box | None = None
    try:
        for box in boxes(reader, 0, 1 << 63):
            if box.kind == b"moov" and sequence:
                check_at_hand(reader, box)
                return avif_tracks.parse(reader, box)
            if box.kind == b"meta" and meta is None:
                check_at_hand(reader, box)
                meta = box
                if not sequence:
                    break
            if box.end == len(reader):
                break
    except TruncatedImage:
        if meta is None:
            raise
    if meta is None:
        raise TruncatedImage("the file ends before its meta box")
    facts = avif_items.parse(reader, meta)
    if sequence:  # a track may follow, which would be shown instead
        return replace(facts, undecided={Fact.LAYOUT})
    return facts
