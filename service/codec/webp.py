"""WebP headers: lossy, lossless, extended and animated.

In: a WebP's bytes. Out: `Facts`. The RIFF chunks are walked by their length
fields (RFC 9649); metadata counts only where the extended header announces it,
as in libwebp. What lies behind the RIFF length is not part of the picture.
"""

from contextlib import suppress
from dataclasses import dataclass

from service.codec.exif import orientation
from service.codec.facts import Fact, Facts, checked_metadata, checked_size
from service.codec.reader import Reader
from service.errors import CorruptImage, TruncatedImage, UnsupportedFormat
from service.types import Colour, Format, Size

MAX_CHUNKS = 4_096
"""Chunks of a file, frames among them; libwebp allocates a record for each."""

_NO_METADATA = (b"ANIM", b"ANMF", b"ALPH", b"VP8 ", b"VP8L")
_ANIMATED, _HAS_XMP, _HAS_EXIF, _HAS_ALPHA = 0x02, 0x04, 0x08, 0x10


@dataclass(slots=True)
class _Seen:
    frames: int = 0
    bitstream_alpha: bool | None = None
    exif: bytes | None = None
    xmp: bytes | None = None
    metadata_bytes: int = 0
    ended: bool = False


def parse(reader: Reader) -> Facts:
    """The facts of a WebP; raises `TruncatedImage` and `CorruptImage`."""
    kind = reader.take(12, 4)
    if kind == b"VP8 ":
        return Facts(Format.WEBP, _lossy_size(reader, 20), 8, Colour.YCBCR)
    if kind == b"VP8L":
        size, alpha = _lossless(reader, 20)
        return Facts(Format.WEBP, size, 8, Colour.RGB, alpha=alpha)
    if kind == b"VP8X":
        return _extended(reader)
    raise UnsupportedFormat("the bytes look like a WebP of an unknown kind")


def _lossy_size(reader: Reader, at: int) -> Size:
    """The frame header of VP8 (RFC 6386 section 9.1): 14 bits of width and height."""
    if reader.take(at + 3, 3) != b"\x9d\x01\x2a":
        raise CorruptImage("the VP8 frame header has no start code")
    return checked_size(reader.u16(at + 8) & 0x3FFF, reader.u16(at + 6) & 0x3FFF)


def _lossless(reader: Reader, at: int) -> tuple[Size, bool]:
    """The header of VP8L (RFC 9649 section 3.4): sizes less one, then the alpha bit."""
    if reader.u8(at) != 0x2F:
        raise CorruptImage("the VP8L header has no signature")
    bits = reader.u32(at + 1)
    size = checked_size((bits >> 14 & 0x3FFF) + 1, (bits & 0x3FFF) + 1)
    return size, bool(bits >> 28 & 1)


def _extended(reader: Reader) -> Facts:
    """VP8X (RFC 9649 section 2.7): flags and canvas, then chunks.

    `colour` is YCbCr for all of them: the kind of the frames stands behind the
    size, and no decision hangs on it.
    """
    flags = reader.u8(20)
    size = checked_size(reader.u24(27) + 1, reader.u24(24) + 1)
    reader.on_size(size)
    seen = _Seen()
    with suppress(TruncatedImage):  # what the missing bytes could say stays open
        _walk(reader, flags, seen)
    animated = flags & _ANIMATED != 0
    more_frames = animated and seen.frames > 1
    undecided: set[Fact] = set()
    if not seen.ended:
        undecided = {
            Fact.ORIENTATION,
            *(() if animated or seen.bitstream_alpha is not None else (Fact.ALPHA,)),
            *(() if more_frames or not animated else (Fact.MORE_FRAMES,)),
        }
    return Facts(
        Format.WEBP,
        size,
        8,
        Colour.YCBCR,
        orientation=orientation(seen.exif, seen.xmp),
        # A lossless still picture's own bit outranks the flag, as in WebPGetFeatures
        alpha=flags & _HAS_ALPHA != 0 if animated else seen.bitstream_alpha or False,
        more_frames=more_frames,
        undecided=undecided,
    )


def _walk(reader: Reader, flags: int, seen: _Seen) -> None:
    at = 20 + _padded(reader.u32(16))
    riff_end = 8 + _padded(reader.u32(4))
    alpha_chunk = False
    for _ in range(MAX_CHUNKS):
        if at + 8 > riff_end:
            seen.ended = True
            return
        kind = reader.take(at, 4)
        length = reader.u32(at + 4)
        at += 8
        if kind not in _NO_METADATA:
            seen.metadata_bytes = checked_metadata(
                seen.metadata_bytes + min(length, len(reader) - at)
            )
        if kind == b"ANMF":
            seen.frames += 1
        elif kind == b"ALPH":
            alpha_chunk = True
        elif kind == b"VP8 " and seen.bitstream_alpha is None:
            seen.bitstream_alpha = alpha_chunk or flags & _HAS_ALPHA != 0
        elif kind == b"VP8L" and seen.bitstream_alpha is None:
            seen.bitstream_alpha = _lossless(reader, at)[1]
        elif kind == b"EXIF" and flags & _HAS_EXIF and seen.exif is None:
            seen.exif = reader.take(at, length)
        elif kind == b"XMP " and flags & _HAS_XMP and seen.xmp is None:
            seen.xmp = reader.take(at, length)
        at += _padded(length)
    raise CorruptImage(f"there are more than {MAX_CHUNKS} chunks")


def _padded(length: int) -> int:
    """RIFF chunks are padded to an even length."""
    return length + (length & 1)
