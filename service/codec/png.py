"""PNG headers, animated PNG among them.

In: a PNG's bytes. Out: `Facts`. Chunks are walked by their length fields (PNG
third edition section 5); pixels and checksums are left to the decoder. EXIF,
XMP and transparency are taken wherever Pillow takes them, also behind the
pixels and from text chunks, up to the end chunk or an animation's second frame.
"""

import codecs
import re
import zlib
from dataclasses import dataclass, field

from service.codec.exif import orientation
from service.codec.facts import Fact, Facts, checked_metadata, checked_size
from service.codec.reader import Reader
from service.errors import CorruptImage, TruncatedImage
from service.types import Colour, Format, Size

MAX_CHUNKS = 8_192
"""Chunks of a file; at 8 KiB each, as encoders write them, this is 64 MB."""

MAX_COMPRESSED_TEXTS = 16
"""Compressed text chunks; Pillow inflates each to up to 1 MiB, 2 ms, while opening."""

MAX_TEXT_EXIF_BYTES = 1 << 20
"""EXIF as text, two characters a byte; 24 MB of short lines took 2.3 s and 690 MB."""

_NO_METADATA = (b"IHDR", b"PLTE", b"IDAT", b"fcTL", b"fdAT")
_MAX_TEXT_BYTES = 1 << 20  # what Pillow inflates of a text chunk
_MAX_HEADING_BYTES = 1 << 16  # of an international text: its language and its translated key
_PIECE_BYTES = 1 << 16

_COLOURS: dict[int, tuple[Colour, frozenset[int]]] = {
    0: (Colour.GREY, frozenset({1, 2, 4, 8, 16})),
    2: (Colour.RGB, frozenset({8, 16})),
    3: (Colour.PALETTE, frozenset({1, 2, 4, 8})),
    4: (Colour.GREY, frozenset({8, 16})),
    6: (Colour.RGB, frozenset({8, 16})),
}
_WITH_ALPHA = (4, 6)
_CHUNK_TYPE = re.compile(rb"\w{4}")  # what Pillow takes for one
_UTF8 = codecs.getincrementaldecoder("utf-8")
_RAW_EXIF = "Raw profile type exif"
_XMP = "XML:com.adobe.xmp"


@dataclass(slots=True)
class _Seen:
    """What the chunks said so far; the later of two wins, as in Pillow."""

    size: Size | None = None
    bits: int = 0
    kind: int = 0
    transparency: bool = False
    frames: int | None = None
    has_frame_control: bool = False
    default_image: bool = False
    in_pixels: bool = False
    ended: bool = False
    exif: bytes | None = None
    texts: dict[str, bytes] = field(default_factory=dict)
    xmp: bytes | None = None
    compressed_texts: int = 0
    metadata_bytes: int = 0

    @property
    def alpha(self) -> bool:
        return self.kind in _WITH_ALPHA or self.transparency

    @property
    def more_frames(self) -> bool:
        """An animation has one frame more when its default image is none of them."""
        return self.frames is not None and self.frames + self.default_image > 1


def parse(reader: Reader) -> Facts:
    """The facts of a PNG; raises `TruncatedImage` and `CorruptImage`."""
    seen = _Seen()
    try:
        _walk(reader, seen)
    except TruncatedImage:
        if seen.size is None:
            raise
    if seen.size is None:
        raise CorruptImage("the pixels come before the header chunk")
    if seen.ended and not seen.in_pixels:
        raise CorruptImage("there are no pixels before the end chunk")
    return Facts(
        format=Format.PNG,
        stored=seen.size,
        bits=seen.bits,
        colour=_COLOURS[seen.kind][0],
        orientation=_orientation(seen),
        alpha=seen.alpha,
        more_frames=seen.more_frames,
        undecided=_undecided(seen),
    )


def _undecided(seen: _Seen) -> set[Fact]:
    if seen.ended:
        return set()
    return {
        Fact.ORIENTATION,
        *(() if seen.alpha else (Fact.ALPHA,)),
        *(() if seen.in_pixels else (Fact.MORE_FRAMES,)),
    }


def _walk(reader: Reader, seen: _Seen) -> None:
    at = 8
    for _ in range(MAX_CHUNKS):
        length = reader.u32(at)
        kind = reader.take(at + 4, 4)
        if not _CHUNK_TYPE.fullmatch(kind):
            if not seen.in_pixels:
                raise CorruptImage("a chunk has no valid name")
            seen.ended = True
            return
        if _ends(kind, seen):
            seen.ended = True
            return
        if kind not in _NO_METADATA:
            seen.metadata_bytes = checked_metadata(
                seen.metadata_bytes + min(length, len(reader) - at)
            )
        _read_chunk(kind, reader, at + 8, length, seen)
        at += 12 + length
    raise CorruptImage(f"there are more than {MAX_CHUNKS} chunks")


def _ends(kind: bytes, seen: _Seen) -> bool:
    """Whether Pillow reads no further for the first frame."""
    return kind == b"IEND" or (kind == b"fcTL" and seen.in_pixels and seen.more_frames)


def _read_chunk(kind: bytes, reader: Reader, at: int, length: int, seen: _Seen) -> None:
    if kind in (b"IDAT", b"fdAT"):
        if not seen.in_pixels:
            seen.in_pixels = True
            seen.default_image = seen.frames is not None and not seen.has_frame_control
        return
    if kind == b"IHDR":
        reader.on_size(_read_header(reader.view(at, length), seen))
    elif kind == b"tRNS":
        seen.transparency |= seen.size is not None and seen.kind not in _WITH_ALPHA
    elif kind == b"eXIf":
        seen.exif = reader.take(at, length)
    elif kind in (b"tEXt", b"zTXt", b"iTXt"):
        _read_text(kind, reader.view(at, length), seen)
    elif kind == b"iCCP":
        _count_compressed(seen)
    elif kind == b"fcTL":
        seen.has_frame_control = True
    elif kind == b"acTL" and not seen.in_pixels:
        _read_animation(reader.u32(at), seen)


def _read_header(body: memoryview, seen: _Seen) -> Size:
    """IHDR (section 11.2.1)."""
    if seen.size is not None:
        raise CorruptImage("there are two header chunks")
    if len(body) < 13:
        raise CorruptImage("the header chunk is too short")
    bits, kind, _, filtering = body[8], body[9], body[10], body[11]
    if kind not in _COLOURS or bits not in _COLOURS[kind][1] or filtering:
        raise CorruptImage("the header chunk names an unknown layout of pixels")
    seen.bits, seen.kind = bits, kind
    seen.size = checked_size(int.from_bytes(body[4:8], "big"), int.from_bytes(body[:4], "big"))
    return seen.size


def _read_animation(frames: int, seen: _Seen) -> None:
    """acTL: a second one, or a count out of range, makes the file a still picture."""
    if seen.frames is not None:
        seen.frames = None
    elif 0 < frames <= 0x80000000:
        seen.frames = frames


def _count_compressed(seen: _Seen) -> None:
    seen.compressed_texts += 1
    if seen.compressed_texts > MAX_COMPRESSED_TEXTS:
        raise CorruptImage(f"there are more than {MAX_COMPRESSED_TEXTS} compressed text chunks")


def _read_text(kind: bytes, body: memoryview, seen: _Seen) -> None:
    """Keep what can hold an orientation: EXIF, its older text form, and XMP."""
    key, _, value = bytes(body[:82]).partition(b"\0")  # a key has 79 bytes at most
    if kind == b"zTXt" or (kind == b"iTXt" and value[:1] != b"\0"):
        _count_compressed(seen)
    name = key.decode("latin-1")
    if name not in (_RAW_EXIF, _XMP, "exif"):
        return
    if name != _XMP and len(body) > MAX_TEXT_EXIF_BYTES:
        raise CorruptImage(f"there are more than {MAX_TEXT_EXIF_BYTES} bytes of EXIF as text")
    text = body[len(key) + 1 :]
    if kind == b"tEXt":
        _keep(name, bytes(text), seen)
    elif kind == b"zTXt":
        inflated = _inflate(text[1:])
        _keep(name, inflated if inflated is not None else b"", seen)
    else:
        _read_international(name, text, seen)


def _keep(name: str, value: bytes, seen: _Seen) -> None:
    if name == "exif":
        seen.exif = value
    else:
        seen.texts[name] = value


def _read_international(name: str, value: memoryview, seen: _Seen) -> None:
    """iTXt (section 11.3.3.4): flag, method, language, translated key, text.

    The text may be as long as the file, and is copied once.
    """
    parts = bytes(value[2:_MAX_HEADING_BYTES]).split(b"\0", 2)
    if len(parts) < 3:
        return
    rest = value[2 + len(parts[0]) + 1 + len(parts[1]) + 1 :]
    text: bytes | None = bytes(rest) if not value[0] else None
    if value[0] and value[1] == 0:
        text = _inflate(rest)
    if text is None:
        return
    if name == _XMP:
        seen.xmp = text
    if all(_is_utf8(part) for part in (*parts[:2], text)):
        _keep(name, text, seen)  # Pillow keeps another one only as raw XMP


def _is_utf8(text: bytes) -> bool:
    """Told without a string as long as the text."""
    decoder = _UTF8()
    try:
        for at in range(0, len(text), _PIECE_BYTES):
            decoder.decode(text[at : at + _PIECE_BYTES])
        decoder.decode(b"", final=True)
    except UnicodeDecodeError:
        return False
    return True


def _inflate(data: memoryview) -> bytes | None:
    """The text, up to what Pillow inflates (beyond, it refuses the file); None if damaged."""
    try:
        return zlib.decompressobj().decompress(data, _MAX_TEXT_BYTES)
    except zlib.error:
        return None


def _orientation(seen: _Seen) -> int:
    exif = seen.exif
    if exif is None and _RAW_EXIF in seen.texts:
        exif = _unhexed(seen.texts[_RAW_EXIF])
    return orientation(exif, seen.texts.get(_XMP) or seen.xmp)


def _unhexed(profile: bytes) -> bytes:
    """An EXIF block as hexadecimal lines behind three lines of heading."""
    digits = profile.split(b"\n", 3)[3:]
    try:
        return bytes.fromhex(b"".join(digits).replace(b"\n", b"").decode("latin-1"))
    except ValueError:
        return b"unreadable"
