"""The table of hostile files: what strangers send, and the one refusal that each gets.

Every file is made here by a seeded maker. `HEADER` rows are decided by bytes that
say what the file is; `DATA` rows cannot be, so they cost what the decoder takes to
find the damage, which the limits bound.
"""

import struct
from collections.abc import Iterator
from enum import StrEnum
from typing import NamedTuple

from service.errors import PatchmillError
from tests.codec import makers
from tests.codec.test_hostile import FILES, REFUSALS, ZERO_SIZES
from tests.hostile.structures import structures
from tests.test_errors import leaves

STATUS = {leaf.code: leaf.status for leaf in leaves()}


class When(StrEnum):
    """What decides a refusal."""

    HEADER = "header"
    DATA = "data"


class Row(NamedTuple):
    """A file, the code that refuses it, and what decides that."""

    name: str
    data: bytes
    code: str
    when: When = When.HEADER

    @property
    def status(self) -> int:
        return STATUS[self.code]


DECIDED_BY_DATA = {"png-ztxt-bomb", "png-iccp-bomb", "png-wrong-checksum"}
"""Of the codec's own table: Pillow finds these."""

OTHER_KINDS = {
    "one byte": b"\x07",
    "random bytes": bytes(range(7, 207)),
    "html": b"<!DOCTYPE html><html>404 Not Found</html>",
    "svg": b"<svg xmlns='http://www.w3.org/2000/svg' width='1' height='1'/>",
    "svg behind a prologue": b"<?xml version='1.0'?>\n<svg xmlns='http://www.w3.org/2000/svg'/>",
    "zip": b"PK\x03\x04" + bytes(60),
    "gzip": b"\x1f\x8b\x08" + bytes(60),
    "pdf": b"%PDF-1.7\n" + bytes(60),
    "postscript": b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\n",
    "psd": b"8BPS\0\1" + bytes(60),
    "ico": b"\0\0\1\0\1\0\x10\x10" + bytes(60),
    "heic": b"\0\0\0\x18ftypheic\0\0\0\0mif1heic" + bytes(60),
    "mp4": b"\0\0\0\x18ftypisom\0\0\2\0isomiso2" + bytes(60),
    "jpeg 2000": b"\0\0\0\x0cjP  \r\n\x87\n" + bytes(60),
    "jpeg xl": b"\xff\x0a" + bytes(60),
    "riff that is sound": b"RIFF\x24\0\0\0WAVEfmt " + bytes(60),
    "netpbm": b"P6\n2 2\n255\n" + bytes(12),
    "elf": b"\x7fELF\2\1\1" + bytes(60),
    "json": b'{"items": []}',
    "a png's tail": makers.png()[8:],
    "utf-16 html": "<html>".encode("utf-16"),
}


def _sized(format_: str, width: int, height: int) -> bytes:
    """A small file of this format whose header claims a size."""
    if format_ == "jpeg":
        old, new = struct.pack(">HH", 16, 24), struct.pack(">HH", height, width)
        at = FILES["jpeg"].index(b"\xff\xc0") + 5
        return FILES["jpeg"][:at] + new + FILES["jpeg"][at + len(old) :]
    if format_ == "png":
        return makers.png_with(data=FILES["png"])[:8] + makers.chunk(
            b"IHDR", struct.pack(">LLBBBBB", width, height, 8, 2, 0, 0, 0)
        ) + FILES["png"][33:]  # fmt: skip
    if format_ == "webp":
        return (
            FILES["webp-lossless"]
            .replace(b"VP8L", b"VP8X", 0)
            .replace(FILES["webp-lossless"][21:25], _vp8l(width, height), 1)
        )
    if format_ == "gif":
        size = struct.pack("<HH", width, height)
        return FILES["gif"].replace(struct.pack("<HH", 24, 16), size)
    if format_ == "bmp":
        return makers.bmp(1, height=height, width=width, body=b"")
    if format_ == "tiff":
        return makers.tiff(makers.grey_tags(height, width), [b"x"])
    old = struct.pack(">LL", 24, 16)
    return FILES["avif"].replace(old, struct.pack(">LL", width, height))


def _vp8l(width: int, height: int) -> bytes:
    return struct.pack("<L", (width - 1) | (height - 1) << 14 | 1 << 28)


BOMBS = {
    "jpeg": (60_000, 60_000),
    "png": (60_000, 60_000),
    "webp": (16_383, 16_383),
    "gif": (60_000, 60_000),
    "bmp": (60_000, 60_000),
    "tiff": (60_000, 60_000),
    "avif": (60_000, 60_000),
}
LONG = {"png": (170_000_000, 1), "bmp": (1 << 20, 1), "tiff": (1 << 20, 1), "avif": (1 << 20, 1)}


FOLLOWING_BYTES = 8 << 20
LONG_METADATA = {
    "png with megabytes of XMP": makers.itxt(b"XML:com.adobe.xmp", bytes(FOLLOWING_BYTES)),
    "png with megabytes of EXIF": makers.chunk(b"eXIf", b"II\x2a\0" + bytes(FOLLOWING_BYTES)),
    "png with megabytes of text": makers.chunk(b"tEXt", b"Comment\0" + b"a" * FOLLOWING_BYTES),
}


def rows() -> Iterator[Row]:
    for name, data in OTHER_KINDS.items():
        yield Row(f"kind: {name}", data, "unsupported_format")
    for refusal in REFUSALS:
        when = When.DATA if refusal.name in DECIDED_BY_DATA else When.HEADER
        yield Row(f"header: {refusal.name}", refusal.data, _code(refusal.error), when)
    for format_, size in BOMBS.items():
        yield Row(f"bomb: {format_}", _sized(format_, *size), "too_many_pixels")
        followed = _sized(format_, *size) + bytes(FOLLOWING_BYTES)
        yield Row(f"bomb and megabytes: {format_}", followed, "too_many_pixels")
    for format_, size in LONG.items():
        yield Row(f"long: {format_}", _sized(format_, *size), "side_too_long")
    for name, data, code, is_data in structures():
        yield Row(f"structure: {name}", data, code, When.DATA if is_data else When.HEADER)
    for name, chunk in LONG_METADATA.items():
        data = _sized("png", *BOMBS["png"])
        yield Row(f"bomb: {name}", data[:33] + chunk + data[33:], "too_many_pixels")
    for name, old, new in ZERO_SIZES:
        data = FILES[name].replace(old, new, 1)
        yield Row(f"zero: {name} {new.hex()}", data, "corrupt_image")
    for name, data in FILES.items():
        yield Row(f"cut to a magic: {name}", data[:12], "truncated_image")
        if name not in ENDS_IN_ITS_MIDDLE:
            yield Row(f"cut in half: {name}", data[: len(data) // 2], "truncated_image", When.DATA)
    yield Row("empty", b"", "empty_body")


ENDS_IN_ITS_MIDDLE = {"apng", "webp-animated", "avis", "tiff-end"}
"""Half of them may hold the whole first picture, or no directory at all."""


def _code(error: type[PatchmillError]) -> str:
    return error.code
