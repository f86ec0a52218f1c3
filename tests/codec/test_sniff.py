"""What `sniff` and `sniff_head` say of sound files, and how limits are refused."""

import io
import struct
from dataclasses import replace
from typing import NamedTuple

import pytest
from PIL import Image

from service.codec.sniff import sniff, sniff_head
from service.errors import (
    PatchmillError,
    SideTooLong,
    TooManyPixels,
    TooManyScans,
    TruncatedImage,
    UnsupportedFormat,
    UnsupportedSampleFormat,
)
from service.types import Colour, Format, Size
from tests.codec import makers
from tests.codec.makers import LIMITS, Sample

STILLS = list(makers.still_samples())
TURNED = [
    Sample(f"{sample.name}-{value}", sample.data)
    for value in (3, 6)
    for sample in makers.oriented_samples(value)
]
NAMED = {sample.name: sample.data for sample in STILLS}

COLOURS = [
    ("jpeg-RGB-24x16", Colour.YCBCR, 8),
    ("jpeg-L-24x16", Colour.GREY, 8),
    ("jpeg-rgb", Colour.RGB, 8),
    ("jpeg-CMYK-24x16", Colour.CMYK, 8),
    ("jpeg-cmyk-without-adobe", Colour.CMYK, 8),
    ("jpeg-ycck", Colour.YCCK, 8),
    ("png-1", Colour.GREY, 1),
    ("png-P-2bit", Colour.PALETTE, 2),
    ("png-I;16", Colour.GREY, 16),
    ("png-16bit-rgba", Colour.RGB, 16),
    ("webp-lossy", Colour.YCBCR, 8),
    ("webp-lossless", Colour.RGB, 8),
    ("gif", Colour.PALETTE, 8),
    ("bmp-4", Colour.PALETTE, 4),
    ("bmp-24", Colour.RGB, 8),
    ("tiff-CMYK", Colour.CMYK, 8),
    ("tiff-12", Colour.GREY, 12),
    ("avif-RGB", Colour.YCBCR, 8),
    ("avif-L", Colour.GREY, 8),
]

FOREIGN = [
    (b"<svg xmlns='http://www.w3.org/2000/svg'/>", "an SVG picture"),
    (b"<?xml version='1.0'?>\n<svg/>", "an SVG picture"),
    (b"<!DOCTYPE html><html><body>502</body></html>", "an HTML page"),
    (b"\n <HTML><head>", "an HTML page"),
    (b"\x00\x00\x00\x18ftypheic\x00\x00\x00\x00mif1heic", "a HEIC picture"),
    (b"\x00\x00\x00\x18ftypmif1\x00\x00\x00\x00mif1heic", "a HEIC picture"),
    (b"\x00\x00\x00\x18ftypisom\x00\x00\x00\x00isommp41", "an MP4 or related file"),
    (b"8BPS\x00\x01" + bytes(20), "a PSD (Photoshop) file"),
    (b"%!PS-Adobe-3.0 EPSF-3.0\n", "an EPS or PostScript file"),
    (b"\x00\x00\x01\x00\x01\x00\x10\x10", "an ICO file"),
    (b"PK\x03\x04\x14\x00", "a zip archive"),
    (b"%PDF-1.7\n", "a PDF file"),
    (b"\x00\x00\x00\x0cjP  \r\n\x87\n", "a JPEG 2000 picture"),
    (b"\x00\x00\x00\x0cJXL \r\n\x87\n", "a JPEG XL picture"),
    (b"\xff\x0a\x00\x10", "a JPEG XL codestream"),
    (b"P6\n1 1\n255\nabc", "a PNM picture"),
    (b"RIFF\x24\x00\x00\x00WAVEfmt ", "a RIFF file other than WebP"),
    (b"MM\x00\x2b\x00\x08\x00\x00" + bytes(8), "a big-endian BigTIFF"),
    (b"not a picture, but secret-token", "text"),
    ("kein Bild: äöü".encode(), "text"),
    (b"\x01\x02\x03\x04\x05\x06", "unknown bytes"),
    (b"\xfe" * 40, "unknown bytes"),
]

UNSUPPORTED_SAMPLES = [
    ("tiff-float", makers.encode(Image.new("F", (3, 2)), "TIFF")),
    ("tiff-integer", makers.encode(Image.new("I", (3, 2)), "TIFF")),
    ("tiff-signed-16", makers.tiff(makers.grey_tags(2, 2, 16, t339=(3, [2])), [bytes(8)])),
    ("tiff-64", makers.tiff(makers.grey_tags(2, 2, 64), [bytes(32)])),
    ("tiff-log", makers.tiff(makers.grey_tags(2, 2, t262=(3, [32844])), [bytes(4)])),
    ("jpeg-12", makers.jpeg().replace(b"\xff\xc0\x00\x11\x08", b"\xff\xc0\x00\x11\x0c")),
]


def ids(samples: list[Sample]) -> list[str]:
    return [sample.name for sample in samples]


@pytest.mark.parametrize("sample", STILLS + TURNED, ids=ids(STILLS + TURNED))
def test_format_size_alpha_and_frames_are_those_that_pillow_sees(sample: Sample) -> None:
    header = sniff(sample.data, LIMITS)
    with Image.open(io.BytesIO(sample.data)) as image:
        assert header.format.value == str(image.format).lower().replace("mpo", "jpeg")
        if header.format is not Format.TIFF:  # Pillow says its size turned
            assert header.stored == Size(image.height, image.width)
        assert header.more_frames == getattr(image, "is_animated", False)
        if "without-end" not in sample.name:
            image.load()
        assert header.alpha == image.has_transparency_data


@pytest.mark.parametrize(("name", "colour", "bits"), COLOURS)
def test_colour_and_depth_are_those_of_the_file(name: str, colour: Colour, bits: int) -> None:
    header = sniff(NAMED[name], LIMITS)
    assert (header.colour, header.bits) == (colour, bits)


@pytest.mark.parametrize("sample", STILLS + TURNED, ids=ids(STILLS + TURNED))
def test_a_head_never_contradicts_the_whole_file(sample: Sample) -> None:
    header = sniff(sample.data, LIMITS)
    known = False
    for length in range(len(sample.data) + 1):
        try:
            head = sniff_head(sample.data[:length])
        except TruncatedImage:
            assert not known, f"{length} bytes say less than one byte fewer"
            continue
        known = True
        assert (head.format, head.stored) == (header.format, header.stored)
        assert (head.bits, head.colour) == (header.bits, header.colour)
        for fact in ("orientation", "alpha", "more_frames", "scans"):
            assert getattr(head, fact) in (None, getattr(header, fact)), (length, fact)
    assert known


def test_the_head_of_a_progressive_jpeg_leaves_its_scans_open() -> None:
    data = makers.jpeg(progressive=True)
    head = sniff_head(data[: data.index(b"\xff\xda") + 20])
    assert head.scans is None
    assert head.orientation == 1
    assert sniff_head(data).scans == sniff(data, LIMITS).scans > 1


def test_the_head_of_a_png_leaves_late_exif_open() -> None:
    data = makers.png_with_late(makers.chunk(b"eXIf", makers.exif_block(6)))
    assert sniff_head(data[:-60]).orientation is None
    assert sniff_head(data).orientation == 6


@pytest.mark.parametrize("wrap", [bytes, bytearray, memoryview])
def test_every_kind_of_buffer_is_read(wrap: type) -> None:
    for name in (
        "jpeg-RGB-24x16",
        "png-RGB",
        "webp-lossy",
        "gif",
        "bmp-24",
        "tiff-RGB",
        "avif-RGB",
    ):
        assert sniff(wrap(NAMED[name]), LIMITS) == sniff(NAMED[name], LIMITS)


@pytest.mark.parametrize(("data", "name"), FOREIGN, ids=[name for _, name in FOREIGN])
def test_foreign_bytes_are_named_and_not_echoed(data: bytes, name: str) -> None:
    with pytest.raises(UnsupportedFormat) as caught:
        sniff(data, LIMITS)
    assert caught.value.detail == f"the bytes look like {name}"
    assert "secret" not in caught.value.detail


@pytest.mark.parametrize(
    "data",
    [data for _, data in UNSUPPORTED_SAMPLES],
    ids=[name for name, _ in UNSUPPORTED_SAMPLES],
)
def test_samples_without_an_8_bit_meaning_are_refused(data: bytes) -> None:
    with pytest.raises(UnsupportedSampleFormat):
        sniff(data, LIMITS)


class LimitCase(NamedTuple):
    """The first of the changed limits is the one that must speak."""

    name: str
    data: bytes
    change: dict[str, int]
    error: type[PatchmillError]
    limit: int
    actual: int


LONG, SQUARE = makers.png("RGB", 1, 40), makers.png("RGB", 10, 10)
PROGRESSIVE, REPEATED = makers.repeated_scans(0), makers.repeated_scans(200)
LIMIT_CASES = [
    LimitCase("side", LONG, {"max_side_px": 39, "max_pixels": 1}, SideTooLong, 39, 40),
    LimitCase("pixels", SQUARE, {"max_pixels": 99, "max_scans": 0}, TooManyPixels, 99, 100),
    LimitCase("scans", REPEATED, {"max_scans": 50, "max_scan_pixels": 1}, TooManyScans, 50, 210),
    LimitCase("work", PROGRESSIVE, {"max_scan_pixels": 3839}, TooManyScans, 3839, 3840),
]


@pytest.mark.parametrize("case", LIMIT_CASES, ids=lambda case: case.name)
def test_limits_are_checked_in_order_and_name_their_setting(case: LimitCase) -> None:
    with pytest.raises(case.error) as caught:
        sniff(case.data, replace(LIMITS, **case.change))
    assert (caught.value.limit, caught.value.actual) == (case.limit, case.actual)
    assert caught.value.setting == next(iter(case.change))


def test_a_picture_at_its_limits_passes() -> None:
    exact = replace(LIMITS, max_side_px=24, max_pixels=384, max_scans=10, max_scan_pixels=3840)
    assert sniff(makers.repeated_scans(0), exact).scans == 10


def test_a_single_scan_is_never_too_much_scan_work() -> None:
    assert sniff(makers.jpeg(), replace(LIMITS, max_scan_pixels=1)).scans == 1


def test_scans_in_a_thumbnail_are_not_counted() -> None:
    thumbnail = makers.segment(0xE2, b"thumb" + b"\xff\xda\x00\x02" * 300)
    data = makers.jpeg(progressive=True)
    at = data.rindex(b"\xff\xda")
    between = data[:at] + thumbnail + data[at:]
    assert sniff(makers.with_segments(data, thumbnail), LIMITS).scans == 10
    assert sniff(between, LIMITS).scans == 10


def test_scans_behind_the_end_marker_are_not_counted() -> None:
    data = makers.jpeg(progressive=True) + makers.jpeg(progressive=True)
    assert sniff(data, LIMITS).scans == 10


def test_a_gif_takes_the_size_of_what_reaches_beyond_its_screen() -> None:
    assert sniff(makers.gif_beyond_screen(), LIMITS).stored == Size(16, 24)


def test_an_avif_that_codes_more_than_it_announces_counts_as_what_is_coded() -> None:
    """libavif decodes the 64x64 frame and scales it to the 8x8 that the header says."""
    for data in (makers.avif("RGB", 64, 64), makers.avif("RGBA", 64, 64)):
        lying = data.replace(struct.pack(">LL", 64, 64), struct.pack(">LL", 8, 8))
        assert sniff_head(lying).stored == Size(8, 8)
        assert sniff(lying, replace(LIMITS, max_pixels=4096)).stored == Size(8, 8)
        with pytest.raises(TooManyPixels) as caught:
            sniff(lying, replace(LIMITS, max_pixels=4095))
        assert caught.value.actual == 4096


def test_avif_items_behind_the_announced_number_are_not_read() -> None:
    data = makers.avif(xmp=makers.xmp_packet(6))
    at = data.index(b"iinf") + 8
    assert sniff(data, LIMITS).orientation == 6
    assert sniff(data[:at] + b"\0\x01" + data[at + 2 :], LIMITS).orientation == 1


@pytest.mark.parametrize("turns", range(4))
@pytest.mark.parametrize("axis", range(2))
def test_every_rotation_and_mirror_of_an_avif_is_pillows(turns: int, axis: int) -> None:
    data = bytearray(makers.avif(exif=makers.exif_of(5)))
    data[data.index(b"irot") + 4] = turns
    data[data.index(b"imir") + 4] = axis
    with Image.open(io.BytesIO(data)) as image:
        assert sniff(data, LIMITS).orientation == image.getexif().get(274, 1)


def test_scans_of_a_jpeg_inside_a_tiff_are_counted() -> None:
    tags = makers.grey_tags(16, 24, t258=(3, [8, 8, 8]), t259=(3, [7]), t277=(3, [3]))
    tags |= {262: (3, [6])}
    plain = makers.tiff(tags, [makers.jpeg()])
    assert sniff(plain, LIMITS).scans == 1
    with pytest.raises(TooManyScans):
        sniff(makers.tiff(tags, [makers.repeated_scans(99)]), LIMITS)


def test_an_oversized_tile_counts_as_what_decoding_allocates() -> None:
    tags = makers.grey_tags(24, 40, t322=(3, [16_000]), t323=(3, [16_000]))
    data = makers.tiff(tags, [makers.grey_bytes(16, 16)], offsets_tag=324)
    with pytest.raises(TooManyPixels):
        sniff(data, LIMITS)
