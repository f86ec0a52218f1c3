"""All headers of a request: what its files say, before any pixel is decoded.

Items go in, one tuple of headers an item comes out; each header is within the
limits of a picture (`sniff`), and all of them together within the limit of a
request.
"""

from collections.abc import Sequence

from service.codec.sniff import check_limits, sniff, sniff_head
from service.errors import EmptyItem, FramesDiffer, TooManyPixels, TruncatedImage, at_item
from service.types import Buffer, Head, Header, Item, Limits


def inspect(items: Sequence[Item], limits: Limits) -> list[tuple[Header, ...]]:
    """Sniff every frame of every item, in order.

    Raises what `sniff` raises, EmptyItem, FramesDiffer (a chunk's frames share
    one grid, so they share one size) and TooManyPixels, with the item at fault.
    """
    headers: list[tuple[Header, ...]] = []
    pixels = 0
    for index, item in enumerate(items):
        with at_item(index):
            found = tuple(_sniffed(frame, limits) for frame in item.frames)
            _check_frames_agree(found)
            pixels += sum(header.stored.pixels for header in found)
            check_request_pixels(pixels, limits)
        headers.append(found)
    return headers


def inspect_heads(items: Sequence[Item], limits: Limits) -> list[tuple[Head | None, ...]]:
    """The same of the first bytes of every frame; None where they end before the size.

    Raises as `inspect`, for what is certain whatever follows.
    """
    heads: list[tuple[Head | None, ...]] = []
    pixels = 0
    for index, item in enumerate(items):
        with at_item(index):
            found = tuple(_sniffed_head(frame, limits) for frame in item.frames)
            pixels += sum(head.stored.pixels for head in found if head)
            check_request_pixels(pixels, limits)
        heads.append(found)
    return heads


def _sniffed(frame: Buffer, limits: Limits) -> Header:
    _check_bytes(frame)
    return sniff(frame, limits)


def _sniffed_head(frame: Buffer, limits: Limits) -> Head | None:
    _check_bytes(frame)
    try:
        head = sniff_head(frame)
    except TruncatedImage:
        return None
    check_limits(head.stored, limits)
    return head


def _check_bytes(frame: Buffer) -> None:
    if not len(frame):
        raise EmptyItem("the item holds no bytes")


def _check_frames_agree(headers: Sequence[Header]) -> None:
    for number, header in enumerate(headers):
        if header.size != headers[0].size:
            raise FramesDiffer(
                f"frame {number} is {header.size}, frame 0 is {headers[0].size} (width x height)"
            )


def check_request_pixels(pixels: int, limits: Limits) -> None:
    """Raise TooManyPixels for what the items so far hold together."""
    if pixels > limits.max_request_pixels:
        raise TooManyPixels(
            f"the items up to this one hold {pixels} pixels together, "
            f"a request may hold {limits.max_request_pixels}",
            limit=limits.max_request_pixels,
            actual=pixels,
            setting="max_request_pixels",
        )
