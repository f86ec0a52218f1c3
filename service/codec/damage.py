"""Whether a picture that failed to decode was cut off or damaged otherwise.

In: Pillow's exception and the file. Out: a yes or no, asked on failure only. A
container that announces more bytes than there are was cut off; where none does,
Pillow's own words decide.
"""

from service.codec.boxes import boxes
from service.codec.reader import Reader
from service.errors import PatchmillError
from service.types import Buffer, Format

_END_BYTES = 1024  # encoders pad, tools append: an end marker may not be the very end


def ends_early(fault: Exception, data: Buffer, format_: Format) -> bool:
    """Whether the bytes end before the picture does."""
    if isinstance(fault, EOFError) or "truncated" in str(fault).lower():
        return True
    view = memoryview(data)
    tail = bytes(view[-_END_BYTES:])
    if format_ is Format.JPEG:
        return b"\xff\xd9" not in tail
    if format_ is Format.PNG:
        return b"IEND" not in tail
    if format_ is Format.WEBP:
        return int.from_bytes(view[4:8], "little") + 8 > len(view)
    if format_ is Format.AVIF:
        return _boxes_end_early(Reader(view, "big"))
    return False


def _boxes_end_early(reader: Reader) -> bool:
    try:
        return any(box.end > len(reader) for box in boxes(reader, 0, 1 << 63))
    except PatchmillError:
        return True
