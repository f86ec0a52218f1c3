"""The resize against Pillow used plainly. `patchify` has its own file, with its kernel."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from kernels import reference

# (height, width) in, (height, width) out. Pillow 13 resizes vertically first
# when the height loses more than twice what the width loses.
SIZES = {
    "horizontal pass first": ((40, 90), (30, 50)),
    "vertical pass first": ((90, 40), (31, 37)),
    "only the width": ((33, 50), (33, 20)),
    "only the height": ((50, 33), (20, 33)),
    "larger": ((13, 17), (40, 31)),
    "to one pixel": ((37, 21), (1, 1)),
    "from one pixel": ((1, 1), (9, 14)),
}

sides = st.integers(1, 80)


def picture(height: int, width: int, channels: int, seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return rng.integers(0, 256, (height, width, channels), dtype=np.uint8)


def by_pillow(pixels: np.ndarray, height: int, width: int) -> np.ndarray:
    """The first three channels as one RGB picture, each byte set by Pillow."""
    rgb = Image.fromarray(np.ascontiguousarray(pixels[:, :, :3]))
    assert rgb.mode == "RGB"
    return np.array(rgb.resize((width, height), Image.Resampling.BICUBIC))


@pytest.mark.parametrize("channels", [3, 4])
@pytest.mark.parametrize(("size", "resized"), SIZES.values(), ids=SIZES)
def test_a_resize_is_pillows(size, resized, channels):
    pixels = picture(*size, channels, seed=1)
    got = reference.resize(pixels, *resized)
    assert got.shape == (*resized, channels)
    assert got.flags.c_contiguous
    assert np.array_equal(got[:, :, :3], by_pillow(pixels, *resized))


@settings(deadline=None)
@given(
    size=st.tuples(sides, sides),
    resized=st.tuples(sides, sides),
    channels=st.sampled_from([3, 4]),
    seed=st.integers(0, 2**32 - 1),
)
def test_a_resize_is_pillows_for_any_size(size, resized, channels, seed):
    pixels = picture(*size, channels, seed)
    got = reference.resize(pixels, *resized)
    assert np.array_equal(got[:, :, :3], by_pillow(pixels, *resized))


def test_the_filler_channel_changes_no_colour():
    pixels = picture(30, 20, 4, seed=2)
    bare = pixels.copy()
    bare[:, :, 3] = 0  # as alpha, this would make every colour vanish
    got = reference.resize(pixels, 14, 14)
    assert np.array_equal(got[:, :, :3], reference.resize(bare, 14, 14)[:, :, :3])


@pytest.mark.parametrize("channels", [3, 4])
def test_pixels_of_the_right_size_are_returned_and_not_copied(channels):
    pixels = picture(5, 7, channels, seed=3)
    assert reference.resize(pixels, 5, 7) is pixels


@pytest.mark.parametrize("channels", [3, 4])
def test_a_resize_reads_read_only_pixels_and_leaves_its_input_alone(channels):
    pixels = picture(12, 9, channels, seed=4)
    kept = pixels.copy()
    pixels.flags.writeable = False
    reference.resize(pixels, 6, 6)
    assert np.array_equal(pixels, kept)
