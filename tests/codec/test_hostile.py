"""Damaged and hostile files: a client's bad bytes are a named refusal or the right pixels."""

import struct
import zlib
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import pytest

from service.codec.sniff import sniff, sniff_head
from service.errors import (
    CorruptImage,
    PatchmillError,
    SideTooLong,
    TooManyPixels,
    TooManyScans,
    TruncatedImage,
    UnsupportedFormat,
)
from service.types import SixteenBit, Size
from tests.codec import makers
from tests.codec.makers import LIMITS, WHITE, decode, oracle

FILES = {
    "jpeg": makers.jpeg(),
    "jpeg-progressive": makers.jpeg(progressive=True),
    "png": makers.png(),
    "png-palette": makers.png("P"),
    "apng": makers.apng(),
    "webp-lossy": makers.encode(makers.picture("RGB", 16, 24), "WEBP"),
    "webp-lossless": makers.encode(makers.picture("RGBA", 16, 24), "WEBP", lossless=True),
    "webp-animated": makers.animated_webp(),
    "gif": makers.gif(),
    "bmp": makers.bmp(24),
    "tiff": makers.encode(makers.picture("RGB", 16, 24), "TIFF"),
    "tiff-lzw": makers.encode(makers.picture("RGB", 16, 24), "TIFF", compression="tiff_lzw"),
    "tiff-end": makers.tiff(makers.grey_tags(16, 24), [makers.grey_bytes(16, 24)]),
    "avif": makers.avif(),
    "avis": makers.avis(),
}


def run(data: bytes) -> None:
    decode(data, sniff(data, LIMITS), WHITE, SixteenBit.COMPAT)


# Bytes that are no picture


@pytest.mark.parametrize("data", [b"", b"\xff", b"\x89", b"G", b"B", b"\0", b"R", b"I", b"xyz"])
def test_a_few_bytes_are_refused(data: bytes) -> None:
    with pytest.raises((TruncatedImage, UnsupportedFormat)):
        sniff(data, LIMITS)
    with pytest.raises((TruncatedImage, UnsupportedFormat)):
        sniff_head(data)


@pytest.mark.parametrize("name", FILES)
def test_a_magic_with_nothing_behind_it_is_truncated(name: str) -> None:
    with pytest.raises(TruncatedImage):
        sniff(FILES[name][: 16 if name[0] in "wa" and name != "apng" else 8], LIMITS)


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("seed", range(4))
def test_garbage_behind_a_magic_is_refused(name: str, seed: int) -> None:
    noise = np.random.default_rng(seed).bytes(3000)
    with pytest.raises(PatchmillError):
        run(FILES[name][:12] + noise)


# Cut files


@pytest.mark.parametrize("name", FILES)
def test_a_file_cut_anywhere_is_truncated_or_decodes_as_pillow_does(name: str) -> None:
    data = FILES[name]
    truncated = 0
    for length in range(len(data) - 1, 1, -max(1, len(data) // 60)):
        cut = data[:length]
        try:
            pixels = decode(cut, sniff(cut, LIMITS), WHITE, SixteenBit.COMPAT)
        except TruncatedImage:
            truncated += 1
        except CorruptImage:
            # libtiff and Pillow's GIF say "damaged" of some cuts, and nothing more
            assert name.startswith(("tiff", "gif")), length
        except UnsupportedFormat:
            assert length < 16
        else:
            assert np.array_equal(pixels.array, oracle(cut)), length
    assert truncated > 10


@pytest.mark.parametrize("name", FILES)
def test_garbage_behind_the_end_changes_nothing(name: str) -> None:
    data = FILES[name]
    noise = np.random.default_rng(1).bytes(700)
    longer = decode(data + noise, sniff(data + noise, LIMITS), WHITE, SixteenBit.COMPAT)
    plain = decode(data, sniff(data, LIMITS), WHITE, SixteenBit.COMPAT)
    assert np.array_equal(longer.array, plain.array)


# Headers that lie

ZERO_SIZES = [
    ("jpeg", b"\x00\x10\x00\x18\x03", b"\x00\x00\x00\x18\x03"),
    ("jpeg", b"\x00\x10\x00\x18\x03", b"\x00\x10\x00\x00\x03"),
    ("png", struct.pack(">LL", 24, 16), struct.pack(">LL", 0, 16)),
    ("webp-lossy", struct.pack("<HH", 24, 16), struct.pack("<HH", 0, 16)),
    ("bmp", struct.pack("<LL", 10, 6), struct.pack("<LL", 10, 0)),
    ("avif", struct.pack(">LL", 24, 16), struct.pack(">LL", 24, 0)),
    ("tiff-end", struct.pack("<HHLL", 256, 4, 1, 24), struct.pack("<HHLL", 256, 4, 1, 0)),
]


@pytest.mark.parametrize(("name", "old", "new"), ZERO_SIZES)
def test_a_zero_dimension_is_corrupt(name: str, old: bytes, new: bytes) -> None:
    assert FILES[name].count(old) >= 1
    with pytest.raises(CorruptImage):
        sniff(FILES[name].replace(old, new, 1), LIMITS)


def test_a_gif_of_no_size_is_corrupt() -> None:
    with pytest.raises(CorruptImage):
        sniff(b"GIF89a" + bytes(7) + b"," + bytes(9) + b"\x02\0;", LIMITS)


@pytest.mark.parametrize("name", ["jpeg", "png", "webp-lossy", "gif", "bmp", "tiff-end", "avif"])
def test_a_header_of_another_file_is_refused_before_decoding(name: str) -> None:
    header = sniff(FILES[name], LIMITS)
    lying = replace(header, stored=Size(header.stored.height + 1, header.stored.width))
    with pytest.raises(CorruptImage, match="disagree"):
        decode(FILES[name], lying, WHITE, SixteenBit.COMPAT)


class Refusal(NamedTuple):
    """A file and the fault that it is refused with, by `sniff` or by `decode`."""

    name: str
    data: bytes
    error: type[PatchmillError]


def png_header(height: int, width: int) -> bytes:
    header = struct.pack(">LLBBBBB", width, height, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + makers.chunk(b"IHDR", header)


def with_pixels(head: bytes) -> bytes:
    end = makers.chunk(b"IEND", b"")
    return head + makers.chunk(b"IDAT", zlib.compress(bytes(100))) + end


MARKS = b"\xff\x00" * 100_000
BOMB = zlib.compress(bytes(3 << 20))
PROGRESSIVE = makers.jpeg(progressive=True)
MANY_STRIPS = makers.tiff(makers.grey_tags(4, 4, t278=(4, [3])), [bytes(12)] + [b""] * 50)
GIF_HEAD = b"GIF89a" + struct.pack("<HHBBB", 24, 16, 0, 0, 0)
AVIF_HEAD = b"\0\0\0\x10ftypavif\0\0\0\0"

REFUSALS = [
    Refusal("png-bomb", with_pixels(png_header(30_000, 30_000)), TooManyPixels),
    Refusal("png-long", with_pixels(png_header(1, 170_000_000)), SideTooLong),
    Refusal("bmp-bomb", makers.bmp(1, height=60_000, width=60_000, body=b""), TooManyPixels),
    Refusal("bmp-runs", makers.bmp(8, height=3000, width=3000, compression=1, body=b""),
            TooManyPixels),
    Refusal("jpeg-scans", makers.repeated_scans(500), TooManyScans),
    Refusal("png-ztxt-bomb", makers.png_with(makers.chunk(b"zTXt", b"k\0\0" + BOMB)),
            CorruptImage),
    Refusal("png-iccp-bomb", makers.png_with(makers.chunk(b"iCCP", b"k\0\0" + BOMB)),
            CorruptImage),
    Refusal("png-long-exif-text", makers.png_with(makers.chunk(
        b"tEXt", b"Raw profile type exif\0\nexif\n  99\n" + b"00\n" * 350_000)), CorruptImage),
    Refusal("tiff-rationals", makers.tiff(
        makers.grey_tags(4, 4, t282=(5, [1] * 400_000)), [bytes(16)]), CorruptImage),
    Refusal("bmp-runs-of-nothing", makers.bmp(
        8, height=100, width=100, compression=1, body=bytes(1 << 20)), CorruptImage),
    Refusal("png-many-texts", makers.png_with(makers.chunk(b"zTXt", b"k\0\0") * 100),
            CorruptImage),
    Refusal("png-no-pixels", png_header(4, 4) + makers.chunk(b"IEND", b""), CorruptImage),
    Refusal("png-two-headers", png_header(4, 4) + makers.png()[8:], CorruptImage),
    Refusal("png-odd-layout", makers.png().replace(b"\x08\x02\0\0\0", b"\x07\x02\0\0\0", 1),
            CorruptImage),
    Refusal("png-wrong-checksum", makers.png()[:29] + bytes(4) + makers.png()[33:], CorruptImage),
    Refusal("png-many-chunks", png_header(4, 4) + makers.chunk(b"IDAT", b"") * 100_001,
            CorruptImage),
    Refusal("jpeg-junk", b"\xff\xd8\xff\xe0\0\2" + bytes(100_000), CorruptImage),
    Refusal("jpeg-fill", PROGRESSIVE[:-2] + b"\xff" * (4 << 20), CorruptImage),
    Refusal("jpeg-stuffing", b"\xff\xd8" + MARKS, CorruptImage),
    Refusal("jpeg-segments", b"\xff\xd8" + b"\xff\xe0\0\2" * 5000, CorruptImage),
    Refusal("jpeg-tables", b"\xff\xd8" + makers.segment(0xDB, bytes(65_000)) * 2, CorruptImage),
    Refusal("jpeg-end-first", b"\xff\xd8\xff\xd9" + makers.jpeg(), CorruptImage),
    Refusal("jpeg-scan-first", b"\xff\xd8\xff\xda\0\2", CorruptImage),
    Refusal("jpeg-two-frames", makers.with_segments(
        makers.jpeg(), makers.segment(0xC0, b"\x08\0\x10\0\x18\x01\x01\x11\0")), CorruptImage),
    Refusal("jpeg-segments-between-scans", PROGRESSIVE[:-2] + b"\xff\xc4\0\2" * 70_000,
            CorruptImage),
    Refusal("gif-sub-blocks", GIF_HEAD + b"!\xfe" + b"\x01a" * 70_000, CorruptImage),
    Refusal("gif-junk", GIF_HEAD + bytes(70_000), CorruptImage),
    Refusal("gif-no-picture", GIF_HEAD + b";", CorruptImage),
    Refusal("webp-chunks", b"RIFF" + struct.pack("<L", 1 << 20) + b"WEBPVP8X" +
            struct.pack("<L", 10) + bytes(10) + b"abcd\0\0\0\0" * 65_537, CorruptImage),
    Refusal("tiff-strips", MANY_STRIPS, CorruptImage),
    Refusal("tiff-many-rationals", makers.tiff(
        makers.grey_tags(4, 4, t282=(5, [1] * 600_000)), [bytes(16)]), CorruptImage),
    Refusal("jpeg-much-exif", makers.with_segments(
        makers.jpeg(), *[makers.segment(0xE1, b"Exif\0\0" + bytes(65_000))] * 17), CorruptImage),
    Refusal("tiff-compression", makers.tiff(makers.grey_tags(4, 4, t259=(3, [99])), [bytes(16)]),
            UnsupportedFormat),
    Refusal("tiff-no-size", b"II\x2a\0" + struct.pack("<LHL", 8, 0, 0), CorruptImage),
    Refusal("bmp-depth", makers.bmp(2), UnsupportedFormat),
    Refusal("bmp-png-inside", makers.bmp(24, compression=5), UnsupportedFormat),
    Refusal("bmp-header", b"BM" + bytes(12) + struct.pack("<L", 41) + bytes(40),
            UnsupportedFormat),
    Refusal("avif-boxes", AVIF_HEAD + b"\0\0\0\x08free" * 5000, CorruptImage),
    Refusal("avif-box-too-long", AVIF_HEAD + b"\0\0\0\x18meta" + bytes(4) +
            b"\0\0\0\xffpitm" + bytes(4), CorruptImage),
    Refusal("avif-box-too-short", AVIF_HEAD + b"\0\0\0\x02meta", CorruptImage),
]  # fmt: skip


@pytest.mark.parametrize("case", REFUSALS, ids=lambda case: case.name)
def test_a_hostile_file_is_refused_by_name(case: Refusal) -> None:
    with pytest.raises(case.error) as caught:
        run(case.data)
    assert 400 <= caught.value.status < 500
    assert len(caught.value.detail) <= 200


@pytest.mark.parametrize("case", REFUSALS, ids=lambda case: case.name)
def test_a_refusal_keeps_the_cause_of_a_decoders_failure(case: Refusal) -> None:
    try:
        header = sniff(case.data, LIMITS)
    except PatchmillError:
        return
    with pytest.raises(PatchmillError) as caught:
        decode(case.data, header, WHITE, SixteenBit.COMPAT)
    assert caught.value.__cause__ is not None


# Orientation that cannot be meant

IGNORED = [
    ("zero", makers.exif_block(0)),
    ("nine", makers.exif_block(9)),
    ("65535", makers.exif_block(65535)),
    ("negative", makers.exif_block(-6, kind=8)),
    ("text", makers.exif_block(54, kind=2)),
    ("byte", makers.exif_block(6, kind=1)),
    ("undefined", makers.exif_block(6, kind=7)),
    ("unknown-type", makers.directory_block([(274, 99, 1, b"\x06\0\0\0")])),
    ("no-values", makers.exif_block(6, count=0)),
    ("values-outside", makers.directory_block([(274, 3, 9, struct.pack("<L", 5000))])),
    ("values-behind-a-broken-tag", makers.directory_block(
        [(271, 2, 20, struct.pack("<L", 30)), (274, 3, 1, b"\x06\0\0\0")])),
    ("cut-in-the-tag", makers.exif_block(6)[:18]),
    ("directory-outside", b"II\x2a\x00" + struct.pack("<L", 9999)),
    ("no-tiff", b"not a directory"),
    ("short", b"II"),
    ("empty", b""),
]  # fmt: skip


@pytest.mark.parametrize(
    "block", [block for _, block in IGNORED], ids=[name for name, _ in IGNORED]
)
def test_an_orientation_that_makes_no_sense_is_ignored(block: bytes) -> None:
    files = [
        makers.jpeg_with_exif(block),
        makers.png_with(makers.chunk(b"eXIf", block)),
        makers.png_with_late(makers.chunk(b"eXIf", block)),
        makers.encode(makers.picture("RGB", 16, 24), "WEBP", exif=b"Exif\0\0" + block + b"\0"),
    ]
    for data in files:
        header = sniff(data, LIMITS)
        assert header.orientation == 1
        pixels = decode(data, header, WHITE, SixteenBit.COMPAT)
        assert pixels.size == Size(16, 24)


@pytest.mark.parametrize("value", [0, 9, 65535])
def test_a_tiff_of_no_orientation_decodes_as_it_is(value: int) -> None:
    tags = makers.grey_tags(16, 24, t274=(3, [value]))
    data = makers.tiff(tags, [makers.grey_bytes(16, 24)])
    assert sniff(data, LIMITS).orientation == 1
    assert np.array_equal(
        decode(data, sniff(data, LIMITS), WHITE, SixteenBit.COMPAT).array, oracle(data)
    )


def test_a_directory_that_points_at_itself_ends() -> None:
    data = bytearray(makers.tiff(makers.grey_tags(16, 24), [makers.grey_bytes(16, 24)]))
    at = struct.unpack_from("<L", data, 4)[0]
    data[-4:] = struct.pack("<L", at)
    assert not sniff(bytes(data), LIMITS).more_frames


# A flipped byte


@pytest.mark.parametrize("name", FILES)
def test_a_flipped_byte_gives_what_pillow_gives(name: str) -> None:
    data = FILES[name]
    for at in range(len(data) // 2, len(data), max(1, len(data) // 40)):
        flipped = data[:at] + bytes((data[at] ^ 0x5A,)) + data[at + 1 :]
        try:
            pixels = decode(flipped, sniff(flipped, LIMITS), WHITE, SixteenBit.COMPAT)
        except PatchmillError:
            continue
        assert np.array_equal(pixels.array, oracle(flipped)), at
