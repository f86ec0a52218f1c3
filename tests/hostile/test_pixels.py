"""Odd but sound files through real HTTP: exactly the pixels of the reference, or named as clipped.

A file's answer is held against that of a plain PNG of the oracle's pixels: the
same pixels give the same elements, whatever the container, mode or metadata.
"""

import io
from functools import cache

import numpy as np
import pytest
from PIL import Image

from tests.codec import makers
from tests.codec.test_hostile import IGNORED
from tests.service.running import Running, unpack

CUT = "jpeg-without-end"
"""Which Pillow refuses where it is as short as this one."""
STILL = [sample for sample in makers.still_samples() if sample.name != CUT]
ORIENTED = [
    makers.Sample(f"{value} {sample.name}", sample.data)
    for value in range(1, 9)
    for sample in makers.oriented_samples(value)
]
BACKGROUNDS = {"white": (255, 255, 255), "#000000": (0, 0, 0), "#ff0080": (255, 0, 128)}
MORE_FRAMES = ("gif-animated", "apng", "webp-animated-RGB", "tiff-pages", "mpo", "avis-RGB")


@cache
def plain(data: bytes, background: tuple[int, int, int]) -> bytes:
    """The oracle's pixels as a PNG without anything odd."""
    out = io.BytesIO()
    Image.fromarray(makers.oracle(data, background)).save(out, "PNG")
    return out.getvalue()


def elements(service: Running, data: bytes, background: str = "white") -> bytes:
    parameters = {"dtype": "uint8", "background": background}
    answer = service.post(data, params=parameters)
    assert answer.status_code == 200, answer.text
    return unpack(answer.content)[1]


@pytest.mark.parametrize("sample", [*STILL, *ORIENTED], ids=lambda each: each.name)
def test_the_pixels_are_those_of_the_reference(service: Running, sample: makers.Sample) -> None:
    wanted = elements(service, plain(sample.data, BACKGROUNDS["white"]))
    assert elements(service, sample.data) == wanted


@pytest.mark.parametrize(("name", "block"), IGNORED, ids=[name for name, _ in IGNORED])
def test_exif_that_makes_no_sense_changes_nothing(
    service: Running, name: str, block: bytes
) -> None:
    picture = makers.picture("RGB", 16, 24)
    webp, with_exif = (
        makers.encode(picture, "WEBP", **options) for options in ({}, {"exif": b"Exif\0\0" + block})
    )
    for odd, same in (
        (makers.jpeg_with_exif(block), makers.jpeg()),
        (makers.png_with(makers.chunk(b"eXIf", block)), makers.png()),
        (makers.png_with_late(makers.chunk(b"eXIf", block)), makers.png()),
        (with_exif, webp),
    ):
        assert elements(service, odd) == elements(service, same), name


@pytest.mark.parametrize("background", BACKGROUNDS)
def test_transparency_is_laid_on_any_background(service: Running, background: str) -> None:
    for sample in STILL:
        if makers.opened(sample.data).has_transparency_data:
            wanted = elements(service, plain(sample.data, BACKGROUNDS[background]))
            assert elements(service, sample.data, background) == wanted, sample.name


def test_what_is_hidden_by_transparency_does_not_shine_through(service: Running) -> None:
    noise = np.random.default_rng(1).integers(0, 256, (16, 24, 4), dtype=np.uint8)
    noise[..., 3] = 0
    hidden = makers.encode(Image.fromarray(noise), "PNG")
    white = makers.encode(Image.new("RGB", (24, 16), (255, 255, 255)), "PNG")
    assert elements(service, hidden) == elements(service, white)


@pytest.mark.parametrize("sample", STILL, ids=lambda each: each.name)
def test_an_item_tells_more_frames_only_of_files_that_have_them(
    service: Running, sample: makers.Sample
) -> None:
    [item] = unpack(service.post(sample.data, params={"dtype": "uint8"}).content)[0]["items"]
    frames = getattr(makers.opened(sample.data), "n_frames", 1)
    assert item["source"]["more_frames"] is (frames > 1)
    assert frames > 1 or sample.name not in MORE_FRAMES


def test_clipped_grey_says_so(service: Running) -> None:
    head = unpack(service.post(makers.png("I;16"), params={"dtype": "uint8"}).content)[0]
    assert head["items"][0]["notes"] == ["clipped_16_bit"]


SHAPES = [(1, 1), (5000, 1), (1, 8000), (3, 3), (3, 700), (700, 3), (2, 4)]


@pytest.mark.parametrize(("height", "width"), SHAPES)
@pytest.mark.parametrize("mode", ["RGB", "L", "RGBA", "1"])
def test_the_channel_axis_is_known_in_every_shape(
    service: Running, mode: str, height: int, width: int
) -> None:
    data = makers.png(mode, height, width)
    answer = unpack(service.post(data, params={"dtype": "uint8"}).content)
    source = answer[0]["items"][0]["source"]
    assert (source["height"], source["width"]) == (height, width)
    assert answer[0]["pixel_values"]["shape"][1] == 3
    assert answer[1] == elements(service, plain(data, BACKGROUNDS["white"]))
