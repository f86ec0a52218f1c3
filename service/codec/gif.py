"""GIF headers.

In: a GIF's bytes. Out: `Facts`. Blocks are walked by their length bytes (GIF89a
sections 15 to 26) to the first picture, over its data, and on to whatever tells
whether a second one follows. Nothing is decompressed.
"""

import re
from dataclasses import dataclass

from service.codec.facts import Fact, Facts, checked_size
from service.codec.reader import Reader
from service.errors import CorruptImage, TruncatedImage
from service.types import Colour, Format, Size

MAX_SUB_BLOCKS = 16_384
"""Data blocks before the first picture, which Pillow reads in Python, or the second."""

MAX_DATA_BLOCKS = 1 << 20
"""Data blocks of the first picture: 255 MB as encoders write them."""

MAX_JUNK_BYTES = 65_536
"""Bytes between blocks. Pillow reads them one at a time."""

_EXTENSION, _PICTURE, _TRAILER = 0x21, 0x2C, 0x3B
_GRAPHIC_CONTROL = 0xF9
_BLOCK_START = re.compile(rb"[!,;]")


@dataclass(slots=True)
class _Cursor:
    """A place in the blocks, and what is left of the bounds on them."""

    at: int
    sub_blocks: int = MAX_SUB_BLOCKS
    junk_bytes: int = MAX_JUNK_BYTES


def parse(reader: Reader) -> Facts:
    """The facts of a GIF; raises `TruncatedImage` and `CorruptImage`.

    The size is the logical screen, grown to hold the first picture where that
    reaches beyond it, as Pillow grows it.
    """
    cursor = _Cursor(13 + _table_bytes(reader.u8(10)))
    transparent = _walk_to_picture(reader, cursor)
    size = _grown(reader, cursor.at)
    reader.on_size(size)
    more_frames = _more_frames(reader, cursor)
    return Facts(
        Format.GIF,
        size,
        8,
        Colour.PALETTE,
        alpha=transparent,
        more_frames=more_frames or False,
        undecided={Fact.MORE_FRAMES} if more_frames is None else set(),
    )


def _table_bytes(flags: int) -> int:
    """The length of a colour table with these flags."""
    return 3 << (flags & 7) + 1 if flags & 0x80 else 0


def _walk_to_picture(reader: Reader, cursor: _Cursor) -> bool:
    """Move behind the first picture separator; whether a colour was made transparent."""
    transparent = False
    while True:
        kind = _next_block(reader, cursor)
        if kind == _PICTURE:
            return transparent
        if kind == _TRAILER:
            raise CorruptImage("there is no picture before the trailer")
        if reader.u8(cursor.at) == _GRAPHIC_CONTROL:
            length = reader.u8(cursor.at + 1)
            if 0 < length < 4:
                raise CorruptImage("a graphic control block is too short")
            transparent |= length > 0 and reader.u8(cursor.at + 2) & 1 != 0
        cursor.at += 1
        _skip_sub_blocks(reader, cursor)


def _next_block(reader: Reader, cursor: _Cursor) -> int:
    """The kind of the next block; the cursor moves behind its first byte."""
    found = _BLOCK_START.search(reader.data, cursor.at, cursor.at + cursor.junk_bytes + 1)
    if found is None:
        if cursor.at + cursor.junk_bytes < len(reader):
            raise CorruptImage("there is too much data between the blocks")
        raise TruncatedImage("the file ends before its first picture")
    cursor.junk_bytes -= found.start() - cursor.at
    cursor.at = found.end()
    return found[0][0]


def _skip_sub_blocks(reader: Reader, cursor: _Cursor) -> None:
    """Move behind the data blocks at the cursor and their terminator."""
    data, at = reader.data, cursor.at
    try:
        for left in range(cursor.sub_blocks, 0, -1):
            length = data[at]
            at += length + 1
            if not length:
                cursor.at, cursor.sub_blocks = at, left - 1
                return
    except IndexError:
        raise TruncatedImage("the file ends inside its data blocks") from None
    raise CorruptImage("there are too many data blocks")


def _grown(reader: Reader, at: int) -> Size:
    """The logical screen, or more where the picture at `at` reaches beyond it."""
    screen_width, screen_height = reader.u16(6), reader.u16(8)
    left, top, width, height = (reader.u16(at + field) for field in (0, 2, 4, 6))
    return checked_size(max(screen_height, top + height), max(screen_width, left + width))


def _more_frames(reader: Reader, cursor: _Cursor) -> bool | None:
    """Whether a second picture follows the one at the cursor; None where the bytes end."""
    try:
        cursor.at += 9 + _table_bytes(reader.u8(cursor.at + 8)) + 1
        cursor.sub_blocks = MAX_DATA_BLOCKS
        _skip_sub_blocks(reader, cursor)
        cursor.sub_blocks = MAX_SUB_BLOCKS
        if reader.u8(cursor.at) == _TRAILER:
            return False
        while True:
            kind = _next_block(reader, cursor)
            if kind != _EXTENSION:
                return kind == _PICTURE
            cursor.at += 1
            _skip_sub_blocks(reader, cursor)
    except TruncatedImage:
        return None
    except CorruptImage:
        return False  # what follows the first picture never makes it fail
