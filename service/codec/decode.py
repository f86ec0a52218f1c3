"""A picture's pixels: upright, three channels, 8 bits, no transparency left.

In: the bytes of a file and the `Header` that `sniff` made of them. Out:
`Pixels` equal to what Pillow gives for the first frame, turned by
`ImageOps.exif_transpose` and laid on a background. Pillow's failures become
ours, with its exception as the cause. Nothing process-wide changes here, so any
number of threads may decode at once.
"""

import struct
import zlib
from importlib.metadata import version

import numpy as np
from numpy.typing import NDArray
from PIL import ExifTags, Image, ImageCms

from service.buffers import Buffers
from service.codec import arrow, pillow, turbo
from service.codec.damage import ends_early
from service.errors import CorruptImage, TruncatedImage, UnsupportedSampleFormat
from service.types import Background, Buffer, Colour, Drop, Format, Header, Pixels, SixteenBit, Size

CLIPPED = "clipped_16_bit"
SCALED = "scaled_16_bit"


# All that Pillow's plugins were seen or read to raise on a client's bytes.
# MemoryError is not among them: it says something of us, not of the picture.
_FAULTS = (
    OSError,  # EOF and "broken data stream" alike; UnidentifiedImageError
    SyntaxError,  # the plugins' word for "not mine"
    ValueError,
    TypeError,
    LookupError,  # IndexError and KeyError of short headers and odd modes
    ArithmeticError,  # OverflowError of sizes, ZeroDivisionError of rationals
    AttributeError,
    AssertionError,
    EOFError,
    RuntimeError,  # libavif
    struct.error,
    zlib.error,
    Image.DecompressionBombError,
    ImageCms.PyCMSError,
)

_TRANSPOSE: dict[int, Image.Transpose] = {
    2: Image.Transpose.FLIP_LEFT_RIGHT,
    3: Image.Transpose.ROTATE_180,
    4: Image.Transpose.FLIP_TOP_BOTTOM,
    5: Image.Transpose.TRANSPOSE,
    6: Image.Transpose.ROTATE_270,
    7: Image.Transpose.TRANSVERSE,
    8: Image.Transpose.ROTATE_90,
}
_SUB_DIRECTORIES = (ExifTags.IFD.Exif, ExifTags.IFD.GPSInfo, ExifTags.IFD.Interop)
_WIDE_GREY = ("I;16", "I;16L", "I;16B", "I;16N")
_NO_8_BIT_MEANING = ("I", "F")


def decode(
    data: Buffer,
    header: Header,
    background: Background,
    sixteen_bit: SixteenBit,
    buffers: Buffers,
) -> Pixels:
    """The upright pixels: (H, W, 4) RGBX, or 3 channels, uint8, C order, of `header.size`.

    Transparency is laid on `background`, or dropped. 16-bit grey is clipped at
    255 as Pillow does, or scaled, and `notes` say which. Raises
    `TruncatedImage`, `CorruptImage` and `UnsupportedSampleFormat`.
    """
    stored = turbo.decode(data, header, buffers)
    if stored is not None:
        grey = header.colour is Colour.GREY
        return Pixels(_turned(stored, header.orientation), converted=grey)
    return _by_pillow(data, header, background, sixteen_bit)


def versions() -> dict[str, str]:
    """The libraries whose version may change pixels."""
    return {**pillow.versions(), "simplejpeg": version("simplejpeg")}


def _turned(stored: NDArray[np.uint8], orientation: int) -> NDArray[np.uint8]:
    """RGBX pixels brought upright; Pillow turns them tile by tile, in cache."""
    if orientation not in _TRANSPOSE:
        return stored
    image = Image.frombuffer("RGBX", (stored.shape[1], stored.shape[0]), stored)
    return arrow.rgbx(image.transpose(_TRANSPOSE[orientation]))


def _by_pillow(
    data: Buffer, header: Header, background: Background, sixteen_bit: SixteenBit
) -> Pixels:
    try:
        opened = pillow.open_image(data, header.format)
        _check_agreement(opened, header)
        if header.format is Format.TIFF:
            _forget_sub_directories(opened)
        opened.load()
        converted = opened.mode != "RGB"
        image, notes = _to_rgb(opened, header, background, sixteen_bit)
        # Pillow's TIFF plugin has turned the picture while loading
        if header.format is not Format.TIFF and header.orientation in _TRANSPOSE:
            image = image.transpose(_TRANSPOSE[header.orientation])
    except _FAULTS as fault:
        raise _ours(fault, data, header) from fault
    array = arrow.rgbx(image)
    if Size(array.shape[0], array.shape[1]) != header.size:
        raise CorruptImage("header and data disagree on the size")
    return Pixels(array, notes, converted)


def _forget_sub_directories(image: Image.Image) -> None:
    """Keep Pillow from reading a TIFF's EXIF and GPS directories after its pixels.

    It turns every value in them into Python objects, and they may be as long as
    the file: 20 MB of rationals took seconds. Nothing of them decides a pixel.
    """
    exif = image.getexif()
    for tag in _SUB_DIRECTORIES:
        if tag in exif:
            del exif[tag]


def _check_agreement(image: Image.Image, header: Header) -> None:
    """Before any pixel memory: Pillow must see the size that was held against the limits."""
    seen = Size(image.height, image.width)
    expected = {header.stored}
    if header.format is Format.TIFF:  # swapped already when its tag says so, not for XMP
        expected.add(header.size)
    if seen not in expected:
        raise CorruptImage("header and data disagree on the size")
    if image.mode in _NO_8_BIT_MEANING:
        raise UnsupportedSampleFormat("the samples have no 8-bit meaning")


def _to_rgb(
    image: Image.Image, header: Header, background: Background, sixteen_bit: SixteenBit
) -> tuple[Image.Image, tuple[str, ...]]:
    """The image in mode RGB, on the background, and what there is to say of it."""
    if image.mode not in _WIDE_GREY:
        return _flat(image, background), ()
    if sixteen_bit is SixteenBit.COMPAT:
        return _flat(image, background), (CLIPPED,)
    return _flat(_scaled(image, header.bits), background), (SCALED,)


def _flat(image: Image.Image, background: Background) -> Image.Image:
    # A picture that is RGB already is taken as it is, also when a tRNS entry calls one of its
    # colours transparent: the reference does so (tests/golden, rgb_trns.png)
    as_it_is = background is Drop.DROP or image.mode == "RGB"
    if as_it_is or not image.has_transparency_data:
        # Without its background a tRNS entry means nothing, and Pillow warns when it converts one
        image.info.pop("transparency", None)
        return image.convert("RGB")
    if image.mode == "La":
        image = image.convert("LA")  # Pillow knows no other way from premultiplied grey
    image = image.convert("RGBA")
    assert not isinstance(background, Drop)
    # The paste is t = x*a + bg*(255-a) + 128; (t + (t >> 8)) >> 8 in each channel
    canvas = Image.new("RGB", image.size, (background.red, background.green, background.blue))
    canvas.paste(image, mask=image.getchannel("A"))
    return canvas


def _scaled(image: Image.Image, bits: int) -> Image.Image:
    """16-bit grey (12-bit in some TIFFs) brought to 8 bits, rounded to nearest.

    For 16 bits this is (v + 128) // 257, so that v = 257*k gives k exactly. A
    transparent grey is compared before it is scaled.
    """
    top = (1 << bits) - 1
    wide = np.asarray(image).astype(np.uint32)
    grey = Image.fromarray(((wide * 255 + top // 2) // top).astype(np.uint8))
    transparent = image.info.get("transparency")
    if not isinstance(transparent, int):
        return grey
    alpha = Image.fromarray(np.where(wide == transparent, 0, 255).astype(np.uint8))
    return Image.merge("LA", (grey, alpha))


def _ours(fault: Exception, data: Buffer, header: Header) -> CorruptImage | TruncatedImage:
    if ends_early(fault, data, header.format):
        return TruncatedImage(f"the {header.format} data ends early")
    return CorruptImage(f"the {header.format} data is damaged")
