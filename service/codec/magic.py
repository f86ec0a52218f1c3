"""Which format bytes are in, told by the bytes alone.

In: the first bytes of a file. Out: one of the formats that are read here, or
415 with the name of what was seen instead. A label or a file name is never
asked, and the bytes themselves never appear in the answer.
"""

import codecs
import re

from service.errors import TruncatedImage, UnsupportedFormat
from service.types import Format

HEAD_BYTES = 512  # enough for every signature below

_READ: tuple[tuple[bytes, Format], ...] = (
    (b"\xff\xd8\xff", Format.JPEG),
    (b"\x89PNG\r\n\x1a\n", Format.PNG),
    (b"GIF87a", Format.GIF),
    (b"GIF89a", Format.GIF),
    (b"BM", Format.BMP),
    (b"II\x2a\x00", Format.TIFF),
    (b"MM\x00\x2a", Format.TIFF),
    (b"MM\x2a\x00", Format.TIFF),  # swapped magic bytes: invalid, but Pillow reads them
    (b"II\x00\x2a", Format.TIFF),
    (b"II\x2b\x00", Format.TIFF),  # BigTIFF
)

_NOT_READ: tuple[tuple[bytes, str], ...] = (
    (b"MM\x00\x2b", "a big-endian BigTIFF"),  # Pillow 13 takes it for a classic TIFF and fails
    (b"8BPS", "a PSD (Photoshop) file"),
    (b"%!PS", "an EPS or PostScript file"),
    (b"\xc5\xd0\xd3\xc6", "an EPS file"),
    (b"%PDF-", "a PDF file"),
    (b"\x00\x00\x01\x00", "an ICO file"),
    (b"\x00\x00\x02\x00", "a CUR file"),
    (b"PK\x03\x04", "a zip archive"),
    (b"PK\x05\x06", "a zip archive"),
    (b"\x1f\x8b", "gzip data"),
    (b"Rar!", "a RAR archive"),
    (b"7z\xbc\xaf\x27\x1c", "a 7z archive"),
    (b"\x00\x00\x00\x0cjP  ", "a JPEG 2000 picture"),
    (b"\xff\x4f\xff\x51", "a JPEG 2000 codestream"),
    (b"\x00\x00\x00\x0cJXL ", "a JPEG XL picture"),
    (b"\xff\x0a", "a JPEG XL codestream"),
    (b"II\xbc\x01", "a JPEG XR picture"),
    (b"\x76\x2f\x31\x01", "an OpenEXR picture"),
    (b"#?RADIANCE", "a Radiance HDR picture"),
    (b"DDS ", "a DDS texture"),
    (b"qoif", "a QOI picture"),
    (b"FORM", "an IFF file"),
    (b"icns", "an ICNS file"),
    (b"\x0a\x05\x01", "a PCX picture"),
    (b"SIMPLE  =", "a FITS file"),
    (b"\x1aE\xdf\xa3", "a Matroska or WebM video"),
    (b"OggS", "an Ogg file"),
    (b"ID3", "an MP3 file"),
    (b"\x7fELF", "an ELF program"),
)

_AVIF_BRANDS = (b"avif", b"avis")
_BRANDS: dict[bytes, str] = {
    b"heic": "a HEIC picture",
    b"heix": "a HEIC picture",
    b"hevc": "a HEIC sequence",
    b"hevx": "a HEIC sequence",
    b"heim": "a HEIC picture",
    b"heis": "a HEIC picture",
    b"mif1": "a HEIF picture other than AVIF",
    b"msf1": "a HEIF sequence other than AVIF",
    b"crx ": "a Canon CR3 raw file",
    b"jxl ": "a JPEG XL picture",
    b"qt  ": "a QuickTime video",
}
_UTF8 = codecs.getincrementaldecoder("utf-8")
_NETPBM = re.compile(rb"P[1-7fF][ \t\r\n]")
_MARKUP = re.compile(rb"(?:\xef\xbb\xbf)?\s{0,64}<(\??!?[A-Za-z-]*)")


def identify(head: bytes) -> Format:
    """The format of a file that begins with `head` (`HEAD_BYTES` of it, or all).

    Raises `UnsupportedFormat` for anything that is not read here, and
    `TruncatedImage` for a few bytes that only begin a signature.
    """
    for magic, format_ in _READ:
        if head.startswith(magic):
            return format_
    if head[:4] == b"RIFF":
        return _riff(head)
    if head[4:8] == b"ftyp":
        return _iso_media(head)
    if _only_begins(head):
        raise TruncatedImage("the file ends inside its first signature")
    raise UnsupportedFormat(f"the bytes look like {_name(head)}")


def _only_begins(head: bytes) -> bool:
    """Whether these few bytes, or none, could become a format that is read here."""
    if any(magic.startswith(head) for magic, _ in _READ) or b"RIFF".startswith(head):
        return True
    in_ftyp = b"\0\0".startswith(head[:2]) and b"ftyp".startswith(head[4:])  # behind a small length
    return len(head) < 8 and in_ftyp


def _riff(head: bytes) -> Format:
    if len(head) < 12:
        raise TruncatedImage("the file ends inside its first signature")
    if head[8:12] != b"WEBP":
        raise UnsupportedFormat("the bytes look like a RIFF file other than WebP")
    return Format.WEBP


def _iso_media(head: bytes) -> Format:
    """AVIF, told from its siblings by the brands of its `ftyp` box."""
    if len(head) < 12:
        raise TruncatedImage("the file ends inside its first signature")
    major = head[8:12]
    if major in _AVIF_BRANDS:
        return Format.AVIF
    end = min(int.from_bytes(head[:4], "big"), len(head))
    compatible = [head[at : at + 4] for at in range(16, end - 3, 4)]
    if major in (b"mif1", b"msf1"):
        if any(brand in _AVIF_BRANDS for brand in compatible):
            return Format.AVIF
        for brand in compatible:
            if brand[:2] == b"he" and brand in _BRANDS:
                raise UnsupportedFormat(f"the bytes look like {_BRANDS[brand]}")
    raise UnsupportedFormat(f"the bytes look like {_BRANDS.get(major, 'an MP4 or related file')}")


def _name(head: bytes) -> str:
    for magic, name in _NOT_READ:
        if head.startswith(magic):
            return name
    if _NETPBM.match(head):
        return "a PNM picture"
    if markup := _MARKUP.match(head):
        return _markup(markup[1].lower(), head)
    if _is_text(head):
        return "text"
    return "unknown bytes"


def _is_text(head: bytes) -> bool:
    """UTF-8 without control characters; its last character may be cut off."""
    try:
        text = _UTF8().decode(head)
    except UnicodeDecodeError:
        return False
    return all(character.isprintable() or character in "\t\n\r" for character in text)


def _markup(tag: bytes, head: bytes) -> str:
    if b"<svg" in head.lower():
        return "an SVG picture"
    if tag in (b"!doctype", b"html", b"head", b"body") or b"<html" in head.lower():
        return "an HTML page"
    return "XML" if tag == b"?xml" else "text"
