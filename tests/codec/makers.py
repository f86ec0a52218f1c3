"""Seeded pictures and files: every format, mode and metadata that the tests need.

Pixels come from a seed, files from Pillow or, where Pillow cannot write what is
needed, from a few lines of bytes. The oracle is here too: what a server gets
that opens a file, turns it upright, lays it on white and converts it to RGB.
"""

import io
import struct
import warnings
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageOps, PngImagePlugin

from service.buffers import Buffers
from service.codec import decode as codec
from service.types import Background, Buffer, Header, Limits, Pixels, Rgb, SixteenBit

WHITE = Rgb(255, 255, 255)

LIMITS = Limits(
    max_body_bytes=1 << 26,
    max_items=16,
    max_pixels=1 << 26,
    max_request_pixels=1 << 28,
    max_side_px=65_535,
    max_scans=100,
    max_scan_pixels=1 << 30,
    max_answer_bytes=1 << 30,
)


@dataclass(frozen=True)
class Sample:
    """A named file."""

    name: str
    data: bytes


def oracle(data: bytes, background: tuple[int, int, int] = (255, 255, 255)) -> NDArray[np.uint8]:
    """(H, W, 3) uint8: the reference's pixels."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        image = ImageOps.exif_transpose(Image.open(io.BytesIO(data)))
        if image.mode == "RGB" or not image.has_transparency_data:
            return np.asarray(image.convert("RGB"))
        image = image.convert("RGBA")
        canvas = Image.new("RGB", image.size, background)
        canvas.paste(image, mask=image.getchannel("A"))
        return np.asarray(canvas)


BUFFERS = Buffers(1 << 26)


def decode(data: Buffer, header: Header, background: Background, sixteen_bit: SixteenBit) -> Pixels:
    """The room's own `decode`, without the fourth channel, whose content means nothing."""
    pixels = codec.decode(data, header, background, sixteen_bit, BUFFERS)
    return Pixels(np.ascontiguousarray(pixels.array[..., :3]), pixels.notes)


# Pixels


def picture(mode: str, height: int, width: int, seed: int = 0) -> Image.Image:
    """Smooth colour with some noise, so that lossy formats keep its orientation."""
    random = np.random.default_rng(seed)
    rows, columns = np.mgrid[0:height, 0:width]
    rgba = np.stack(
        [
            rows * 255 // max(height - 1, 1),
            columns * 255 // max(width - 1, 1),
            (rows + 2 * columns) % 256,
            (rows * 37 + columns * 11) % 256,
        ],
        axis=-1,
    )
    noisy = np.clip(rgba + random.integers(-20, 21, rgba.shape), 0, 255).astype(np.uint8)
    image = Image.fromarray(noisy)
    if mode == "I;16":
        return Image.fromarray((noisy[..., 0].astype(np.uint16) << 4) + noisy[..., 1])
    if mode in ("RGBA", "LA"):
        return image if mode == "RGBA" else image.convert("LA")
    if mode == "P":
        return image.convert("RGB").quantize(16)
    return image.convert("RGB").convert(mode)


def encode(image: Image.Image, format_: str, **options: Any) -> bytes:
    out = io.BytesIO()
    image.save(out, format_, **options)
    return out.getvalue()


# EXIF and XMP


def exif_block(value: int, kind: int = 3, order: str = "<", count: int = 1) -> bytes:
    """A TIFF block whose one tag is the orientation, `value` stored as `kind`."""
    codes = {1: "B", 2: "B", 3: "H", 4: "L", 6: "b", 7: "B", 8: "h", 9: "l", 11: "f", 13: "L"}
    packed = struct.pack(order + codes[kind], value).ljust(4, b"\0")
    return directory_block([(274, kind, count, packed)], order)


def directory_block(entries: Sequence[tuple[int, int, int, bytes]], order: str = "<") -> bytes:
    """A TIFF block of one directory at offset 8, its entries' value fields as given."""
    mark = b"II\x2a\x00" if order == "<" else b"MM\x00\x2a"
    rows = b"".join(struct.pack(order + "HHL", *row[:3]) + row[3] for row in entries)
    return mark + struct.pack(order + "LH", 8, len(entries)) + rows + struct.pack(order + "L", 0)


def xmp_packet(value: int) -> bytes:
    return (
        b'<x:xmpmeta xmlns:x="adobe:ns:meta/"><rdf:RDF><rdf:Description '
        b'tiff:Orientation="%d"/></rdf:RDF></x:xmpmeta>' % value
    )


# JPEG


def jpeg(mode: str = "RGB", height: int = 16, width: int = 24, **options: Any) -> bytes:
    return encode(picture(mode, height, width), "JPEG", **{"quality": 90, **options})


def segment(code: int, body: bytes) -> bytes:
    return bytes((0xFF, code)) + struct.pack(">H", len(body) + 2) + body


def with_segments(data: bytes, *segments: bytes) -> bytes:
    """A JPEG with segments put behind its start marker."""
    return data[:2] + b"".join(segments) + data[2:]


def jpeg_with_exif(block: bytes, **options: Any) -> bytes:
    return with_segments(jpeg(**options), segment(0xE1, b"Exif\0\0" + block))


def jpeg_with_xmp(value: int) -> bytes:
    return with_segments(
        jpeg(), segment(0xE1, b"http://ns.adobe.com/xap/1.0/\0" + xmp_packet(value))
    )


def ycck(height: int = 16, width: int = 24) -> bytes:
    """A CMYK JPEG whose Adobe marker says YCCK."""
    data = bytearray(jpeg("CMYK", height, width))
    data[data.index(b"Adobe") + 11] = 2
    return bytes(data)


def arithmetic() -> bytes:
    """A JPEG whose frame header says arithmetic coding.

    The data behind it is Huffman code, which an arithmetic decoder reads as
    some other picture: as good as any, and the same in every decoder.
    """
    return jpeg().replace(b"\xff\xc0", b"\xff\xc9", 1)


def cmyk_without_adobe(height: int = 16, width: int = 24) -> bytes:
    data = jpeg("CMYK", height, width)
    at = data.index(b"\xff\xee")
    return data[:at] + data[at + 2 + int.from_bytes(data[at + 2 : at + 4], "big") :]


def repeated_scans(times: int, height: int = 16, width: int = 24) -> bytes:
    """A progressive JPEG whose last scan comes `times` times more."""
    data = jpeg("RGB", height, width, progressive=True)
    at = data.rindex(b"\xff\xda")
    return data[:-2] + data[at:-2] * times + b"\xff\xd9"


def costly(scans: int) -> bytes:
    """A plain grey picture of 4000x4000 with a scan of 31 bytes, 11 ms each, over and over."""
    out = io.BytesIO()
    Image.new("L", (4000, 4000), 100).save(out, "JPEG", progressive=True)
    data = out.getvalue()
    return data[:-2] + data[data.rindex(b"\xff\xda") : -2] * scans + b"\xff\xd9"


def mpo(frames: int = 2) -> bytes:
    first, *others = (picture("RGB", 16, 24, seed) for seed in range(frames))
    return encode(first, "MPO", save_all=True, append_images=others)


# PNG


def chunk(kind: bytes, body: bytes) -> bytes:
    checksum = zlib.crc32(kind + body)
    return struct.pack(">L", len(body)) + kind + body + struct.pack(">L", checksum)


def png(mode: str = "RGB", height: int = 16, width: int = 24, **options: Any) -> bytes:
    return encode(picture(mode, height, width), "PNG", **options)


def png_with(*chunks: bytes, data: bytes | None = None) -> bytes:
    """A PNG with chunks put behind its header chunk."""
    base = png() if data is None else data
    return base[:33] + b"".join(chunks) + base[33:]


def png_with_late(*chunks: bytes, data: bytes | None = None) -> bytes:
    """A PNG with chunks put before its end chunk."""
    base = png() if data is None else data
    return base[:-12] + b"".join(chunks) + base[-12:]


def raw_profile(block: bytes) -> bytes:
    """The text form of EXIF that ImageMagick writes."""
    lines = b"\nexif\n%8d\n%s\n" % (len(block), block.hex().encode("ascii"))
    return b"Raw profile type exif\0" + lines


def itxt(key: bytes, text: bytes) -> bytes:
    return chunk(b"iTXt", key + b"\0\0\0\0\0" + text)


def apng(frames: int = 3, mode: str = "RGB") -> bytes:
    first, *others = (picture(mode, 16, 24, seed) for seed in range(frames))
    return encode(first, "PNG", save_all=True, append_images=others)


# GIF


def gif(frames: int = 1, **options: Any) -> bytes:
    first, *others = (picture("P", 16, 24, seed) for seed in range(frames))
    if others:
        options = {"save_all": True, "append_images": others, **options}
    return encode(first, "GIF", **options)


def gif_beyond_screen() -> bytes:
    """A GIF whose logical screen is 5x4, its picture 24x16."""
    data = bytearray(gif())
    data[6:10] = struct.pack("<HH", 5, 4)
    return bytes(data)


# BMP


def bmp(
    bits: int,
    header_bytes: int = 40,
    *,
    height: int = 6,
    width: int = 10,
    top_down: int = 0,
    compression: int = 0,
    masks: tuple[int, ...] = (),
    body: bytes | None = None,
) -> bytes:
    """A BMP of any header version; palettes are a ramp of colours."""
    colours = 1 << bits if bits <= 8 else 0
    if header_bytes == 12:
        header = struct.pack("<LHHHH", 12, width, height, 1, bits)
        palette = b"".join(bytes((i * 7 % 256, i * 3 % 256, i)) for i in range(colours))
    else:
        stored = 2**32 - height if top_down else height
        header = struct.pack(
            "<LLLHHLLLLLL", header_bytes, width, stored, 1, bits, compression, 0, 0, 0, colours, 0
        )
        fields = struct.pack(f"<{len(masks)}L", *masks)
        header = (header + fields).ljust(max(header_bytes, len(header + fields)), b"\0")
        palette = b"".join(bytes((i * 7 % 256, i * 3 % 256, i, 0)) for i in range(colours))
    stride = (width * bits + 31) // 32 * 4
    if body is None:
        body = np.random.default_rng(bits).bytes(stride * height)
    offset = 14 + len(header) + len(palette)
    return struct.pack("<2sLLL", b"BM", offset + len(body), 0, offset) + header + palette + body


# TIFF


def tiff(
    tags: dict[int, tuple[int, Sequence[int]]],
    data: Sequence[bytes],
    *,
    offsets_tag: int = 273,
    order: str = "<",
    big: int = 0,
    mark: bytes | None = None,
) -> bytes:
    """A TIFF of one directory at the end, its strips or tiles before it.

    `tags` maps a tag to (type, values); offsets and lengths of `data` are added.
    """
    codes = {1: "B", 2: "B", 3: "H", 4: "L", 5: "L", 7: "B", 11: "f", 16: "Q"}
    first = 16 if big else 8
    offsets, at = [], first
    for part in data:
        offsets.append(at)
        at += len(part)
    counts_tag = 325 if offsets_tag == 324 else 279
    every = {
        **tags,
        offsets_tag: (4, offsets),
        counts_tag: (4, [len(part) for part in data]),
    }
    inline = 8 if big else 4
    row, count = ("HHQ", "Q") if big else ("HHL", "H")
    rows, extra = b"", b""
    extra_at = at
    for tag, (kind, values) in sorted(every.items()):
        packed = struct.pack(f"{order}{len(values)}{codes[kind]}", *values)
        number = len(values) // 2 if kind == 5 else len(values)
        if len(packed) > inline:
            field = struct.pack(order + ("Q" if big else "L"), extra_at + len(extra))
            extra += packed
        else:
            field = packed.ljust(inline, b"\0")
        rows += struct.pack(order + row, tag, kind, number) + field
    directory_at = extra_at + len(extra)
    letters = b"II" if order == "<" else b"MM"
    if big:
        head = letters + struct.pack(order + "HHHQ", 43, 8, 0, directory_at)
    else:
        head = (mark or letters + struct.pack(order + "H", 42)) + struct.pack(
            order + "L", directory_at
        )
    directory = struct.pack(order + count, len(every)) + rows + bytes(inline)
    return head + b"".join(data) + extra + directory


def grey_tags(height: int, width: int, bits: int = 8, **more: Any) -> dict[int, Any]:
    """Tags of an uncompressed grey TIFF in one strip; `more` as t274=(3, [6])."""
    tags: dict[int, Any] = {
        256: (4, [width]),
        257: (4, [height]),
        258: (3, [bits]),
        259: (3, [1]),
        262: (3, [1]),
        277: (3, [1]),
        278: (4, [height]),
    }
    return tags | {int(name[1:]): value for name, value in more.items()}


def grey_bytes(height: int, width: int, seed: int = 0) -> bytes:
    return np.random.default_rng(seed).integers(0, 256, height * width, dtype=np.uint8).tobytes()


def tiled_tiff(orientation: int = 1, compressed: int = 0) -> bytes:
    """A 40x24 grey TIFF in six tiles of 16x16."""
    tags = grey_tags(24, 40, t274=(3, [orientation]), t322=(3, [16]), t323=(3, [16]))
    del tags[278]
    tiles = [grey_bytes(16, 16, seed) for seed in range(6)]
    if compressed:
        tags[259] = (3, [8])
        tiles = [zlib.compress(tile) for tile in tiles]
    return tiff(tags, tiles, offsets_tag=324)


def multi_page_tiff() -> bytes:
    first, second = picture("RGB", 16, 24), picture("RGB", 10, 12, seed=1)
    return encode(first, "TIFF", save_all=True, append_images=[second])


# AVIF


def avif(mode: str = "RGB", height: int = 16, width: int = 24, **options: Any) -> bytes:
    return encode(
        picture(mode, height, width), "AVIF", **{"speed": 10, "max_threads": 1, **options}
    )


def avis(mode: str = "RGB") -> bytes:
    first, *others = (picture(mode, 16, 24, seed) for seed in range(3))
    options = {"save_all": True, "append_images": others, "speed": 10, "max_threads": 1}
    return encode(first, "AVIF", **options)


# Everything


def exif_of(orientation: int) -> Image.Exif:
    exif = Image.Exif()
    exif[274] = orientation
    return exif


def still_samples() -> Iterator[Sample]:
    """One file of each kind without metadata."""
    for mode in ("RGB", "L", "CMYK"):
        for height, width in ((1, 1), (16, 24), (17, 3), (9, 31)):
            yield Sample(f"jpeg-{mode}-{width}x{height}", jpeg(mode, height, width))
    yield Sample("jpeg-progressive", jpeg(progressive=True))
    yield Sample("jpeg-grey-progressive", jpeg("L", progressive=True))
    yield Sample("jpeg-444", jpeg(subsampling="4:4:4"))
    yield Sample("jpeg-422-restart", jpeg(subsampling="4:2:2", restart_marker_blocks=1))
    yield Sample("jpeg-rgb", jpeg(keep_rgb=True))
    yield Sample("jpeg-arithmetic", arithmetic())
    yield Sample("jpeg-ycck", ycck())
    yield Sample("jpeg-ycck-odd", ycck(9, 31))
    yield Sample("jpeg-cmyk-without-adobe", cmyk_without_adobe())
    yield Sample("jpeg-without-end", jpeg()[:-2])
    yield Sample("jpeg-broken-icc", jpeg(icc_profile=b"no profile"))
    yield Sample("jpeg-trailing", jpeg() + b"\xff\xda garbage")
    yield Sample("mpo", mpo())
    for mode in ("1", "L", "LA", "P", "RGB", "RGBA", "I;16"):
        yield Sample(f"png-{mode}", png(mode))
        yield Sample(f"png-{mode}-1x1", png(mode, 1, 1))
    yield Sample("png-broken-icc", png(icc_profile=b"no profile"))
    yield Sample("png-P-2bit", png("P", bits=2))
    yield Sample("png-P-transparent-0", png("P", transparency=0))
    yield Sample("png-P-alphas", png("P", transparency=bytes(range(0, 160, 10))))
    yield Sample("png-L-transparent-0", png("L", transparency=0))
    yield Sample("png-1-transparent-0", png("1", transparency=0))
    yield Sample("png-RGB-transparent", png("RGB", transparency=(0, 0, 0)))
    yield Sample("png-I;16-transparent", png("I;16", transparency=5))
    yield Sample("png-late-trns", png_with_late(chunk(b"tRNS", bytes(6))))
    yield Sample("png-16bit-rgb", _png_16(2, 3))
    yield Sample("png-16bit-la", _png_16(4, 2))
    yield Sample("png-16bit-rgba", _png_16(6, 4))
    yield Sample("apng", apng())
    yield Sample("apng-rgba", apng(mode="RGBA"))
    yield Sample("apng-one-frame", apng(1))
    yield Sample("apng-default-image", _apng_with_default_image())
    yield Sample("webp-lossy", encode(picture("RGB", 16, 24), "WEBP"))
    yield Sample("webp-lossy-alpha", encode(picture("RGBA", 16, 24), "WEBP"))
    yield Sample("webp-lossless", encode(picture("RGB", 16, 24), "WEBP", lossless=True))
    yield Sample("webp-lossless-alpha", encode(picture("RGBA", 9, 5), "WEBP", lossless=True))
    for mode in ("RGB", "RGBA"):
        yield Sample(f"webp-animated-{mode}", animated_webp(mode))
    yield Sample("gif", gif())
    yield Sample("gif-grey", encode(picture("L", 16, 24), "GIF"))
    yield Sample("gif-transparent-0", gif(transparency=0))
    yield Sample("gif-interlaced-comment", gif(comment=b"a" * 600))
    yield Sample("gif-animated", gif(3))
    yield Sample("gif-beyond-screen", gif_beyond_screen())
    yield from _bmp_samples()
    yield from _tiff_samples()
    for mode in ("RGB", "RGBA", "L"):
        yield Sample(f"avif-{mode}", avif(mode))
        yield Sample(f"avis-{mode}", avis(mode))
    yield Sample("avif-1x1", avif("RGB", 1, 1))


def animated_webp(mode: str = "RGB", frames: int = 3, **options: Any) -> bytes:
    first, *others = (picture(mode, 16, 24, seed) for seed in range(frames))
    return encode(first, "WEBP", save_all=True, append_images=others, **options)


def _png_16(kind: int, channels: int) -> bytes:
    """A 16-bit PNG of a colour type that Pillow does not write."""
    random = np.random.default_rng(kind)
    row = 1 + 6 * channels * 2
    rows = random.integers(0, 256, (5, row), dtype=np.uint8)
    rows[:, 0] = 0  # filter: none
    header = struct.pack(">LLBBBBB", 6, 5, 16, kind, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", header)
        + chunk(b"IDAT", zlib.compress(rows.tobytes()))
        + chunk(b"IEND", b"")
    )


def _apng_with_default_image() -> bytes:
    first, second = picture("RGB", 16, 24), picture("RGB", 16, 24, seed=1)
    return encode(first, "PNG", save_all=True, append_images=[second], default_image=True)


def _bmp_samples() -> Iterator[Sample]:
    for bits in (1, 4, 8, 16, 24, 32):
        yield Sample(f"bmp-{bits}", bmp(bits))
        yield Sample(f"bmp-{bits}-v5", bmp(bits, 124))
        yield Sample(f"bmp-{bits}-top-down", bmp(bits, top_down=1))
    for bits in (1, 4, 8, 24):
        yield Sample(f"bmp-{bits}-os2", bmp(bits, 12))
    for header_bytes in (52, 56, 64, 108):
        yield Sample(f"bmp-24-header-{header_bytes}", bmp(24, header_bytes))
    masks = (0xFF0000, 0xFF00, 0xFF, 0xFF000000)
    yield Sample("bmp-32-masks", bmp(32, 56, compression=3, masks=masks))
    yield Sample("bmp-32-masks-v1", bmp(32, 40, compression=3, masks=masks[:3]))
    yield Sample("bmp-32-masks-zero", bmp(32, 40, compression=3, masks=(0, 0, 0)))
    yield Sample("bmp-16-masks", bmp(16, 40, compression=3, masks=(0xF800, 0x7E0, 0x1F)))
    runs = bytes((10, 3, 0, 0)) * 5 + bytes((0, 4, 9, 8, 7, 6, 6, 1, 0, 1))
    yield Sample("bmp-rle8", bmp(8, compression=1, body=runs))
    yield Sample("bmp-rle4", bmp(4, compression=2, body=bytes((10, 0x21, 0, 0)) * 6))


def _tiff_samples() -> Iterator[Sample]:
    for mode in ("1", "L", "LA", "P", "PA", "RGB", "RGBA", "CMYK", "YCbCr", "LAB", "I;16"):
        image = picture("RGBA" if mode == "PA" else "RGB" if mode == "LAB" else mode, 16, 24)
        if mode == "PA":
            image = image.convert("P").convert("PA")
        if mode == "LAB":
            image = Image.fromarray(np.asarray(image)).convert("LAB")
        yield Sample(f"tiff-{mode}", encode(image, "TIFF"))
        yield Sample(f"tiff-{mode}-big", encode(image, "TIFF", big_tiff=True))
        if mode not in ("1", "LAB", "YCbCr", "PA"):
            yield Sample(f"tiff-{mode}-lzw", encode(image, "TIFF", compression="tiff_lzw"))
    for compression in ("jpeg", "tiff_adobe_deflate", "packbits", "lzma", "zstd"):
        image = picture("RGB", 16, 24)
        yield Sample(f"tiff-{compression}", encode(image, "TIFF", compression=compression))
    for compression in ("group3", "group4"):
        image = picture("1", 16, 24)
        yield Sample(f"tiff-{compression}", encode(image, "TIFF", compression=compression))
    yield Sample("tiff-pages", multi_page_tiff())
    yield Sample("tiff-tiled", tiled_tiff())
    yield Sample("tiff-tiled-deflate", tiled_tiff(compressed=1))
    strips = [grey_bytes(4, 24, seed) for seed in range(4)]
    yield Sample("tiff-strips", tiff(grey_tags(16, 24, t278=(3, [4])), strips))
    for name, options in (
        ("big-endian", {"order": ">"}),
        ("swapped-magic", {"order": ">", "mark": b"MM\x2a\x00"}),
        ("swapped-magic-little", {"mark": b"II\x00\x2a"}),
        ("bigtiff", {"big": 1}),
    ):
        yield Sample(f"tiff-{name}", tiff(grey_tags(16, 24), [grey_bytes(16, 24)], **options))
    wide = np.arange(384, dtype=">u2").tobytes()
    yield Sample("tiff-16-big-endian", tiff(grey_tags(16, 24, 16), [wide], order=">"))
    yield Sample("tiff-12", tiff(grey_tags(16, 24, 12), [grey_bytes(16, 36)]))
    two = grey_tags(16, 24, t258=(3, [8, 8]), t277=(3, [2]), t338=(3, [1]))
    planes = grey_tags(8, 24, t258=(3, [8, 8, 8]), t277=(3, [3]), t262=(3, [2]), t284=(3, [2]))
    yield Sample("tiff-planes", tiff(planes, [grey_bytes(8, 24, seed) for seed in range(3)]))
    del two


def oriented_samples(value: int) -> Iterator[Sample]:
    """One file of each container that can carry the orientation `value`."""
    exif = exif_of(value)
    block = exif_block(value)
    yield Sample("jpeg-exif", jpeg(exif=exif))
    yield Sample("jpeg-exif-big-endian", jpeg_with_exif(exif_block(value, order=">")))
    yield Sample("jpeg-exif-long", jpeg_with_exif(exif_block(value, kind=4)))
    yield Sample("jpeg-cmyk-exif", jpeg("CMYK", exif=exif))
    yield Sample("jpeg-xmp", jpeg_with_xmp(value))
    yield Sample(
        "mpo-exif",
        encode(
            picture("RGB", 16, 24),
            "MPO",
            save_all=True,
            append_images=[picture("RGB", 16, 24, 1)],
            exif=exif,
        ),
    )
    for mode in ("1", "L", "P", "RGBA", "I;16"):
        yield Sample(f"png-{mode}-exif", png(mode, exif=exif))
    yield Sample("png-exif-late", png_with_late(chunk(b"eXIf", block)))
    yield Sample("png-raw-profile", png_with(chunk(b"tEXt", raw_profile(block))))
    squeezed = b"Raw profile type exif\0\0" + zlib.compress(raw_profile(block).partition(b"\0")[2])
    yield Sample("png-raw-profile-late", png_with_late(chunk(b"zTXt", squeezed)))
    yield Sample("png-exif-text", png_with(chunk(b"tEXt", b"exif\0" + block)))
    yield Sample("png-xmp", png_with(itxt(b"XML:com.adobe.xmp", xmp_packet(value))))
    yield Sample("apng-exif", png_with(chunk(b"eXIf", block), data=apng()))
    yield Sample("apng-exif-after-frames", png_with_late(chunk(b"eXIf", block), data=apng()))
    for name, options in (("lossy", {}), ("lossless", {"lossless": True})):
        image = picture("RGBA", 16, 24)
        yield Sample(f"webp-{name}-exif", encode(image, "WEBP", exif=exif, **options))
        yield Sample(f"webp-{name}-xmp", encode(image, "WEBP", xmp=xmp_packet(value), **options))
    yield Sample("webp-animated-exif", animated_webp(exif=exif))
    for compression in ("raw", "tiff_lzw", "jpeg", "tiff_adobe_deflate"):
        image = picture("RGB", 16, 24)
        yield Sample(
            f"tiff-{compression}", encode(image, "TIFF", compression=compression, exif=exif)
        )
    yield Sample("tiff-RGBA", encode(picture("RGBA", 16, 24), "TIFF", exif=exif))
    yield Sample("tiff-I;16", encode(picture("I;16", 16, 24), "TIFF", exif=exif))
    yield Sample("tiff-big", encode(picture("RGB", 16, 24), "TIFF", exif=exif, big_tiff=True))
    yield Sample("tiff-tiled", tiled_tiff(value))
    yield Sample("tiff-tiled-deflate", tiled_tiff(value, compressed=1))
    packet = xmp_packet(value)
    xmp = grey_tags(16, 24, t700=(1, list(packet)))
    yield Sample("tiff-xmp", tiff(xmp, [grey_bytes(16, 24)]))
    yield Sample(
        "tiff-rational", tiff(grey_tags(16, 24, t274=(5, [value, 1])), [grey_bytes(16, 24)])
    )
    yield Sample("avif-exif", avif(exif=exif))
    yield Sample("avif-xmp", avif(xmp=packet))
    yield Sample(
        "avis-exif",
        encode(
            picture("RGB", 16, 24),
            "AVIF",
            save_all=True,
            speed=10,
            append_images=[picture("RGB", 16, 24, 1)],
            exif=exif,
            max_threads=1,
        ),
    )


def png_info(**texts: str) -> PngImagePlugin.PngInfo:
    info = PngImagePlugin.PngInfo()
    for key, value in texts.items():
        info.add_text(key, value)
    return info


def opened(data: bytes) -> Image.Image:
    return Image.open(io.BytesIO(data))
