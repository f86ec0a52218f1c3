"""Kernels compiled elsewhere: read where nothing can be written, run only where they fit."""

import stat
from pathlib import Path

import llvmlite.binding as llvm
import pytest

from kernels import target
from tests.kernels.conftest import needs_vectors

NAME, FEATURES = target.NAME, target.FEATURES
LEVEL_3 = {NAME: "x86-64-v3", FEATURES: "+avx2,+fma"}
FIRST = {NAME: "x86-64", FEATURES: ""}

# What the environment says, what the CPU has, what the environment says then.
SETTLED = {
    "nothing is told": ({}, {"avx2": False}, {}),
    "a name alone": ({NAME: "skylake"}, {"avx2": False}, {NAME: "skylake"}),
    "all features are there": (LEVEL_3, {"avx2": True, "fma": True, "bmi": False}, LEVEL_3),
    "one is lacking": (LEVEL_3, {"avx2": True, "fma": False}, FIRST),
    "one is unknown": (LEVEL_3, {"avx2": True}, FIRST),
    "one is turned off": ({FEATURES: "+avx2,-fma"}, {"avx2": True}, {FEATURES: "+avx2,-fma"}),
    "settled before": (FIRST, {}, FIRST),
}

SHIPPED = {
    "NUMBA_CACHE_LOCATOR_CLASSES": "kernels.shipped.ShippedCacheLocator",
    "NUMBA_CPU_NAME": "x86-64-v3",
    "NUMBA_CPU_FEATURES": "+avx,+avx2,+bmi,+bmi2,+f16c,+fma,+lzcnt,+movbe",
}
BUILT = {name: value for name, value in SHIPPED.items() if "LOCATOR" not in name}

WARM = """
from kernels.dispatch import Choice
from kernels.warm import warm
report = warm(Choice.AUTO, lambda _: None)
print(report.engine.name, report.compiled, report.from_cache)
print(report.engine.reason)
"""

OLD_CPU = """
import llvmlite.binding as llvm
real = llvm.get_host_cpu_features()
llvm.get_host_cpu_features = lambda: {**real, "lzcnt": False, "avx2": False}
"""


@pytest.mark.parametrize(("before", "host", "after"), SETTLED.values(), ids=SETTLED)
def test_the_target_is_one_that_the_cpu_can_run(monkeypatch, before, host, after):
    monkeypatch.setattr(llvm, "get_host_cpu_features", lambda: host)
    environ = dict(before)
    target.settle(environ)
    assert environ == after


@needs_vectors
def test_a_shipped_cache_is_read_and_never_written(run_python, tmp_path):
    cache = tmp_path / "numba"
    assert run_python(WARM, **BUILT)[0] == "simd 6 0"
    before = {path: (path.stat().st_mtime_ns, path.read_bytes()) for path in files(cache)}
    for folder in (cache, *cache.iterdir()):
        folder.chmod(stat.S_IRUSR | stat.S_IXUSR)
    told, reason = run_python(WARM, **SHIPPED)
    assert told == "simd 0 6"
    assert reason == "AVX2 and FMA, compiled for x86-64-v3, self-test passed"
    after = {path: (path.stat().st_mtime_ns, path.read_bytes()) for path in files(cache)}
    assert after == before


@needs_vectors
def test_an_older_cpu_takes_the_kernels_of_the_first_level(run_python):
    assert run_python(WARM, **BUILT | FIRST)[0] == "portable 4 0"
    told, reason = run_python(OLD_CPU + WARM, **SHIPPED)
    assert told == "portable 0 4"
    assert reason.startswith("no vector kernels: the CPU lacks avx2; compiled for x86-64, self-")


def test_without_the_folder_the_kernel_serves_uncached_and_says_so(run_python, tmp_path):
    gone = {**SHIPPED, **FIRST, "NUMBA_CACHE_DIR": str(tmp_path / "nowhere")}
    told, reason = run_python(WARM, **gone)
    assert told == "portable 4 0"
    assert "not cached: " in reason
    assert not (tmp_path / "nowhere").exists()


def files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.is_file())
