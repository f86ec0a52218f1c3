"""What one format's parser hands to `sniff`: the facts, and what decoding may cost.

A parser walks the bytes once and stops where they end. Its facts are those of
the bytes at hand taken as a whole file; `undecided` names the ones that bytes
behind them could still change.
"""

from collections.abc import Set
from dataclasses import dataclass, field
from enum import Enum, auto

from service.errors import CorruptImage
from service.types import Colour, Format, Size


class Fact(Enum):
    """A fact that may wait for later bytes."""

    LAYOUT = auto()  # size, colour, bits: nothing can be said without them
    ORIENTATION = auto()
    ALPHA = auto()
    MORE_FRAMES = auto()
    SCANS = auto()


@dataclass(frozen=True, slots=True)
class Facts:
    """The facts of a `Header`, and `decoded`: areas that decoding allocates to make it.

    They are named where they may be larger than the picture: tiles that reach
    beyond it, coded frames that are scaled to it.
    """

    format: Format
    stored: Size
    bits: int
    colour: Colour
    orientation: int = 1
    alpha: bool = False
    more_frames: bool = False
    scans: int = 1
    decoded: tuple[Size, ...] = ()
    undecided: Set[Fact] = field(default_factory=frozenset)


MAX_METADATA_BYTES = 4 << 20
"""What is not pixels. Pillow holds text as strings, up to 4 bytes a character and several at a
time: 60 MB of it took 720 MB, which no budget counts."""


def checked_metadata(length_bytes: int) -> int:
    """As many bytes; raises `CorruptImage` for more than a picture's metadata may have."""
    if length_bytes > MAX_METADATA_BYTES:
        raise CorruptImage(f"there are more than {MAX_METADATA_BYTES} bytes of metadata")
    return length_bytes


def checked_size(height: int, width: int) -> Size:
    """A size with pixels in it; raises `CorruptImage` for a zero dimension."""
    if height <= 0 or width <= 0:
        raise CorruptImage("the header gives a height or width of zero")
    return Size(height, width)
