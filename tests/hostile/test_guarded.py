"""Native code on damaged input between pages that nobody may touch: a step outside ends the run.

What reads a client's bytes in place is simplejpeg, msgpack's parser and pybase64;
simplejpeg also writes into a buffer of ours. Pillow gets a copy of its own, and the
rest that parses is Python, which has no outside.
"""

import random
from collections.abc import Callable
from contextlib import suppress

import msgpack
import numpy as np
import pybase64
import pytest
from simplejpeg import decode_jpeg

from service.codec.sniff import sniff
from service.errors import PatchmillError
from service.types import Colour
from tests.codec.makers import LIMITS
from tests.codec.test_mutations import SEEDS, Format, mutated
from tests.hostile.fuzz import ITEMS
from tests.kernels.guard import End, guarded

INPUTS = 1500
MAX_PIXELS = 1 << 16
Read = Callable[[memoryview], object]


def placed(data: bytes, end: End) -> memoryview:
    """The bytes against a forbidden page."""
    return memoryview(guarded(np.frombuffer(data, np.uint8), end))


def jpeg(data: memoryview) -> None:
    """As `codec.turbo` asks for it, the pixels guarded as well."""
    header = sniff(data, LIMITS)
    size = header.stored
    if size.pixels > MAX_PIXELS or header.colour in (Colour.CMYK, Colour.YCCK):
        return
    pixels = guarded(np.zeros((size.height, size.width, 4), np.uint8), End.LAST)
    decode_jpeg(data, "RGBX", buffer=pixels, strict=True)


READERS: dict[str, tuple[Read, list[bytes]]] = {
    "jpeg": (jpeg, SEEDS[Format.JPEG]),
    "msgpack": (msgpack.unpackb, [msgpack.packb({"items": ITEMS, "dtype": "uint8"})]),
    "base64": (lambda data: pybase64.b64decode(data, validate=True), [b"YWJj" * 100 + b"YQ=="]),
}


@pytest.mark.parametrize("end", End)
@pytest.mark.parametrize("name", READERS)
def test_no_input_makes_native_code_step_outside(name: str, end: End) -> None:
    read, seeds = READERS[name]
    source = random.Random(name)
    whole = 0
    for number in range(INPUTS):
        seed = seeds[number % len(seeds)]
        data = mutated(seed, source) if number >= len(seeds) else seed
        if data:
            with suppress(PatchmillError, ValueError, msgpack.UnpackException, TypeError):
                read(placed(data, end))
                whole += 1
    assert whole >= 1  # else nothing was read at all
