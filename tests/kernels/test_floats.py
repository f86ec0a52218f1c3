"""The float resize: its twin against torch and Pillow, and every engine against the twin."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from kernels.affine import FLOATS, affine
from kernels.arrange import STREAMED_BYTES
from kernels.dispatch import Choice, Engine, select
from kernels.float_split import by_twin
from tests.golden_data import GOLDEN

CLIP = ((0.48145466, 0.4578275, 0.40821073), (0.26862954, 0.26130258, 0.27577711))
IDENTITY = ((0.0, 0.0, 0.0), (1 / 255, 1 / 255, 1 / 255))
"""Values are pixels: not normalised but by a scale of one."""

# Height, width before and after: shrunk, enlarged, stretched, one axis alone, none, one pixel.
SIZES = {
    "shrunk": ((97, 61), (64, 32)),
    "shrunk far": ((300, 411), (16, 16)),
    "enlarged": ((20, 31), (64, 96)),
    "stretched": ((90, 20), (32, 64)),
    "rows alone": ((90, 64), (32, 64)),
    "columns alone": ((64, 90), (64, 32)),
    "rows alone, enlarged": ((50, 61), (64, 61)),
    "rows alone, narrow": ((20, 9), (16, 9)),
    "as it is": ((48, 64), (48, 64)),
    "as it is, odd": ((33, 45), (33, 45)),
    "one pixel": ((1, 1), (32, 32)),
    "to one pixel": ((50, 70), (1, 1)),
    "wider than a block": ((40, 333), (32, 288)),
}

# What torch made of noise (seed 0), in which a long axis shows how its weights are computed.
INTERPOLATED = {
    "wide": ((5, 2704), (3, 2080)),
    "tall": ((2704, 5), (2080, 3)),
    "enlarged": ((3, 1920), (4, 1984)),
}


@pytest.fixture(scope="module", params=[Choice.SIMD, Choice.PORTABLE, Choice.NUMPY])
def engine(request) -> Engine:
    engine = select(request.param)
    if engine.name != request.param:
        pytest.skip(engine.reason)
    return engine


def noise(height: int, width: int, channels: int = 4, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 256, (height, width, channels), dtype=np.uint8)


def written(split, pixels, resized, values, shape, *, corner=(0, 0), parts=1) -> np.ndarray:
    itemsize = values.storage.itemsize
    junk = np.full(int(np.prod(shape)) * itemsize, 0xA5, np.uint8)
    out = junk.view(values.storage).reshape(shape)
    for part in split(pixels, resized, corner, values, out, parts):
        part()
    return out


def by_pillow(pixels: np.ndarray, height: int, width: int) -> np.ndarray:
    """(3, height, width) float32, each channel resized as a picture of floats."""
    planes = [Image.fromarray(pixels[:, :, c].astype(np.float32)) for c in range(3)]
    resized = [plane.resize((width, height), Image.Resampling.BICUBIC) for plane in planes]
    return np.stack([np.asarray(plane) for plane in resized])


@pytest.mark.parametrize("channels", [3, 4])
@pytest.mark.parametrize(("before", "after"), SIZES.values(), ids=SIZES)
def test_the_twin_resizes_as_pillow_resizes_floats(before, after, channels):
    pixels = noise(*before, channels)
    got = written(by_twin, pixels, after, affine("float32", *IDENTITY), (3, *after))
    # Of 255. Pillow's weights are double: of 2000 samples they differ by 0.03.
    assert np.abs(got - by_pillow(pixels, *after)).max() < 5e-4


@pytest.mark.parametrize("name", INTERPOLATED)
def test_the_twin_resizes_as_torch_interpolates_a_long_axis(name):
    before, after = INTERPOLATED[name]
    green = np.load(GOLDEN / "nemotron" / "interpolate.npz")[name]
    got = written(by_twin, noise(*before, 3), after, affine("float32", *IDENTITY), (3, *after))
    assert np.abs(got[1] - green).max() < 5e-4  # of 255: 8e-6 of a normalised value


def test_overshoot_is_kept():
    pixels = np.zeros((40, 40, 3), np.uint8)
    pixels[:, 20:] = 255
    got = written(by_twin, pixels, (64, 64), affine("float32", *IDENTITY), (3, 64, 64))
    assert got.min() < -5
    assert got.max() > 260


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("channels", [3, 4])
@pytest.mark.parametrize(("before", "after"), SIZES.values(), ids=SIZES)
def test_every_engine_has_the_bits_of_the_twin(engine, before, after, channels, dtype):
    pixels = noise(*before, channels)
    values = affine(dtype, *CLIP)
    grid = [-(-side // 32) for side in after]
    for shape in (
        (3, *after),
        (2 * grid[0], 2 * grid[1], 3, 16, 16),
        (*grid, 2, 2, 3, 16, 16),
        (*grid, 3, 36, 36),
    ):
        wanted = written(by_twin, pixels, after, values, shape)
        got = written(engine.split_float, pixels, after, values, shape, parts=3)
        assert got.tobytes() == wanted.tobytes()


@pytest.mark.parametrize("shift", [0, 4, 16])
@pytest.mark.parametrize("resized", [(960, 950), (960, 960), (200, 960)], ids=str)
@pytest.mark.parametrize("shape", [(60, 60, 3, 16, 16), (3, 960, 960)], ids=["patches", "image"])
def test_a_large_answer_has_the_bits_of_the_twin_wherever_it_begins(engine, shape, resized, shift):
    pixels, values = noise(200, 960), affine("float32", *CLIP)
    memory = np.full(int(np.prod(shape)) * 4 + 128, 0xA5, np.uint8)
    begin = -memory.ctypes.data % 64 + shift
    got = memory[begin : begin + len(memory) - 128].view(np.float32).reshape(shape)
    for part in engine.split_float(pixels, resized, (0, 0), values, got, 2):
        part()
    assert got.nbytes >= STREAMED_BYTES
    assert got.tobytes() == written(by_twin, pixels, resized, values, shape).tobytes()
    assert (memory[:begin] == 0xA5).all()
    assert (memory[begin + got.nbytes :] == 0xA5).all()


@settings(max_examples=60, deadline=None)
@given(
    st.tuples(st.integers(1, 120), st.integers(1, 120)),
    st.tuples(st.integers(1, 120), st.integers(1, 120)),
    st.integers(1, 40),
    st.integers(1, 9),
    st.sampled_from(FLOATS),
)
def test_any_sizes_patches_and_parts_have_the_bits_of_the_twin(before, after, patch, parts, dtype):
    pixels = noise(*before)
    values = affine(dtype, *CLIP)
    shape = (-(-after[0] // patch), -(-after[1] // patch), 3, patch, patch)
    wanted = written(by_twin, pixels, after, values, shape)
    got = written(select().split_float, pixels, after, values, shape, parts=parts)
    assert got.tobytes() == wanted.tobytes()


@settings(max_examples=60, deadline=None)
@given(
    st.tuples(st.integers(1, 60), st.integers(1, 60), st.integers(1, 90), st.sampled_from((3, 4))),
    st.integers(1, 40),
    st.integers(0, 50),
    st.integers(1, 9),
    st.sampled_from(FLOATS),
)
def test_columns_that_keep_their_size_have_the_bits_of_the_twin(sizes, patch, left, parts, dtype):
    before, after, width, channels = sizes
    pixels = noise(before, width, channels)
    values = affine(dtype, *IDENTITY)  # an offset of minus zero shows the sign of a zero
    shape = (-(-after // patch), 2, 3, patch, patch)
    resized, corner = (after, width), (0, min(left, width - 1))
    wanted = written(by_twin, pixels, resized, values, shape, corner=corner)
    split = select().split_float
    got = written(split, pixels, resized, values, shape, corner=corner, parts=parts)
    assert got.tobytes() == wanted.tobytes()


def test_past_the_picture_are_zero_pixels(engine):
    values = affine("float32", *CLIP)
    out = written(engine.split_float, noise(40, 40), (20, 25), values, (3, 32, 32))
    black = values.offset[:, np.newaxis, np.newaxis]
    assert (out[:, 20:] == black).all()
    assert (out[:, :, 25:] == black).all()


@pytest.mark.parametrize("before", [(70, 90), (70, 96), (64, 96)], ids=str)
def test_a_part_of_the_resized_picture_is_that_part(engine, before):
    pixels, values = noise(*before), affine("float32", *CLIP)
    whole = written(engine.split_float, pixels, (64, 96), values, (3, 64, 96))
    for top, left in ((0, 0), (0, 64), (32, 32)):
        tile = written(
            engine.split_float, pixels, (64, 96), values, (3, 32, 32), corner=(top, left)
        )
        assert tile.tobytes() == whole[:, top : top + 32, left : left + 32].tobytes()


# What is given instead of a sound argument, and the words that tell what is wrong.
REFUSED = {
    "pixels of floats": ({"pixels": np.zeros((4, 4, 3), np.float32)}, "pixels are"),
    "no height": ({"resized": (0, 8)}, "resized is"),
    "a corner outside": ({"corner": (0, 8)}, "corner is"),
    "a corner above": ({"corner": (-1, 0)}, "corner is"),
    "another dtype": ({"out": np.zeros((3, 8, 8), np.uint16)}, "out is uint16"),
    "four planes": ({"out": np.zeros((4, 8, 8), np.float32)}, "out is"),
    "out in pieces": ({"out": np.zeros((3, 8, 16), np.float32)[:, :, ::2]}, "out is not"),
    "no parts": ({"parts": 0}, "parts is 0"),
}


@pytest.mark.parametrize(("wrong", "words"), REFUSED.values(), ids=REFUSED)
def test_a_wrong_argument_is_refused(engine, wrong, words):
    sound = {
        "pixels": noise(4, 4),
        "resized": (8, 8),
        "corner": (0, 0),
        "values": affine("float32", *CLIP),
        "out": np.zeros((3, 8, 8), np.float32),
        "parts": 1,
    }
    with pytest.raises(ValueError, match=words):
        engine.split_float(**{**sound, **wrong})


def test_bytes_are_no_floats():
    with pytest.raises(ValueError, match="must be one of float16, bfloat16, float32"):
        affine("uint8", *CLIP)
