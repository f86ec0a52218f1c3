"""Whatever the bytes, only our own faults leave the room."""

import random
from contextlib import suppress
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from service.codec.sniff import sniff, sniff_head
from service.errors import PatchmillError
from service.types import Drop, Format, Rgb, SixteenBit
from tests.codec import makers
from tests.codec.makers import LIMITS, decode

SMALL = replace(LIMITS, max_pixels=1 << 18)
MUTATIONS = 300  # a format; tens of thousands were run by hand
VALUES = (0, 1, 2, 0x2A, 0x2B, 0x7F, 0x80, 0xC0, 0xC2, 0xD8, 0xD9, 0xDA, 0xE1, 0xFE, 0xFF)
WORDS = (b"\xff\xff\xff\xff", b"\0\0\0\0", b"\x7f\xff\xff\xff", b"\0\0\0\1", b"\1\0\0\0")

SEEDS: dict[Format, list[bytes]] = {format_: [] for format_ in Format}
for _sample in (*makers.still_samples(), *makers.oriented_samples(6)):
    SEEDS[sniff(_sample.data, LIMITS).format].append(_sample.data)

MAGICS = [b"", *{files[0][:12] for files in SEEDS.values()}]


def attempt(data: bytes) -> None:
    """Sniff and decode; any exception outside our tree fails the test."""
    with suppress(PatchmillError):
        sniff_head(data)
    with suppress(PatchmillError):
        header = sniff(data, SMALL)
        decode(data, header, Rgb(255, 255, 255), SixteenBit.COMPAT)
        decode(data, header, Drop.DROP, SixteenBit.SCALE)


def mutated(data: bytes, source: random.Random) -> bytes:
    """One to five edits: flips, telling values, cuts, insertions, repeats."""
    out = bytearray(data)
    for _ in range(source.choice((1, 1, 2, 5))):
        at = source.randrange(min(len(out), source.choice((64, 256, 1024, len(out)))))
        edit = source.randrange(6)
        if edit == 0:
            out[at] ^= 1 << source.randrange(8)
        elif edit == 1:
            out[at] = source.choice(VALUES)
        elif edit == 2:
            out[at : at + 4] = source.choice(WORDS)
        elif edit == 3:
            del out[at : at + source.randrange(1, 9)]
        elif edit == 4:
            out[at:at] = out[at : at + source.randrange(1, 64)]
        elif source.random() < 0.3:
            del out[at:]
        if not out:
            break
    return bytes(out)


@pytest.mark.parametrize("format_", Format)
def test_a_mutated_file_raises_nothing_but_our_faults(format_: Format) -> None:
    source = random.Random(format_.value)
    for _ in range(MUTATIONS):
        attempt(mutated(source.choice(SEEDS[format_]), source))


@settings(max_examples=300, deadline=None, derandomize=True)
@given(magic=st.sampled_from(MAGICS), tail=st.binary(max_size=400))
def test_random_bytes_raise_nothing_but_our_faults(magic: bytes, tail: bytes) -> None:
    attempt(magic + tail)
