"""A cursor over MessagePack that is told what comes next.

In come bytes and what the format says must stand there, out come plain values.
It reads no value that was not asked for: no container is ever built, no length
in the bytes is believed before it has been compared with a bound, and nothing
is allocated but the short texts and numbers themselves. Type bytes are those of
the MessagePack specification.
"""

import math
import struct

from patchmill_client.errors import LyingAnswer

MAX_TEXT_BYTES = 256
"""Longer than any name, digest or note of the format."""
MAX_INTEGER = 2**32 - 1
"""No count or length in an answer exceeds its data, whose length has 32 bits."""

_UNSIGNED = {0xCC: 1, 0xCD: 2, 0xCE: 4, 0xCF: 8}
_REALS = {0xCA: struct.Struct(">f"), 0xCB: struct.Struct(">d")}


class MoreNeeded(Exception):
    """The bytes end inside the value that was asked for: no fault, the rest may still come."""


class Cursor:
    """Reads `data` from its start; raises MoreNeeded at its end, LyingAnswer for a wrong value."""

    def __init__(self, data: memoryview) -> None:
        self._data = data
        self.position = 0

    def map_of(self, pairs: int, field: str) -> None:
        """The start of a map of exactly so many pairs (at most 15)."""
        if self._byte() != 0x80 | pairs:
            raise LyingAnswer(field, f"not a map of {pairs} pairs")

    def map_up_to(self, most: int, field: str) -> int:
        """The start of a map of at most so many pairs; how many."""
        return self._container(0x80, 0xDE, most, field)

    def array_of(self, length: int, field: str) -> None:
        """The start of a list of exactly so many elements."""
        if self.array_up_to(length, field) != length:
            raise LyingAnswer(field, f"not a list of {length}")

    def array_up_to(self, most: int, field: str) -> int:
        """The start of a list of at most so many elements; how many."""
        return self._container(0x90, 0xDC, most, field)

    def key(self, name: str, field: str) -> None:
        """Exactly this key, in its shortest form (at most 31 characters)."""
        wanted = bytes([0xA0 | len(name)]) + name.encode()
        found = self._data[self.position : self.position + len(wanted)]
        if found != wanted[: len(found)]:
            raise LyingAnswer(field, f"the key {name} does not stand where it must")
        self._take(len(wanted))

    def text(self, field: str) -> str:
        """A short text."""
        kind = self._byte()
        if 0xA0 <= kind <= 0xBF:
            length = kind & 0x1F
        elif kind == 0xD9:
            length = self._byte()
        elif kind == 0xDA:
            length = int.from_bytes(self._take(2), "big")
        else:
            raise LyingAnswer(field, "not a text")
        if length > MAX_TEXT_BYTES:
            raise LyingAnswer(field, f"a text of {length} bytes")
        try:
            return str(self._take(length), "utf-8")
        except UnicodeDecodeError as error:
            raise LyingAnswer(field, "not UTF-8") from error

    def integer(self, field: str, least: int = 0, most: int = MAX_INTEGER) -> int:
        """An integer in a range."""
        value = self._integer(self._byte(), field)
        if not least <= value <= most:
            raise LyingAnswer(field, f"{value} is not in {least}..{most}")
        return value

    def real(self, field: str) -> float:
        """A finite number; one that is written as an integer counts."""
        kind = self._byte()
        layout = _REALS.get(kind)
        if layout is None:
            return float(self._integer(kind, field))
        value: float = layout.unpack(self._take(layout.size))[0]
        if not math.isfinite(value):
            raise LyingAnswer(field, f"{value} is not a finite number")
        return value

    def flag(self, field: str) -> bool:
        """True or false."""
        kind = self._byte()
        if kind not in (0xC2, 0xC3):
            raise LyingAnswer(field, "neither true nor false")
        return kind == 0xC3

    def filler(self, most: int, field: str) -> None:
        """Binary data of zeros, with an 8-bit length."""
        if self._byte() != 0xC4:
            raise LyingAnswer(field, "not binary data with an 8-bit length")
        length = self._byte()
        if length > most:
            raise LyingAnswer(field, f"{length} bytes of filler, at most {most} are needed")
        if any(self._take(length)):
            raise LyingAnswer(field, "the filler is not zeros")

    def data_length(self, field: str) -> int:
        """The start of binary data with a 32-bit length: the length. The data is not touched."""
        if self._byte() != 0xC6:
            raise LyingAnswer(field, "not binary data with a 32-bit length")
        return int.from_bytes(self._take(4), "big")

    def _integer(self, kind: int, field: str) -> int:
        if kind <= 0x7F:
            return kind
        size = _UNSIGNED.get(kind)
        if size is None:
            raise LyingAnswer(field, "not a number of the kind that stands here")
        return int.from_bytes(self._take(size), "big")

    def _container(self, short: int, long: int, most: int, field: str) -> int:
        kind = self._byte()
        if kind & 0xF0 == short:
            length = kind & 0x0F
        elif kind in (long, long + 1):
            length = int.from_bytes(self._take(2 if kind == long else 4), "big")
        else:
            raise LyingAnswer(field, "not a container of the kind that stands here")
        if length > most:
            raise LyingAnswer(field, f"{length} entries, at most {most} are possible")
        return length

    def _byte(self) -> int:
        return self._take(1)[0]

    def _take(self, length: int) -> memoryview:
        end = self.position + length
        if end > len(self._data):
            raise MoreNeeded
        taken = self._data[self.position : end]
        self.position = end
        return taken
