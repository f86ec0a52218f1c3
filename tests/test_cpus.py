"""How many CPUs a container may use: affinity, and the quotas of its control groups."""

import os
from pathlib import Path

import pytest

from service.cpus import usable_cpus

HERE = len(os.sched_getaffinity(0))


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


@pytest.mark.parametrize(
    ("files", "own", "expected"),
    [
        ({}, "", HERE),
        ({"cpu.max": "max 100000"}, "0::/\n", HERE),
        ({"cpu.max": "100000 100000"}, "0::/\n", 1),
        ({"cpu.max": "30000 100000"}, "0::/\n", 1),
        ({"cpu.max": "110000 100000"}, "0::/\n", min(2, HERE)),
        ({"cpu.max": "9900000 100000"}, "0::/\n", HERE),
        ({"a/b/cpu.max": "max 100000", "a/cpu.max": "50000 100000"}, "0::/a/b\n", 1),
        ({"a/b/cpu.max": "50000 100000"}, "0::/a/b\n", 1),
        ({"b/cpu.max": "50000 100000"}, "0::/a\n", HERE),
        ({"cpu.max": "100000 100000"}, "0::/the/host's/own/path\n", 1),
        (
            {"cpu/d/cpu.cfs_quota_us": "100000", "cpu/d/cpu.cfs_period_us": "100000"},
            "4:cpu:/d\n1:name=systemd:/d\n",
            1,
        ),
        ({"cpu/cpu.cfs_quota_us": "-1", "cpu/cpu.cfs_period_us": "100000"}, "4:cpu:/\n", HERE),
        ({"cpu.max": "nonsense"}, "0::/\n", HERE),
        ({"cpu.max": "100000 0"}, "0::/\n", HERE),
    ],
)
def test_the_least_of_affinity_and_quotas_counts(
    tmp_path: Path, files: dict[str, str], own: str, expected: int
) -> None:
    for name, text in files.items():
        write(tmp_path / "groups" / name, text)
    write(tmp_path / "own", own)
    assert usable_cpus(tmp_path / "groups", tmp_path / "own") == expected


def test_a_system_without_control_groups_has_its_affinity() -> None:
    assert usable_cpus(Path("/nowhere"), Path("/nowhere")) == HERE
