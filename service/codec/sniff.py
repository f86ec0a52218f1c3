"""What a file says about its picture, before any pixel is decoded.

In: the bytes of a file, or the first of them. Out: a `Header` that vouches for
format, size and limits, or a `Head` with what the bytes so far can tell. It
never decodes pixels, never allocates in proportion to what a header claims and
reads the bytes at most once, whatever they are. The formats' own modules parse;
this one chooses the parser and holds the result against the limits.
"""

from collections.abc import Callable, Sequence

from service.codec import avif, bmp, gif, jpeg, png, tiff, webp
from service.codec.facts import Fact, Facts
from service.codec.magic import HEAD_BYTES, identify
from service.codec.reader import ByteOrder, OnSize, Reader, any_size
from service.errors import SideTooLong, TooManyPixels, TooManyScans, TruncatedImage
from service.types import Buffer, Format, Head, Header, Limits, Size

_PARSERS: dict[Format, tuple[Callable[[Reader], Facts], ByteOrder]] = {
    Format.JPEG: (jpeg.parse, "big"),
    Format.PNG: (png.parse, "big"),
    Format.WEBP: (webp.parse, "little"),
    Format.GIF: (gif.parse, "little"),
    Format.BMP: (bmp.parse, "little"),
    Format.TIFF: (tiff.parse, "little"),  # finds its own byte order
    Format.AVIF: (avif.parse, "big"),
}


def sniff(data: Buffer, limits: Limits) -> Header:
    """The header of a whole file, within `limits`.

    Raises `UnsupportedFormat`, `UnsupportedSampleFormat`, `TruncatedImage`,
    `CorruptImage`, and for the limits, in this order, `SideTooLong`,
    `TooManyPixels`, `TooManyScans`.
    """
    facts = _parse(data, lambda size: check_limits(size, limits))
    _check_size(facts, limits)
    _check_scans(facts, limits)
    return Header(
        format=facts.format,
        stored=facts.stored,
        bits=facts.bits,
        colour=facts.colour,
        orientation=facts.orientation,
        alpha=facts.alpha,
        more_frames=facts.more_frames,
        scans=facts.scans,
    )


def sniff_head(head: Buffer) -> Head:
    """What the first bytes of a file tell; None for what later bytes could change.

    The size is always known: raises `TruncatedImage` where the bytes end before
    it, and else what `sniff` raises of format and structure. Limits are not
    checked. Of a JPEG, `colour` is what the segments so far say.
    """
    facts = _parse(head)
    if Fact.LAYOUT in facts.undecided:
        raise TruncatedImage("the bytes end before the header does")
    return Head(
        format=facts.format,
        stored=facts.stored,
        bits=facts.bits,
        colour=facts.colour,
        orientation=None if Fact.ORIENTATION in facts.undecided else facts.orientation,
        alpha=None if Fact.ALPHA in facts.undecided else facts.alpha,
        more_frames=None if Fact.MORE_FRAMES in facts.undecided else facts.more_frames,
        scans=None if Fact.SCANS in facts.undecided else facts.scans,
    )


def _parse(data: Buffer, on_size: OnSize = any_size) -> Facts:
    view = memoryview(data)
    parse, order = _PARSERS[identify(bytes(view[:HEAD_BYTES]))]
    return parse(Reader(view, order, on_size))


def check_limits(size: Size, limits: Limits) -> None:
    """Raise SideTooLong or TooManyPixels for a picture of this size."""
    _check_areas([size], size.pixels, limits)


def _check_size(facts: Facts, limits: Limits) -> None:
    pixels = max(facts.stored.pixels, sum(area.pixels for area in facts.decoded))
    _check_areas([facts.stored, *facts.decoded], pixels, limits)


def _check_areas(areas: Sequence[Size], pixels: int, limits: Limits) -> None:
    longest = max(area.longest for area in areas)
    if longest > limits.max_side_px:
        raise SideTooLong(
            f"a side of {longest} pixels is longer than {limits.max_side_px}",
            limit=limits.max_side_px,
            actual=longest,
            setting="max_side_px",
        )
    if pixels > limits.max_pixels:
        raise TooManyPixels(
            f"the picture has {pixels} pixels, more than {limits.max_pixels}",
            limit=limits.max_pixels,
            actual=pixels,
            setting="max_pixels",
        )


def _check_scans(facts: Facts, limits: Limits) -> None:
    """A single scan costs its pixels alone, which are checked already."""
    if facts.scans > limits.max_scans:
        raise TooManyScans(
            f"the picture has {facts.scans} scans, more than {limits.max_scans}",
            limit=limits.max_scans,
            actual=facts.scans,
            setting="max_scans",
        )
    scan_pixels = facts.scans * facts.stored.pixels
    if facts.scans > 1 and scan_pixels > limits.max_scan_pixels:
        raise TooManyScans(
            f"{facts.scans} scans of {facts.stored.pixels} pixels are more work than allowed",
            limit=limits.max_scan_pixels,
            actual=scan_pixels,
            setting="max_scan_pixels",
        )
