"""Files whose structure lies or explodes, of every format, and files of two formats at once.

Beside the codec's own table these are the whole kinds: each format's frames, tiles and
cells that are larger than the picture, each way to repeat a scan, each sample type that
has no 8-bit meaning, and headers behind which megabytes follow that nobody should touch.
"""

import struct
from collections.abc import Iterator
from typing import NamedTuple

from PIL import Image

from tests.codec import makers


class Structure(NamedTuple):
    """A file and the code that refuses it; `is_data` where only decoding can tell."""

    name: str
    data: bytes
    code: str
    is_data: int = 0


def webp_canvas(height: int, width: int, frame: bytes) -> bytes:
    """An extended WebP of this canvas around the chunk of a plain one."""
    canvas = struct.pack("<L", width - 1)[:3] + struct.pack("<L", height - 1)[:3]
    body = b"WEBPVP8X" + struct.pack("<LL", 10, 0) + canvas + frame[12:]
    return b"RIFF" + struct.pack("<L", len(body)) + body


def gif_frame(left: int, top: int, width: int, height: int) -> bytes:
    """A GIF of 24x16 whose picture lies elsewhere and has another size."""
    place = b"," + struct.pack("<HHHH", 0, 0, 24, 16)
    assert makers.gif().count(place) == 1
    return makers.gif().replace(place, b"," + struct.pack("<HHHH", left, top, width, height))


def png_interlaced(data: bytes) -> bytes:
    """The same header with the interlace flag set."""
    header = data[16:28] + b"\x01"
    return data[:8] + makers.chunk(b"IHDR", header) + data[33:]


def repeated(data: bytes, times: int) -> bytes:
    """A JPEG whose last scan comes `times` times more."""
    at = data.rindex(b"\xff\xda")
    return data[:-2] + data[at:-2] * times + b"\xff\xd9"


def scan_by_scan(times: int) -> bytes:
    """A sequential JPEG of a scan for each component, the last one over and over."""
    data = makers.jpeg(subsampling="4:4:4")
    at = data.index(b"\xff\xda")
    head, coded = data[:at], data[at + 14 : -2]
    scans = [
        makers.segment(0xDA, bytes((1, number, 0x00, 0, 63, 0))) + coded for number in (1, 2, 3)
    ]
    return head + b"".join(scans) + scans[2] * times + b"\xff\xd9"


def jpeg_frame(bits: int, components: int) -> bytes:
    """The head of a JPEG with this many bits a sample and components."""
    rows = b"".join(bytes((number, 0x11, 0)) for number in range(components))
    frame = struct.pack(">BHHB", bits, 16, 24, components) + rows
    return b"\xff\xd8" + makers.segment(0xC1, frame) + makers.segment(0xDA, bytes(6))


def tiled(edge: int) -> bytes:
    tags = makers.grey_tags(16, 16, t322=(4, [edge]), t323=(4, [edge]))
    del tags[278]
    return makers.tiff(tags, [bytes(256)], offsets_tag=324)


def of_mode(mode: str) -> bytes:
    return makers.encode(Image.new(mode, (8, 8)), "TIFF")


def avif_of_empty_extents(extents: int) -> bytes:
    """An AVIF whose item lies in so many ranges, each told in no bytes at all."""
    data = makers.avif("RGB", 16, 24)
    at, meta = data.index(b"iloc") - 4, data.index(b"meta") - 4
    end = at + int.from_bytes(data[at : at + 4], "big")
    iloc = b"iloc" + struct.pack(">LHHHHH", 0, 0, 1, 1, 0, extents)
    grown = 4 + len(iloc) - (end - at)
    size = int.from_bytes(data[meta : meta + 4], "big") + grown
    before = data[:meta] + struct.pack(">L", size) + data[meta + 4 : at]
    return before + struct.pack(">L", 4 + len(iloc)) + iloc + data[end:]


LOSSY = makers.encode(makers.picture("RGB", 16, 24), "WEBP")
PROGRESSIVE = makers.jpeg(progressive=True)
RESTARTS = makers.jpeg(progressive=True, restart_marker_blocks=1)


def structures() -> Iterator[Structure]:
    yield from LYING
    yield from SCANS
    yield from SAMPLES
    yield from POLYGLOTS
    yield from METADATA


LYING = [
    Structure("webp canvas", webp_canvas(16_384, 16_384, LOSSY), "too_many_pixels"),
    Structure("webp long canvas", webp_canvas(1, 1 << 24, LOSSY), "side_too_long"),
    Structure("webp frame beyond its canvas", webp_canvas(8, 8, LOSSY), "corrupt_image", 1),
    Structure("gif far frame", gif_frame(65_535, 0, 65_535, 1), "side_too_long"),
    Structure("gif large frame", gif_frame(0, 0, 60_000, 60_000), "too_many_pixels"),
    Structure("gif frame of nothing", gif_frame(0, 0, 0, 0), "corrupt_image", 1),
    Structure("tiff tile", tiled(65_520), "too_many_pixels"),
    Structure("tiff long tile", tiled(1 << 20), "side_too_long"),
    Structure("png interlaced, cut", png_interlaced(makers.png())[:300], "truncated_image", 1),
    Structure("png of no rows", makers.png()[:33] + makers.png()[-12:], "corrupt_image"),
]

MEGABYTES = b"a" * (5 << 20)

METADATA = [
    Structure("avif, empty extents", avif_of_empty_extents(65_534), "corrupt_image"),
    Structure(
        "png, megabytes of text",
        makers.png_with(makers.itxt(b"k", MEGABYTES + "\U0001f600".encode())),
        "corrupt_image",
    ),
    Structure(
        "png, megabytes of EXIF", makers.png_with(makers.chunk(b"eXIf", MEGABYTES)), "corrupt_image"
    ),
    Structure(
        "png, megabytes of its own",
        makers.png_with(makers.chunk(b"prVt", MEGABYTES)),
        "corrupt_image",
    ),
    Structure(
        "webp, megabytes of XMP",
        makers.encode(makers.picture("RGB", 16, 24), "WEBP", xmp=MEGABYTES),
        "corrupt_image",
    ),
    Structure(
        "tiff, megabytes of a profile",
        makers.encode(makers.picture("RGB", 16, 24), "TIFF", icc_profile=MEGABYTES),
        "corrupt_image",
    ),
]

SCANS = [
    Structure("progressive scans", repeated(PROGRESSIVE, 400), "too_many_scans"),
    Structure("scans with restarts", repeated(RESTARTS, 400), "too_many_scans"),
    Structure(
        "arithmetic scans",
        repeated(PROGRESSIVE.replace(b"\xff\xc2", b"\xff\xca", 1), 400),
        "too_many_scans",
    ),
    Structure("sequential scans", scan_by_scan(400), "too_many_scans"),
]

SAMPLES = [
    Structure("32-bit integers", of_mode("I"), "unsupported_sample_format"),
    Structure("floats", of_mode("F"), "unsupported_sample_format"),
    Structure("12-bit jpeg", jpeg_frame(12, 3), "unsupported_sample_format"),
    Structure("two components", jpeg_frame(8, 2), "unsupported_sample_format"),
    Structure("200 components", jpeg_frame(8, 200), "unsupported_sample_format"),
]

POLYGLOTS = [
    Structure(f"{name} before a picture", begin + makers.png(), "unsupported_format")
    for name, begin in {
        "a line end": b"\n",
        "a script": b"<script>alert(1)</script>",
        "a shell script": b"#!/bin/sh\nid\n",
        "a pdf": b"%PDF-1.7\n",
        "a zip": b"PK\x03\x04",
        "postscript": b"%!PS-Adobe-3.0\n",
        "a text mark": b"\xef\xbb\xbf",
    }.items()
]
