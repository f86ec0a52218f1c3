"""The engine's own hashes, of every reference picture in each of the two forms."""

import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from service.buffers import Buffers
from service.codec.decode import decode
from service.codec.sniff import sniff
from service.types import WHITE, Buffer, Pixels, SixteenBit
from service.wire.vllm_hash import BAND_ROWS, of_chunk, of_image
from tests.codec.makers import LIMITS
from tests.golden_data import GOLDEN, IMAGES

GIVEN: dict[str, Any] = json.loads((GOLDEN / "vllm" / "hashes.json").read_text())
FORMS = {"image": of_image, "vision_chunk": of_chunk}
RGB = np.arange(7 * 5 * 3, dtype=np.uint8).reshape(7, 5, 3)


def opened(data: bytes) -> Pixels:
    return decode(data, sniff(data, LIMITS), WHITE, SixteenBit.COMPAT, Buffers(0))


@pytest.mark.parametrize("name", GIVEN["hashes"])
def test_a_picture_has_the_engine_s_hashes(name: str) -> None:
    data = (IMAGES / name).read_bytes()
    pixels = opened(data)
    made = {form: of(GIVEN["model_id"], data, pixels) for form, of in FORMS.items()}
    assert made == GIVEN["hashes"][name]


@pytest.mark.parametrize("of", FORMS.values(), ids=FORMS)
def test_another_model_is_another_hash(of: Callable[[str, Buffer, Pixels], str]) -> None:
    assert of("a", b"file", Pixels(RGB)) != of("b", b"file", Pixels(RGB))


def test_a_chunk_is_known_by_its_pixels_and_an_image_by_its_file() -> None:
    turned = RGB[::-1]
    assert of_chunk("m", b"one", Pixels(RGB)) == of_chunk("m", b"other", Pixels(RGB))
    assert of_chunk("m", b"one", Pixels(RGB)) != of_chunk("m", b"one", Pixels(turned))
    assert of_image("m", b"one", Pixels(RGB)) == of_image("m", b"one", Pixels(turned))
    assert of_image("m", b"one", Pixels(RGB)) != of_image("m", b"other", Pixels(RGB))


def test_the_filler_channel_and_the_bands_change_nothing() -> None:
    tall = np.resize(np.arange(251, dtype=np.uint8), (2 * BAND_ROWS + 1, 5, 3))
    filler = np.full((*tall.shape[:2], 1), 7, np.uint8)
    filled = np.concatenate([tall, filler], axis=2)
    assert of_chunk("m", b"", Pixels(tall)) == of_chunk("m", b"", Pixels(filled))
