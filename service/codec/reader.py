"""Numbers and slices out of encoded bytes, never from beyond their end.

In: a client's bytes and a byte order. Out: integers and copies of slices. A
reader also carries what is to be told of the picture's size as soon as that is
known, before the rest is looked at. A read past the end raises `TruncatedImage`,
so a parser that lets it through says the right thing and one that catches it
knows how far the bytes reach.
"""

from collections.abc import Callable
from typing import Literal

from service.errors import TruncatedImage
from service.types import Buffer, Size

ByteOrder = Literal["big", "little"]
OnSize = Callable[[Size], None]
"""Raises what is wrong with a size, and so ends the parsing."""


def any_size(_: Size) -> None:
    """Takes every size."""


class Reader:
    """Bounds-checked reads at offsets of one buffer."""

    __slots__ = ("data", "on_size", "order")

    def __init__(self, data: Buffer, order: ByteOrder, on_size: OnSize = any_size) -> None:
        self.on_size = on_size
        self.data = memoryview(data)
        self.order = order

    def __len__(self) -> int:
        return len(self.data)

    def view(self, offset: int, count: int) -> memoryview:
        """`count` bytes at `offset`, without a copy."""
        if offset < 0 or count < 0 or offset + count > len(self.data):
            raise TruncatedImage("the file ends inside its header")
        return self.data[offset : offset + count]

    def take(self, offset: int, count: int) -> bytes:
        """A copy of `count` bytes at `offset`."""
        return bytes(self.view(offset, count))

    def starts(self, offset: int, prefix: bytes) -> bool:
        """Whether `prefix` stands at `offset`; False where the bytes end first."""
        return self.data[offset : offset + len(prefix)] == prefix

    def u8(self, offset: int) -> int:
        return self.view(offset, 1)[0]

    def u16(self, offset: int) -> int:
        return int.from_bytes(self.view(offset, 2), self.order)

    def u24(self, offset: int) -> int:
        return int.from_bytes(self.view(offset, 3), self.order)

    def u32(self, offset: int) -> int:
        return int.from_bytes(self.view(offset, 4), self.order)

    def u64(self, offset: int) -> int:
        return int.from_bytes(self.view(offset, 8), self.order)
