"""BMP headers: OS/2 and Windows, versions 1 to 5.

In: a BMP's bytes. Out: `Facts`. Only the two headers are read. Depths,
compressions and header versions that Pillow does not open are refused by name.
"""

from service.codec.facts import Facts, checked_size
from service.codec.reader import Reader
from service.errors import CorruptImage, TooManyPixels, UnsupportedFormat
from service.types import Colour, Format, Size

MAX_RLE_PIXELS = 1 << 22
"""Pixels of a run-length coded BMP. Pillow decodes them in Python, up to 0.1 us each
whatever the file's length: 4 KB held the interpreter for 4 s at 60 megapixels."""

RLE_BYTES_A_PIXEL, RLE_BYTES_A_ROW, RLE_SPARE_BYTES = 2, 4, 1 << 16
"""Data of a run-length coded BMP: two bytes code a pixel at worst, and two end a row. Pillow takes
0.15 us for any two bytes, also for those that code nothing, in Python: 64 MB would take 5 s."""

_OS2_HEADER_BYTES = 12
_HEADER_BYTES = (40, 52, 56, 64, 108, 124)
_RAW, _RLE8, _RLE4, _BITFIELDS = range(4)
_DEPTHS: dict[int, Colour] = {
    1: Colour.PALETTE,
    4: Colour.PALETTE,
    8: Colour.PALETTE,
    16: Colour.RGB,
    24: Colour.RGB,
    32: Colour.RGB,
}
_SAMPLE_BITS = {16: 5, 24: 8, 32: 8}  # 5 of each channel, 6 of green in one variant

# (red, green, blue, alpha) masks of 32-bit pixels in which Pillow sees an alpha channel
_ALPHA_MASKS = (
    (0xFF000000, 0xFF0000, 0xFF00, 0xFF),
    (0xFF, 0xFF00, 0xFF0000, 0xFF000000),
    (0xFF0000, 0xFF00, 0xFF, 0xFF000000),
    (0xFF000000, 0xFF00, 0xFF, 0xFF0000),
    (0, 0, 0, 0),
)


def parse(reader: Reader) -> Facts:
    """The facts of a BMP; raises `TruncatedImage`, `CorruptImage`, `UnsupportedFormat`."""
    header_bytes = reader.u32(14)
    if header_bytes == _OS2_HEADER_BYTES:
        size = checked_size(reader.u16(20), reader.u16(18))
        bits, compression = reader.u16(24), _RAW
    elif header_bytes in _HEADER_BYTES:
        size = checked_size(_height(reader), reader.u32(18))
        bits, compression = reader.u16(28), reader.u32(30)
    else:
        raise UnsupportedFormat(f"a BMP with a header of {header_bytes} bytes")
    if bits not in _DEPTHS:
        raise UnsupportedFormat(f"a BMP of {bits} bits a pixel")
    if compression not in (_RAW, _RLE8, _RLE4, _BITFIELDS):
        raise UnsupportedFormat(f"a BMP of compression {compression}")
    if compression in (_RLE8, _RLE4) and size.pixels > MAX_RLE_PIXELS:
        raise TooManyPixels(
            f"a run-length coded BMP has {size.pixels} pixels, more than {MAX_RLE_PIXELS}",
            limit=MAX_RLE_PIXELS,
            actual=size.pixels,
        )
    if compression in (_RLE8, _RLE4):
        _check_runs(reader, size)
    return Facts(
        Format.BMP,
        size,
        _SAMPLE_BITS.get(bits, bits),
        _DEPTHS[bits],
        alpha=bits == 32 and compression == _BITFIELDS and _masks(reader) in _ALPHA_MASKS,
    )


def _check_runs(reader: Reader, size: Size) -> None:
    most = RLE_BYTES_A_PIXEL * size.pixels + RLE_BYTES_A_ROW * size.height + RLE_SPARE_BYTES
    if len(reader) - reader.u32(10) > most:
        raise CorruptImage(f"there is more run-length coded data than {size.pixels} pixels take")


def _height(reader: Reader) -> int:
    """The height; negative ones (top row first) are told by their highest byte, as in Pillow."""
    height = reader.u32(22)
    return 2**32 - height if height >= 0xFF000000 else height


def _masks(reader: Reader) -> tuple[int, int, int, int]:
    """The channel masks behind the 40 bytes that all headers share.

    Versions 1 and 2 of the header have no alpha mask, so no alpha.
    """
    red, green, blue = (reader.u32(at) for at in (54, 58, 62))
    alpha = reader.u32(66) if reader.u32(14) >= 56 else 0
    return red, green, blue, alpha
