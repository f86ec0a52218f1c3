"""TIFF headers: classic and BigTIFF, either byte order.

In: a TIFF's bytes. Out: `Facts` of the first picture, from its directory, which
may lie anywhere in the file. Samples without an 8-bit meaning are refused here
(415). So are directories whose strips or tiles would cost more than the
picture they make.
"""

from service.codec.directory import (
    BIG,
    CLASSIC,
    MAX_ENTRIES,
    Directory,
    Layout,
    read_directory,
)
from service.codec.exif import ORIENTATION, entry_orientation, xmp_orientation
from service.codec.facts import Fact, Facts, checked_metadata, checked_size
from service.codec.reader import ByteOrder, Reader
from service.codec.tiff_jpeg import most_scans
from service.codec.tiff_tags import Tags
from service.errors import (
    CorruptImage,
    UnsupportedFormat,
    UnsupportedSampleFormat,
)
from service.types import Colour, Format, Size

# Tags of TIFF 6.0 section 8 and their supplements
_WIDTH, _HEIGHT, _BITS, _COMPRESSION, _PHOTOMETRIC = 256, 257, 258, 259, 262
_STRIP_OFFSETS, _SAMPLES, _ROWS_PER_STRIP, _STRIP_COUNTS, _PLANAR = 273, 277, 278, 279, 284
_TILE_WIDTH, _TILE_HEIGHT, _TILE_OFFSETS, _TILE_COUNTS = 322, 323, 324, 325
_EXTRA_SAMPLES, _SAMPLE_FORMAT, _XMP = 338, 339, 700
_WANTED = frozenset(
    {
        *(_WIDTH, _HEIGHT, _BITS, _COMPRESSION, _PHOTOMETRIC),
        *(_STRIP_OFFSETS, _SAMPLES, _ROWS_PER_STRIP, _STRIP_COUNTS, _PLANAR, ORIENTATION),
        *(_TILE_WIDTH, _TILE_HEIGHT, _TILE_OFFSETS, _TILE_COUNTS),
        *(_EXTRA_SAMPLES, _SAMPLE_FORMAT, _XMP),
    }
)

# Tags that Pillow also turns into Python numbers, all of their values, while opening
_FILL_ORDER, _RESOLUTIONS, _COLOUR_MAP, _SUBSAMPLING, _ICC = 266, (282, 283, 296), 320, 530, 34675
_READ_BY_PILLOW = _WANTED | {_FILL_ORDER, *_RESOLUTIONS, _COLOUR_MAP, _SUBSAMPLING, _ICC}
MAX_NUMBERS = 1 << 18
"""Numbers in one such tag: the strips or tiles of a large picture."""

MAX_RATIONALS = 64
"""Of which rationals: resolutions have one. They take Pillow 1.5 us and 200 bytes each."""

_UNCOMPRESSED, _OLD_JPEG, _JPEG = 1, 6, 7
_COMPRESSIONS = (
    *(1, 2, 3, 4, 5, 6, 7, 8, 32771, 32773, 32809, 32946),
    *(34676, 34677, 34925, 50000, 50001),
)
_SEPARATE = 2  # planar configuration: one plane a channel
_SIGNED, _UNSIGNED = 2, 1

# photometric interpretation: colour, channels, depths with an 8-bit meaning
_PHOTOMETRICS: dict[int, tuple[Colour, int, tuple[int, ...]]] = {
    0: (Colour.GREY, 1, (1, 2, 4, 8, 12, 16)),
    1: (Colour.GREY, 1, (1, 2, 4, 8, 12, 16)),
    2: (Colour.RGB, 3, (8, 16)),
    3: (Colour.PALETTE, 1, (1, 2, 4, 8)),
    5: (Colour.CMYK, 4, (8, 16)),
    6: (Colour.YCBCR, 3, (8,)),
    8: (Colour.RGB, 3, (8,)),  # CIE L*a*b*, which no name of `Colour` fits
}
_MAX_SAMPLES = 6  # channels and extra ones; Pillow reads no more


def parse(reader: Reader) -> Facts:
    """The facts of a TIFF; raises `TruncatedImage`, `CorruptImage` and `Unsupported` faults."""
    order: ByteOrder = "little" if reader.starts(0, b"II") else "big"
    reader = Reader(reader.data, order, reader.on_size)
    layout, offset = _first_directory(reader)
    directory = read_directory(reader, offset, layout, _READ_BY_PILLOW)
    if directory.count > MAX_ENTRIES:  # only BigTIFF can; Pillow takes 2 us for each
        raise CorruptImage(f"the directory lists more than {MAX_ENTRIES} tags")
    checked_metadata(sum(len(entry.raw) for entry in directory.entries.values()))
    for tag, entry in directory.entries.items():
        if entry.numbers > MAX_NUMBERS:
            raise CorruptImage(f"tag {tag} has more than {MAX_NUMBERS} values")
        if entry.rationals > MAX_RATIONALS:
            raise CorruptImage(f"tag {tag} has more than {MAX_RATIONALS} rationals")
    tags = Tags(directory)
    size = checked_size(tags.required(_HEIGHT), tags.required(_WIDTH))
    reader.on_size(size)
    bits, colour, alpha = _samples(tags)
    return Facts(
        Format.TIFF,
        size,
        bits,
        colour,
        scans=_scans(reader, tags),
        decoded=(_cell(tags, size),),
        orientation=_orientation(tags),
        alpha=alpha,
        more_frames=directory.next not in (None, 0, offset),
        undecided=_undecided(tags, directory),
    )


def _undecided(tags: Tags, directory: Directory) -> set[Fact]:
    if not directory.whole:
        return {Fact.LAYOUT}
    return {Fact.SCANS} if _is_jpeg(tags) else set()  # strips may stand behind the directory


def _is_jpeg(tags: Tags) -> bool:
    return tags.integer(_COMPRESSION, _UNCOMPRESSED) in (_OLD_JPEG, _JPEG)


def _first_directory(reader: Reader) -> tuple[Layout, int]:
    if reader.u8(2) == 43:  # BigTIFF; its big-endian form is refused before (`magic.py`)
        return BIG, reader.u64(8)
    return CLASSIC, reader.u32(4)


def _samples(tags: Tags) -> tuple[int, Colour, bool]:
    """Bits a sample, colour, and whether there is an alpha channel."""
    compression = tags.integer(_COMPRESSION, _UNCOMPRESSED)
    if compression not in _COMPRESSIONS:
        raise UnsupportedFormat(f"a TIFF of compression {compression}")
    photometric = 6 if compression == _OLD_JPEG else tags.integer(_PHOTOMETRIC, 0)
    if photometric not in _PHOTOMETRICS:
        raise UnsupportedSampleFormat(f"a TIFF of photometric interpretation {photometric}")
    colour, channels, depths = _PHOTOMETRICS[photometric]
    formats = set(tags.integers(_SAMPLE_FORMAT, (_UNSIGNED,)))
    samples = tags.integer(_SAMPLES, channels if compression == _OLD_JPEG else 1)
    bits = set(tags.integers(_BITS, (1,))[: max(samples, 1)])  # Pillow too ignores the excess
    depth = max(bits)
    if len(bits) > 1 or depth not in depths or formats - {_UNSIGNED, _SIGNED}:
        raise UnsupportedSampleFormat(f"a TIFF of {depth}-bit samples of a kind not read here")
    if _SIGNED in formats and depth > 8:
        raise UnsupportedSampleFormat(f"a TIFF of {depth}-bit signed samples")
    if samples > _MAX_SAMPLES:
        raise UnsupportedSampleFormat(f"a TIFF of {samples} samples a pixel")
    extra = tags.integers(_EXTRA_SAMPLES, ())
    if extra:
        return depth, colour, extra[0] != 0
    return depth, colour, colour is Colour.RGB and samples == 4  # Pillow: the fourth is alpha


def _scans(reader: Reader, tags: Tags) -> int:
    if not _is_jpeg(tags):
        return 1
    if tags.entry(_TILE_OFFSETS):
        return most_scans(reader, tags.entry(_TILE_OFFSETS), tags.entry(_TILE_COUNTS))
    return most_scans(reader, tags.entry(_STRIP_OFFSETS), tags.entry(_STRIP_COUNTS))


def _orientation(tags: Tags) -> int:
    entry = tags.entry(ORIENTATION)
    if entry is not None:
        return entry_orientation(entry)
    packet = tags.entry(_XMP)
    return xmp_orientation(packet.octets()) if packet else 1


def _cell(tags: Tags, size: Size) -> Size:
    """A strip or tile, which decoding allocates beside the picture."""
    if tags.entry(_TILE_WIDTH) is None or tags.entry(_TILE_HEIGHT) is None:
        cell = Size(min(tags.integer(_ROWS_PER_STRIP, size.height), size.height), size.width)
    else:
        cell = Size(tags.integer(_TILE_HEIGHT, 0), tags.integer(_TILE_WIDTH, 0))
    if cell.height <= 0 or cell.width <= 0:
        raise CorruptImage("the strips or tiles have a height or width of zero")
    _check_cells(tags, size, cell)
    return cell


def _check_cells(tags: Tags, size: Size, cell: Size) -> None:
    """Refuse more strips or tiles than the picture has.

    Pillow decodes every uncompressed one that is listed, over and over the same
    rows, so 256 KiB of offsets could cost 65,536 times the picture.
    """
    entry = tags.entry(_STRIP_OFFSETS) or tags.entry(_TILE_OFFSETS)
    if entry is None or tags.integer(_COMPRESSION, _UNCOMPRESSED) != _UNCOMPRESSED:
        return
    across = -(-size.width // cell.width)
    down = -(-size.height // cell.height)
    planes = _MAX_SAMPLES if tags.integer(_PLANAR, 1) == _SEPARATE else 1
    if entry.count > across * down * planes and across * down > 1:
        raise CorruptImage("the directory lists more strips or tiles than the picture has")
