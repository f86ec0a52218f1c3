"""The vector operations that any CPU can have, on any CPU: against NumPy, in memory."""

import numpy as np
import pytest

numba = pytest.importorskip("numba")
from kernels.float_lanes import (  # noqa: E402 - only where numba is
    add_floats,
    load_floats,
    order_memory,
    store_floats,
    transpose,
    transpose_past_caches,
)

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
