"""Warming compiles once: a second process, or a second call, finds everything ready."""

import re
from concurrent.futures import ThreadPoolExecutor

from kernels.dispatch import Choice
from kernels.warm import warm

LINE = re.compile(r"(uint8|uint16|float32) kernel: (compiled|from cache) in \d+\.\d\d s")

WARM = """
import numpy as np
from kernels.dispatch import Choice
from kernels.tables import STORAGE, table
from kernels.warm import warm

report = warm(Choice.AUTO, print)
print(report.compiled, report.from_cache)

pixels = np.zeros((20, 20, 4), np.uint8)
for dtype in STORAGE:
    values = table(dtype, (0.5, 0.5, 0.5), (0.5, 0.5, 0.5))
    out = np.zeros((2, 2, 3, 14, 14), values.dtype)
    report.engine.write_patches(pixels, (20, 20), values, out)
kernel = report.engine.patchify
print(len(kernel.signatures), sum(kernel.stats.cache_hits.values()),
      sum(kernel.stats.cache_misses.values()))
"""


def test_a_second_process_compiles_nothing(run_python):
    *lines, engine, report, numbas = run_python(WARM)
    assert [LINE.fullmatch(line)[2] for line in lines] == ["compiled"] * 3
    assert engine == "numba engine: compiled for this CPU, self-test passed"
    assert (report, numbas) == ("3 0", "3 0 3")
    *lines, engine, report, numbas = run_python(WARM)
    assert [LINE.fullmatch(line)[2] for line in lines] == ["from cache"] * 3
    assert engine == "numba engine: compiled for this CPU, self-test passed"
    assert (report, numbas) == ("0 3", "3 3 0")


def test_importing_the_kernel_compiles_nothing(run_python):
    script = "from kernels.patchify import patchify\nprint(patchify.signatures)"
    assert run_python(script) == ["[]"]


def test_a_second_call_compiles_nothing():
    warm(Choice.AUTO, lambda _: None)
    report = warm(Choice.AUTO, lambda _: None)
    assert report.engine.name == "numba"
    assert (report.compiled, report.from_cache) == (0, 3)
    assert report.seconds > 0


def test_numpy_has_nothing_to_compile():
    lines: list[str] = []
    report = warm(Choice.NUMPY, lines.append)
    assert lines == ["numpy engine: chosen by configuration"]
    assert (report.engine.name, report.compiled, report.from_cache) == ("numpy", 0, 0)


def test_many_threads_may_warm_at_once():
    with ThreadPoolExecutor(8) as threads:
        reports = list(threads.map(lambda _: warm(Choice.AUTO, lambda _: None), range(8)))
    assert {report.engine.name for report in reports} == {"numba"}
    assert len(reports[0].engine.patchify.signatures) == 3
