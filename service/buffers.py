"""Memory for answers and pixels, reused instead of faulted in anew.

A fresh 40 MB buffer costs 11 to 25 ms of page faults, a reused one 5. So large
buffers are anonymous mappings, with huge pages where the system has them, and
go back to the pool when the last view of them is gone: not when a request ends,
because the transport may still be sending. What the pool keeps is bounded.
"""

import mmap
import threading
import weakref
from collections import deque
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

HUGE_PAGE_BYTES = 2 * 2**20
ALIGNMENT_BYTES = 64
POOLED_FROM_BYTES = 2**20
"""Below this the allocator's own reuse is as good."""


class Buffers:
    """A pool; any thread may take from it. `keep_bytes` bounds what waits for reuse."""

    def __init__(self, keep_bytes: int) -> None:
        self._keep_bytes = keep_bytes
        self._lock = threading.Lock()
        self._free: list[mmap.mmap] = []  # the one that came back last stands last
        self._kept_bytes = 0
        self._in_use_bytes = 0
        # A finalizer may run at any allocation, also inside `take` under the lock, so it
        # does nothing but append here; the next `take` sorts the returned buffers in.
        self._returned: deque[mmap.mmap] = deque()

    def take(
        self, length_bytes: int, on_gone: Callable[[], None] | None = None
    ) -> NDArray[np.uint8]:
        """A flat writable array of this length, its content arbitrary, 64-byte aligned or better.

        It returns to the pool when it and every view of it are gone. `on_gone` is
        called then, or at once when there is no memory; as a finalizer, so it takes no locks.
        """
        try:
            whole = self._whole(length_bytes)
        except BaseException:
            if on_gone:
                on_gone()
            raise
        if on_gone:
            weakref.finalize(whole, on_gone).atexit = False
        return _aligned(whole, length_bytes)

    def _whole(self, length_bytes: int) -> NDArray[np.uint8]:
        """Memory that holds so many bytes from an aligned start, owned by nobody else."""
        if length_bytes < POOLED_FROM_BYTES:
            return np.empty(length_bytes + ALIGNMENT_BYTES - 1, np.uint8)
        capacity_bytes = _capacity_bytes(length_bytes)
        with self._lock:
            self._sort_in()
            memory = self._kept(capacity_bytes)
            self._in_use_bytes += capacity_bytes
        if memory is None:
            memory = _mapped(capacity_bytes)
        whole = np.frombuffer(memory, np.uint8)
        weakref.finalize(whole, self._returned.append, memory).atexit = False
        return whole

    @property
    def in_use_bytes(self) -> int:
        with self._lock:
            self._sort_in()
            return self._in_use_bytes

    @property
    def kept_bytes(self) -> int:
        with self._lock:
            self._sort_in()
            return self._kept_bytes

    def _kept(self, capacity_bytes: int) -> mmap.mmap | None:
        """One that waits, of just this size: the last that came back, whose pages are warmest."""
        for index in range(len(self._free) - 1, -1, -1):
            if len(self._free[index]) == capacity_bytes:
                self._kept_bytes -= capacity_bytes
                return self._free.pop(index)
        return None

    def _sort_in(self) -> None:
        while self._returned:
            memory = self._returned.popleft()
            self._in_use_bytes -= len(memory)
            self._kept_bytes += len(memory)
            self._free.append(memory)
        while self._kept_bytes > self._keep_bytes:
            # The one that nobody has wanted for longest. Dropped, which unmaps it once its last
            # export is gone. Not closed: a thread amid ending the array still holds one.
            self._kept_bytes -= len(self._free.pop(0))


def _aligned(whole: NDArray[np.uint8], length_bytes: int) -> NDArray[np.uint8]:
    start = -whole.ctypes.data % ALIGNMENT_BYTES
    return whole[start : start + length_bytes]


def _capacity_bytes(length_bytes: int) -> int:
    """Rounded up to one of eight sizes per power of two: an eighth wasted at most, few classes."""
    step_bytes = max(HUGE_PAGE_BYTES, (1 << (length_bytes.bit_length() - 1)) // 8)
    return -(-length_bytes // step_bytes) * step_bytes


def _mapped(capacity_bytes: int) -> mmap.mmap:
    memory = mmap.mmap(-1, capacity_bytes)
    if hasattr(mmap, "MADV_HUGEPAGE"):
        memory.madvise(mmap.MADV_HUGEPAGE)
    return memory
