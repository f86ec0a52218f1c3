"""The frame size that AV1 data announces in its sequence header.

In: the coded bytes of one picture. Out: the largest size that its sequence
headers allow. An AVIF's `ispe` property is what a reader is told; this is what
the decoder allocates, and libavif scales one to the other without a word, so a
16x16 header may stand before 268 megapixels. (AV1 specification, sections 5.3
to 5.5; nothing of the frames is parsed.)
"""

from service.codec.facts import checked_size
from service.errors import CorruptImage
from service.types import Size

MAX_UNITS = 256
"""Units (OBUs) of one picture; encoders write three to about a hundred."""

_SEQUENCE_HEADER = 1


def sequence_size(data: memoryview) -> Size | None:
    """The largest size of the sequence headers in `data`; None where none is whole.

    Raises `CorruptImage` for more than `MAX_UNITS` units.
    """
    largest: Size | None = None
    at = 0
    for _ in range(MAX_UNITS):
        if at >= len(data):
            return largest
        kind, body, end = _unit(data, at)
        if kind == _SEQUENCE_HEADER:
            size = _sequence_header(_Bits(bytes(data[body:end])))
            if largest is None or size.pixels > largest.pixels:
                largest = size
        at = end
    raise CorruptImage(f"a picture has more than {MAX_UNITS} units")


def _unit(data: memoryview, at: int) -> tuple[int, int, int]:
    """A unit's type and the range of its body; without a length it goes to the end."""
    header = data[at]
    body = at + 1 + (header >> 2 & 1)  # an extension byte
    if not header & 2:
        return header >> 3 & 15, body, len(data)
    length = 0
    for shift in range(0, 56, 7):  # leb128
        byte = data[body] if body < len(data) else 0
        body += 1
        length |= (byte & 0x7F) << shift
        if not byte & 0x80:
            break
    return header >> 3 & 15, body, body + length


class _Bits:
    """Bits from the front of some bytes; zeros behind their end."""

    def __init__(self, data: bytes) -> None:
        self._data = data[:256]  # the fields below end long before
        self._at = 0

    def read(self, count: int) -> int:
        value = 0
        for at in range(self._at, self._at + count):
            byte = self._data[at >> 3] if at >> 3 < len(self._data) else 0
            value = value << 1 | (byte >> (7 - (at & 7)) & 1)
        self._at += count
        return value


def _sequence_header(bits: _Bits) -> Size:
    """Section 5.5.1, up to the largest frame size."""
    bits.read(3 + 1)  # profile, still picture
    if bits.read(1):  # reduced header
        bits.read(5)  # level
    else:
        _skip_operating_points(bits)
    width_bits, height_bits = bits.read(4) + 1, bits.read(4) + 1
    width, height = bits.read(width_bits) + 1, bits.read(height_bits) + 1
    return checked_size(height, width)


def _skip_operating_points(bits: _Bits) -> None:
    delay_bits = 0
    if bits.read(1):  # timing information
        bits.read(32 + 32)
        if bits.read(1):  # equal picture interval
            _skip_uvlc(bits)
        if bits.read(1):  # decoder model
            delay_bits = bits.read(5) + 1
            bits.read(32 + 5 + 5)
    initial_delay = bits.read(1)
    for _ in range(bits.read(5) + 1):
        bits.read(12)
        if bits.read(5) > 7:  # level
            bits.read(1)  # tier
        if delay_bits and bits.read(1):
            bits.read(delay_bits * 2 + 1)
        if initial_delay and bits.read(1):
            bits.read(4)


def _skip_uvlc(bits: _Bits) -> None:
    zeros = 0
    while zeros < 32 and not bits.read(1):
        zeros += 1
    if zeros < 32:
        bits.read(zeros)
