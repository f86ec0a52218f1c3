"""The kernels and their twin against a definition of one value at a time, no resize."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernels import coefficients, fused, reference
from kernels import patchify as module
from kernels.dispatch import Choice, Engine, select
from kernels.tables import STORAGE, table

CLIP = ((0.48145466, 0.4578275, 0.40821073), (0.26862954, 0.26130258, 0.27577711))

# Height, width, patch, grid. The last two have whole patches of padding.
SHAPES = {
    "one pixel": (1, 1, 1, (1, 1)),
    "exact": (28, 42, 14, (2, 3)),
    "padded right": (28, 30, 14, (2, 3)),
    "padded below": (15, 42, 14, (2, 3)),
    "padded both": (15, 29, 14, (2, 3)),
    "patch larger than the picture": (3, 2, 20, (1, 1)),
    "a grid for merging": (3, 2, 14, (2, 2)),
    "far larger than needed": (5, 5, 4, (6, 5)),
}

JIT_OFF = """
import numpy as np
from kernels import reference
from kernels.arrange import whole
from kernels.patchify import patchify
from kernels.tables import STORAGE, table

assert type(patchify).__name__ == "function"
rng = np.random.default_rng(0)
for channels in (3, 4):
    pixels = rng.integers(0, 256, (9, 11, channels), dtype=np.uint8)
    for dtype in STORAGE:
        values = table(dtype, (0.4, 0.5, 0.6), (0.3, 0.2, 0.1))
        got = np.ones((4, 3, 3, 4, 4), values.dtype)
        wanted = np.zeros_like(got)
        patchify(pixels, values, whole(got))
        reference.patchify(pixels, values, wanted)
        assert got.tobytes() == wanted.tobytes()
print("equal")
"""


@pytest.fixture(scope="module", params=[Choice.SIMD, Choice.PORTABLE])
def engine(request) -> Engine:
    """A compiled one, behind its door."""
    engine = select(request.param)
    if engine.name != request.param:
        pytest.skip(engine.reason)
    return engine


def one_at_a_time(pixels: np.ndarray, values: np.ndarray, shape: tuple[int, ...]) -> bytes:
    """Each value from the place of its patch, in the order of the answer."""
    height, width, _ = pixels.shape
    grid_h, grid_w, _, patch, _ = shape
    picture, known = pixels.tolist(), values.tolist()
    answer = []
    for gy in range(grid_h):
        for gx in range(grid_w):
            for c in range(3):
                for y in range(gy * patch, gy * patch + patch):
                    for x in range(gx * patch, gx * patch + patch):
                        inside = y < height and x < width
                        answer.append(known[picture[y][x][c] if inside else 0][c])
    return np.array(answer, values.dtype).tobytes()


def picture(height: int, width: int, channels: int, seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return rng.integers(0, 256, (height, width, channels), dtype=np.uint8)


def junk(shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
    return np.full(int(np.prod(shape)) * dtype.itemsize, 0xA5, np.uint8).view(dtype).reshape(shape)


def written(patchify, pixels, values, shape) -> bytes:
    out = junk(shape, values.dtype)
    patchify(pixels, values, out)
    return out.tobytes()


def kernel(engine: Engine):
    def patchify(pixels, values, out):
        engine.write_patches(pixels, pixels.shape[:2], values, out)

    return patchify


@pytest.mark.parametrize("dtype", STORAGE)
@pytest.mark.parametrize("channels", [3, 4])
@pytest.mark.parametrize("case", SHAPES.values(), ids=SHAPES)
def test_kernel_twin_and_definition_agree(engine, case, channels, dtype):
    height, width, patch, grid = case
    pixels = picture(height, width, channels, seed=5)
    values = table(dtype, *CLIP)
    shape = (*grid, 3, patch, patch)
    wanted = one_at_a_time(pixels, values, shape)
    assert written(reference.patchify, pixels, values, shape) == wanted
    assert written(kernel(engine), pixels, values, shape) == wanted


@settings(deadline=None)
@given(data=st.data())
def test_kernel_twin_and_definition_agree_on_any_input(engine, data):
    height, width = data.draw(st.tuples(st.integers(1, 70), st.integers(1, 70)), "size")
    patch, merge = data.draw(st.integers(1, 20), "patch"), data.draw(st.integers(1, 3), "merge")
    edge = patch * merge
    grid = (-(-height // edge) * merge, -(-width // edge) * merge)
    mean = data.draw(st.tuples(*[st.floats(0, 1)] * 3), "mean")
    std = data.draw(st.tuples(*[st.floats(0.01, 2)] * 3), "std")
    values = table(data.draw(st.sampled_from(sorted(STORAGE)), "dtype"), mean, std)
    pixels = picture(
        height, width, data.draw(st.sampled_from([3, 4]), "channels"), data.draw(st.integers(0, 99))
    )
    pixels.flags.writeable = data.draw(st.booleans(), "writeable")
    shape = (*grid, 3, patch, patch)
    wanted = one_at_a_time(pixels, values, shape)
    assert written(reference.patchify, pixels, values, shape) == wanted
    assert written(kernel(engine), pixels, values, shape) == wanted


def test_every_table_value_of_every_channel_is_looked_up(engine):
    pixels = np.repeat(np.arange(256, dtype=np.uint8), 3).reshape(16, 16, 3)
    values = np.arange(768, dtype=np.uint16).reshape(256, 3)
    out = np.zeros((1, 1, 3, 16, 16), np.uint16)
    kernel(engine)(pixels, values, out)
    assert np.array_equal(out.reshape(3, 256).T, values)


def test_padding_is_the_normalised_zero_of_its_channel(engine):
    values = table("float32", *CLIP)
    out = junk((2, 2, 3, 4, 4), values.dtype)
    kernel(engine)(picture(4, 4, 3, seed=6), values, out)
    for c in range(3):
        assert (out[0, 1, c] == values[0, c]).all()
        assert (out[1, :, c] == values[0, c]).all()


def test_the_filler_channel_is_not_read(engine):
    pixels, values = picture(20, 20, 4, seed=7), table("float32", *CLIP)
    bare = np.ascontiguousarray(pixels[:, :, :3])
    shape = (2, 2, 3, 14, 14)
    for patchify in (reference.patchify, kernel(engine)):
        assert written(patchify, pixels, values, shape) == written(patchify, bare, values, shape)


def test_no_array_that_the_door_lets_in_compiles_the_kernel_again(engine):
    def compiled() -> list[int]:
        kernels = (module.patchify, fused.write_rows, coefficients.weigh)
        return [len(kernel.signatures) for kernel in kernels]

    before = compiled()
    assert before[0] == 3
    large = picture(40, 30, 4, seed=8)
    writable = table("float32", *CLIP).copy()
    fixed = large.copy()
    fixed.flags.writeable = False
    of_bytes = np.frombuffer(large.tobytes(), np.uint8).reshape(large.shape)
    in_bytearray = np.frombuffer(bytearray(4 * 6 * 3 * 196), np.float32).reshape(3, 2, 3, 14, 14)
    for pixels in (large, fixed, of_bytes, large[:1], large[3:9], large[:, :1].copy()):
        for values in (writable, table("float32", *CLIP)):
            for out in (np.empty((3, 3, 3, 14, 14), np.float32), in_bytearray[:, :, :]):
                resized = (min(pixels.shape[0], 28), min(pixels.shape[1], 28))
                engine.write_patches(pixels, resized, values, out)
    assert compiled() == before


def test_the_kernels_body_runs_the_same_with_the_jit_off(run_python):
    assert run_python(JIT_OFF, NUMBA_DISABLE_JIT="1") == ["equal"]
