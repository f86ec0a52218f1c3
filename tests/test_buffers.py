"""The buffer pool: what returns when, what is kept, and that nobody is handed a buffer in use."""

import threading

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.buffers import HUGE_PAGE_BYTES, POOLED_FROM_BYTES, Buffers, _capacity_bytes

LARGE = 5 * 2**20


@pytest.mark.parametrize("length_bytes", [1, 100, POOLED_FROM_BYTES - 1, POOLED_FROM_BYTES, LARGE])
def test_a_buffer_has_its_length_is_writable_and_aligned(length_bytes: int) -> None:
    taken = Buffers(0).take(length_bytes)
    assert taken.shape == (length_bytes,)
    assert taken.ctypes.data % 64 == 0
    taken[:] = 7


def test_a_buffer_returns_when_its_last_view_is_gone_and_is_reused() -> None:
    buffers = Buffers(LARGE * 2)
    taken = buffers.take(LARGE)
    address = taken.ctypes.data
    view = memoryview(taken.view(np.float32).reshape(-1, 4)).cast("B")[64:]
    del taken
    assert buffers.kept_bytes == 0
    assert buffers.in_use_bytes >= LARGE
    assert buffers.take(LARGE).ctypes.data != address
    view.release()
    del view
    assert buffers.in_use_bytes == 0
    addresses = {buffers.take(LARGE).ctypes.data for _ in range(3)}
    assert len(addresses) == 1


def test_no_more_is_kept_than_allowed() -> None:
    buffers = Buffers(LARGE * 2)
    held = [buffers.take(LARGE) for _ in range(5)]
    assert buffers.in_use_bytes >= 5 * LARGE
    held.clear()
    assert buffers.in_use_bytes == 0
    assert 0 < buffers.kept_bytes <= LARGE * 2


@given(st.integers(POOLED_FROM_BYTES, 2**31))
def test_rounding_up_wastes_an_eighth_or_a_huge_page_at_most(length_bytes: int) -> None:
    waste_bytes = _capacity_bytes(length_bytes) - length_bytes
    assert 0 <= waste_bytes < max(HUGE_PAGE_BYTES, length_bytes / 8)


def test_many_threads_never_share_a_buffer() -> None:
    buffers, faults = Buffers(LARGE * 8), []

    def work(mark: int) -> None:
        for _ in range(50):
            taken = buffers.take(LARGE)
            taken[::4096] = mark
            if not (taken[::4096] == mark).all():
                faults.append(mark)

    threads = [threading.Thread(target=work, args=(mark,)) for mark in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert faults == []
    assert buffers.in_use_bytes == 0


def test_what_nobody_has_wanted_for_longest_makes_room_first() -> None:
    sizes = [LARGE, LARGE * 2, LARGE * 3]
    buffers = Buffers(_capacity_bytes(LARGE * 2) + _capacity_bytes(LARGE * 3))
    for size in sizes:
        taken = buffers.take(size)
        del taken
    kept = _capacity_bytes(LARGE * 2) + _capacity_bytes(LARGE * 3)
    assert buffers.kept_bytes == kept
    again = buffers.take(LARGE * 2)
    assert buffers.kept_bytes == kept - _capacity_bytes(LARGE * 2)
    del again
