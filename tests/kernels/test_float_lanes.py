"""The vector operations that any CPU can have, on any CPU: against NumPy, in memory."""

import numpy as np
import pytest

numba = pytest.importorskip("numba")
from kernels.float_lanes import (  # noqa: E402 - only where numba is
    add_floats,
    channel,
    load_floats,
    load_rgb,
    order_memory,
    prefetch,
    repeat_float,
    round_to_float16,
    store_first_floats,
    store_first_halves,
    store_floats,
    store_floats_past_caches,
    store_halves,
    transpose,
    transpose_past_caches,
)
from kernels.simd import load  # noqa: E402

RNG = np.random.default_rng(3)

PLAIN_CPU = """
from kernels.dispatch import Choice, select

print(select(Choice.PORTABLE).name)
"""


@numba.njit
def move(at, to):
    store_floats(to, load_floats(at))


@numba.njit
def total(at, to):
    store_floats(to, add_floats(load_floats(at), load_floats(at + 32)))


@numba.njit
def repeat_past_caches(at, to):
    store_floats_past_caches(to, repeat_float(at))
    order_memory()


@numba.njit
def store_some(at, to, count):
    store_first_floats(to, load_floats(at), count)


@numba.njit
def store_some_halves(at, to, count):
    store_first_halves(to, load(at), count)


@numba.njit
def split_rgb(at, to):
    pixels = load_rgb(at)
    store_floats(to, channel(pixels, 0))
    store_floats(to + 32, channel(pixels, 8))
    store_floats(to + 64, channel(pixels, 16))


@numba.njit
def split_rgbx(at, to):
    pixels = load(at)
    store_floats(to, channel(pixels, 0))
    store_floats(to + 32, channel(pixels, 8))
    store_floats(to + 64, channel(pixels, 16))


@numba.njit
def narrow(at, to, count):
    for n in range(count):
        store_halves(to + 16 * n, round_to_float16(load_floats(at + 32 * n)))


@numba.njit
def prefetch_all(places):
    for place in places:
        prefetch(place)
    return len(places)


@numba.njit
def stream(at, step, to, to_step):
    transpose_past_caches(at, step, to, to_step)
    order_memory()


@numba.njit
def turn(at, step, to, further, to_step):
    transpose(at, step, to, further, to_step)


def test_floats_are_moved_at_any_alignment():
    memory = RNG.random(20, np.float32).view(np.uint8)
    got = np.zeros(40, np.uint8)
    move(memory.ctypes.data + 5, got.ctypes.data + 3)
    assert np.array_equal(got[3:35], memory[5:37])
    assert not got[:3].any()
    assert not got[35:].any()


def test_sums_are_rounded_once():
    a, b = RNG.normal(size=(2, 8)).astype(np.float32)
    both, got = np.concatenate([a, b]), np.zeros(8, np.float32)
    total(both.ctypes.data, got.ctypes.data)
    assert np.array_equal(got, a + b)


def test_one_float_fills_a_vector_that_goes_past_the_caches():
    memory = np.zeros(16, np.float32)
    got = memory[-memory.ctypes.data // 4 % 4 :][:8]
    repeat_past_caches(np.array([0.1, 7], np.float32).ctypes.data, got.ctypes.data)
    assert (got == np.float32(0.1)).all()
    assert np.count_nonzero(memory) == 8


@pytest.mark.parametrize("count", range(9))
def test_of_a_vector_the_first_few_are_stored(count):
    floats, halves = RNG.random(8, np.float32), RNG.integers(1, 2**16, 8, np.int32)
    got, got_halves = np.zeros(8, np.float32), np.zeros(8, np.uint16)
    store_some(floats.ctypes.data, got.ctypes.data, count)
    store_some_halves(halves.ctypes.data, got_halves.ctypes.data, count)
    assert np.array_equal(got[:count], floats[:count])
    assert np.array_equal(got_halves[:count], halves[:count])
    assert not got[count:].any()
    assert not got_halves[count:].any()


@pytest.mark.parametrize(("split", "channels"), [(split_rgb, 3), (split_rgbx, 4)])
def test_pixels_are_split_by_channels(split, channels):
    pixels = RNG.integers(0, 256, (8, channels), np.uint8)
    got = np.zeros((3, 8), np.float32)
    split(pixels.ctypes.data, got.ctypes.data)
    assert np.array_equal(got, pixels.T[:3])


def test_every_float32_is_rounded_to_float16_as_numpy_does_it():
    edges = np.array([0x387FFFFF, 0x38800000, 0x33000000, 0x33000001, 0x477FEFFF, 0x477FF000])
    chance = RNG.integers(0, 2**32, 300_000)
    words = np.concatenate([edges, edges | 0x80000000, chance, [0, 0x80000000]]).astype(np.uint32)
    numbers = words.view(np.float32)
    numbers = np.append(numbers[np.isfinite(numbers)], np.float32([np.inf, -np.inf] * 4))
    numbers = numbers[: -(len(numbers) % 8) or None]
    got = np.empty(len(numbers), np.uint16)
    narrow(numbers.ctypes.data, got.ctypes.data, len(numbers) // 8)
    with np.errstate(over="ignore"):
        assert np.array_equal(got, numbers.astype(np.float16).view(np.uint16))


def test_any_address_may_be_prefetched():
    assert prefetch_all((0, 1, -1, 2**62)) == 4


def test_columns_are_stored_with_steps_and_in_two_places():
    rows = RNG.random((8, 11), np.float32)
    got = np.zeros((20, 9), np.float32)
    turn(rows.ctypes.data, 44, got.ctypes.data, got[10:].ctypes.data, 36)
    wanted = np.zeros_like(got)
    wanted[:4, :8] = rows[:, :4].T
    wanted[10:14, :8] = rows[:, 4:8].T
    assert np.array_equal(got, wanted)


def test_columns_that_go_past_the_caches_lie_where_they_belong():
    rows = RNG.random((8, 8), np.float32)
    memory = np.zeros(8 * 12 + 4, np.float32)
    got = memory[-memory.ctypes.data // 4 % 4 :][: 8 * 12].reshape(8, 12)
    stream(rows.ctypes.data, 32, got.ctypes.data, 48)
    assert np.array_equal(got[:, :8], rows.T)
    assert not got[:, 8:].any()


def test_of_columns_that_overlap_the_later_one_stays():
    rows = RNG.random((8, 8), np.float32)
    got = np.zeros((8, 8), np.float32)
    turn(rows.ctypes.data, 32, got.ctypes.data, got[3:].ctypes.data, 32)
    assert np.array_equal(got[:7], rows.T[[0, 1, 2, 4, 5, 6, 7]])


def test_a_cpu_without_long_vectors_has_the_same_bits(run_python):
    plain = {"NUMBA_CPU_NAME": "generic", "NUMBA_CPU_FEATURES": ""}
    assert run_python(PLAIN_CPU, **plain) == ["portable"]  # it passed its self-test
