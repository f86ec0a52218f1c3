"""What answers are held against under load equals the reference vectors itself."""

import json
from pathlib import Path

import pytest

from traffic import reference

GOLDEN = Path(__file__).parents[1] / "golden"
KNOWN = json.loads((GOLDEN / "kimi/patches.json").read_text("utf-8"))
PICTURES = ("1280x720.jpg", "2048x2048.jpg", "4600x700.jpg", "exif6.jpg", "rgba.png", "photo.webp")


@pytest.mark.parametrize("name", PICTURES)
def test_a_picture_s_digests_are_those_of_the_reference_vectors(name: str) -> None:
    known = KNOWN["kimi_k25"][name]
    found = reference.answer([(GOLDEN / "images" / name).read_bytes()])
    assert [found.height, found.width] == known["size_hw"]
    assert found.tokens == known["tokens"]
    for dtype in reference.DTYPES:
        assert found.digests[dtype] == known["sha256"][dtype], dtype


@pytest.mark.parametrize("name", KNOWN["kimi_k25_video"])
def test_a_chunk_s_frames_follow_each_other(name: str) -> None:
    known = KNOWN["kimi_k25_video"][name]
    found = reference.answer([(GOLDEN / "images" / each).read_bytes() for each in known["frames"]])
    assert found.tokens == known["tokens"]
    assert found.digests["uint8"] == known["sha256_uint8"]
