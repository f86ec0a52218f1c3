"""How far a process's resident memory rises while something happens (Linux)."""

import re
from collections.abc import Callable
from pathlib import Path

RESET_PEAK = "5"
"""To clear_refs: the peak becomes what is resident now (proc(5))."""
RETURNED_AT_ONCE = {"MALLOC_MMAP_THRESHOLD_": "131072", "MALLOC_TRIM_THRESHOLD_": "131072"}
"""For the service's environment: glibc gives freed memory back (mallopt(3)). Otherwise what an
earlier request took stays resident, and a later one that takes as much does not show."""


def peak_growth_bytes(pid: int, act: Callable[[], object]) -> int:
    """The highest resident memory during `act`, above that before it."""
    Path(f"/proc/{pid}/clear_refs").write_text(RESET_PEAK)
    before = _status_bytes(pid, "VmRSS")
    act()
    return _status_bytes(pid, "VmHWM") - before


def _status_bytes(pid: int, field: str) -> int:
    found = re.search(rf"^{field}:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text(), re.M)
    assert found
    return int(found[1]) * 1024
