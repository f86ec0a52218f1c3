"""How many CPUs this process may use: its affinity, and what its control groups leave of it.

A container sees all CPUs of its host, but its quota lets it run on some of them
only. Threads beyond the quota do not add speed; they make the kernel stop the
whole process for the rest of each period.
"""

import math
import os
from collections.abc import Iterator
from pathlib import Path

CONTROL_GROUPS = Path("/sys/fs/cgroup")
OWN_GROUPS = Path("/proc/self/cgroup")


def usable_cpus(mounted: Path = CONTROL_GROUPS, own: Path = OWN_GROUPS) -> int:
    """At least 1. A quota of 2.5 CPUs counts as 3: the half is worth a thread."""
    quotas = [quota for folder in _folders(mounted, own) if (quota := _quota(folder))]
    return max(1, min([len(os.sched_getaffinity(0)), *map(math.ceil, quotas)]))


def _folders(mounted: Path, own: Path) -> Iterator[Path]:
    """This process's group and all above it, of both versions; any of them may hold the quota."""
    try:
        lines = own.read_text("ascii").splitlines()
    except (OSError, ValueError):
        lines = []
    for line in lines:
        _, controllers, path = line.split(":", 2)
        if not controllers or "cpu" in controllers.split(","):
            base = mounted / controllers if controllers else mounted
            group = base / path.lstrip("/")
            yield from (group, *(each for each in group.parents if each.is_relative_to(base)))
    # Inside a container the paths of /proc may be the host's, and its own group the root here.
    yield from (mounted, mounted / "cpu", mounted / "cpu,cpuacct")


def _quota(folder: Path) -> float | None:
    """CPUs, of `cpu.max` (version 2) or of its two forerunners; None is no quota."""
    try:
        if (folder / "cpu.max").exists():
            limit, period = (folder / "cpu.max").read_text("ascii").split()
        else:
            limit = (folder / "cpu.cfs_quota_us").read_text("ascii")
            period = (folder / "cpu.cfs_period_us").read_text("ascii")
        return int(limit) / int(period) if int(limit) > 0 else None
    except (OSError, ValueError, ZeroDivisionError):
        return None
