"""Pixels of sound files: equal to the oracle's, whatever the container."""

import warnings
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from PIL import Image

from service.codec.decode import versions
from service.codec.sniff import sniff
from service.errors import PatchmillError, TruncatedImage
from service.types import Background, Drop, Pixels, Rgb, SixteenBit, Size
from tests.codec import makers
from tests.codec.makers import LIMITS, WHITE, Sample, decode, oracle
from tests.golden_data import GOLDEN

STILLS = [sample for sample in makers.still_samples() if sample.name != "jpeg-without-end"]
TURNED = [
    Sample(f"{sample.name}-{value}", sample.data)
    for value in range(1, 9)
    for sample in makers.oriented_samples(value)
]


def ids(samples: list[Sample]) -> list[str]:
    return [sample.name for sample in samples]


def decoded(
    data: bytes,
    background: Background = WHITE,
    sixteen_bit: SixteenBit = SixteenBit.COMPAT,
) -> Pixels:
    return decode(data, sniff(data, LIMITS), background, sixteen_bit)


@pytest.mark.parametrize("sample", STILLS + TURNED, ids=ids(STILLS + TURNED))
def test_sniffed_size_decoded_size_and_oracle_agree_to_the_pixel(sample: Sample) -> None:
    header = sniff(sample.data, LIMITS)
    pixels = decode(sample.data, header, WHITE, SixteenBit.COMPAT)
    expected = oracle(sample.data)
    assert header.size == pixels.size == Size(*expected.shape[:2])
    assert np.array_equal(pixels.array, expected)
    assert pixels.array.dtype == np.uint8
    assert pixels.array.flags.c_contiguous


@pytest.mark.parametrize("path", sorted((GOLDEN / "images").iterdir()), ids=lambda path: path.name)
def test_golden_pictures_decode_to_the_oracle(path: Path) -> None:
    data = path.read_bytes()
    assert np.array_equal(decoded(data).array, oracle(data))


FORMATS = ["JPEG", "PNG", "WEBP", "TIFF", "GIF", "BMP", "AVIF"]


@settings(max_examples=120, deadline=None, derandomize=True)
@given(
    format_=st.sampled_from(FORMATS),
    mode=st.sampled_from(["RGB", "L", "RGBA"]),
    size=st.builds(Size, st.integers(1, 40), st.integers(1, 40)),
    orientation=st.integers(1, 8),
)
def test_any_size_mode_and_orientation_decodes_upright(
    format_: str, mode: str, size: Size, orientation: int
) -> None:
    image = makers.picture(mode, size.height, size.width)
    if format_ == "JPEG" and mode == "RGBA":
        image = image.convert("CMYK")
    options: dict[str, Any] = {"speed": 10, "max_threads": 1} if format_ == "AVIF" else {}
    if format_ not in ("GIF", "BMP"):
        options["exif"] = makers.exif_of(orientation)
    data = makers.encode(image, format_, **options)
    header = sniff(data, LIMITS)
    assert header.stored == size
    assert header.orientation == (orientation if "exif" in options else 1)
    assert np.array_equal(decoded(data).array, oracle(data))


def test_orientation_turns_a_lossless_picture_as_exif_names_it() -> None:
    """Written out by hand, so that the oracle and we cannot be wrong alike."""
    upright = np.asarray(makers.picture("RGB", 16, 24))
    stored = {
        1: upright,
        2: upright[:, ::-1],
        3: upright[::-1, ::-1],
        4: upright[::-1],
        5: upright.transpose(1, 0, 2),
        6: upright.transpose(1, 0, 2)[::-1],
        7: upright.transpose(1, 0, 2)[::-1, ::-1],
        8: upright.transpose(1, 0, 2)[:, ::-1],
    }
    for value, array in stored.items():
        image = Image.fromarray(np.ascontiguousarray(array))
        data = makers.encode(image, "PNG", exif=makers.exif_of(value))
        assert np.array_equal(decoded(data).array, upright), value


# Transparency

BACKGROUNDS = [Rgb(255, 255, 255), Rgb(0, 0, 0), Rgb(10, 200, 77)]


@pytest.mark.parametrize("background", BACKGROUNDS, ids=str)
def test_alpha_is_laid_on_the_background_with_pillows_arithmetic(background: Rgb) -> None:
    rgba = np.asarray(makers.picture("RGBA", 30, 31)).astype(np.int64)
    ground = np.array([background.red, background.green, background.blue], dtype=np.int64)
    alpha = rgba[..., 3:]
    t: NDArray[np.int64] = rgba[..., :3] * alpha + ground * (255 - alpha) + 128
    expected = (t + (t >> 8)) >> 8
    data = makers.png("RGBA", 30, 31)
    assert np.array_equal(decoded(data, background).array, expected)


@pytest.mark.parametrize("lossless", [True, False])
def test_noise_under_zero_alpha_does_not_shine_through(*, lossless: bool) -> None:
    noise = np.random.default_rng(5).integers(0, 256, (9, 8, 4), dtype=np.uint8)
    noise[..., 3] = 0
    image = Image.fromarray(noise)
    files = [makers.encode(image, "PNG"), makers.encode(image, "TIFF")]
    files.append(makers.encode(image, "WEBP", lossless=lossless, exact=True))
    for data in files:
        assert (decoded(data, Rgb(1, 2, 3)).array == (1, 2, 3)).all()


@pytest.mark.parametrize(
    "name",
    [
        "png-RGBA",
        "png-LA",
        "png-P-alphas",
        "png-P-transparent-0",
        "png-L-transparent-0",
        "png-RGB-transparent",
        "gif-transparent-0",
        "tiff-PA",
        "webp-lossless-alpha",
    ],
)
def test_dropped_alpha_is_a_plain_conversion(name: str) -> None:
    data = next(sample.data for sample in STILLS if sample.name == name)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected = np.asarray(makers.opened(data).convert("RGB"))
    assert np.array_equal(decoded(data, Drop.DROP).array, expected)


def test_a_transparent_colour_of_zero_is_still_transparent() -> None:
    black = Image.new("L", (3, 2), 0)
    for transparency in (0, 1):
        data = makers.encode(black, "PNG", transparency=transparency)
        expected = 255 if transparency == 0 else 0
        assert (decoded(data).array == expected).all()


def test_an_rgb_picture_is_taken_as_it_is_whatever_its_trns_says() -> None:
    red = makers.encode(Image.new("RGB", (3, 2), (255, 0, 0)), "PNG", transparency=(255, 0, 0))
    assert (decoded(red, Rgb(0, 0, 255)).array == (255, 0, 0)).all()


def test_damaged_tiffs_write_nothing_to_standard_error(capfd: pytest.CaptureFixture[str]) -> None:
    noise = np.random.default_rng(0).integers(0, 256, 5000, np.uint8).tobytes()
    tags = makers.grey_tags(200, 100, t258=(3, [1]), t259=(3, [3]))
    with suppress(PatchmillError):
        decoded(makers.tiff(tags, [noise]))
    assert capfd.readouterr().err == ""


def test_premultiplied_grey_is_divided_by_its_alpha() -> None:
    tags = makers.grey_tags(1, 2, t258=(3, [8, 8]), t277=(3, [2]), t338=(3, [1]))
    data = makers.tiff(tags, [bytes((50, 100, 20, 255))])
    assert decoded(data, Rgb(0, 0, 0)).array[0, :, 0].tolist() == [50, 20]


# 16 bits


def wide_png(values: list[int], **options: object) -> bytes:
    return makers.encode(Image.fromarray(np.array([values], dtype=np.uint16)), "PNG", **options)


def test_sixteen_bit_grey_is_clipped_by_default_and_says_so() -> None:
    pixels = decoded(wide_png([0, 1, 255, 256, 65535]))
    assert pixels.array[0, :, 0].tolist() == [0, 1, 255, 255, 255]
    assert pixels.notes == ("clipped_16_bit",)


def test_sixteen_bit_grey_is_scaled_on_demand() -> None:
    pixels = decoded(wide_png([0, 128, 129, 257, 32896, 65535]), sixteen_bit=SixteenBit.SCALE)
    assert pixels.array[0, :, 0].tolist() == [0, 0, 1, 1, 128, 255]
    assert pixels.notes == ("scaled_16_bit",)


def test_scaling_knows_big_endian_twelve_bit_and_transparent_grey() -> None:
    big = makers.tiff(makers.grey_tags(1, 2, 16), [b"\x01\x00\xff\xff"], order=">")
    assert decoded(big, sixteen_bit=SixteenBit.SCALE).array[0, :, 0].tolist() == [1, 255]
    twelve = makers.tiff(makers.grey_tags(1, 2, 12), [b"\xff\xf0\x00"])
    assert decoded(twelve, sixteen_bit=SixteenBit.SCALE).array[0, :, 0].tolist() == [255, 0]
    clear = wide_png([300, 301], transparency=300)
    scaled = decoded(clear, Rgb(9, 9, 9), SixteenBit.SCALE)
    assert scaled.array[0, :, 0].tolist() == [9, 1]


def test_eight_bit_pictures_carry_no_note() -> None:
    assert decoded(makers.png("L"), sixteen_bit=SixteenBit.SCALE).notes == ()


# JPEG without its end marker


def test_a_jpeg_that_lacks_only_its_end_marker_is_taken_where_pillow_takes_it() -> None:
    """Pillow needs a few bits of look-ahead, so it depends on the last code."""
    outcomes = set()
    for seed in range(15):
        image = makers.picture("RGB", 16, 24, seed)
        data = makers.encode(image, "JPEG", quality=85 + seed % 10)[:-2]
        try:
            expected = oracle(data)
        except OSError:
            with pytest.raises(TruncatedImage):
                decoded(data)
            outcomes.add("refused")
            continue
        assert np.array_equal(decoded(data).array, expected)
        outcomes.add("taken")
    assert outcomes == {"refused", "taken"}


# Threads, warnings, versions


def test_many_threads_decode_at_once() -> None:
    files = [sample.data for sample in STILLS][::3]
    expected = [oracle(data) for data in files]

    def work(index: int) -> bool:
        at = index % len(files)
        return np.array_equal(decoded(files[at]).array, expected[at])

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(work, range(len(files) * 6)))


WARNED = [
    ("apng-of-no-frames", makers.png_with(makers.chunk(b"acTL", bytes(8)))),
    (
        "mpo-without-entries",
        makers.with_segments(
            makers.jpeg(), makers.segment(0xE2, b"MPF\0" + makers.directory_block([]))
        ),
    ),
    ("exif-cut-off", makers.jpeg_with_exif(makers.exif_block(6)[:20])),
    (
        "tiff-two-orientations",
        makers.tiff(makers.grey_tags(16, 24, t274=(3, [6, 3])), [makers.grey_bytes(16, 24)]),
    ),
]


@pytest.mark.parametrize("data", [data for _, data in WARNED], ids=[name for name, _ in WARNED])
def test_pillows_warnings_neither_leak_nor_refuse(data: bytes) -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        pixels = decoded(data)
    assert caught == []
    assert np.array_equal(pixels.array, oracle(data))


def test_palette_alphas_dropped_raise_no_warning() -> None:
    data = makers.png("P", transparency=bytes(range(0, 160, 10)))
    assert decoded(data, Drop.DROP).array.shape == (16, 24, 3)


def test_versions_name_every_library_that_decides_pixels() -> None:
    found = versions()
    assert found["pillow"] == "13.0.0"
    assert {"libjpeg_turbo", "libwebp", "libavif", "zlib", "libtiff"} <= set(found)
    assert all(version for version in found.values())
