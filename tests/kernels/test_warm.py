"""Warming compiles once: a second process, or a second call, finds everything ready."""

import re
import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from kernels import patchify
from kernels.dispatch import Choice
from kernels.warm import warm
from tests.kernels.conftest import needs_vectors

ROOT = Path(__file__).parents[2]
LINE = re.compile(
    r"(uint8 patchify|uint16 patchify|float32 patchify|float resize|weights|fused) kernel: "
    r"(compiled|from cache) in \d+\.\d\d s"
)

WARM = """
import numpy as np
from kernels.affine import FLOATS, affine
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
for dtype in FLOATS:
    values = affine(dtype, (0.5, 0.5, 0.5), (0.5, 0.5, 0.5))
    out = np.zeros((3, 14, 14), values.storage)
    for part in report.engine.split_float(pixels, (14, 14), (0, 0), values, out, 1):
        part()
from kernels import coefficients, floats, fused, patchify
for kernel in (patchify.patchify, floats.write_bands, coefficients.weigh, fused.write_rows):
    print(len(kernel.signatures), sum(kernel.stats.cache_hits.values()),
          sum(kernel.stats.cache_misses.values()))
"""


def test_a_change_of_any_source_is_compiled_anew(run_python, tmp_path):
    shutil.copytree(ROOT / "kernels", tmp_path / "copy" / "kernels")
    script = (
        "from kernels.dispatch import Choice\nfrom kernels.warm import warm\n"
        "report = warm(Choice.PORTABLE, print)\nprint(report.compiled, report.from_cache)"
    )
    place = str(tmp_path / "copy")
    assert run_python(script, PYTHONPATH=place)[-1] == "4 0"
    assert run_python(script, PYTHONPATH=place)[-1] == "0 4"
    with (tmp_path / "copy" / "kernels" / "simd.py").open("a") as simd:
        simd.write("# one more line\n")
    assert run_python(script, PYTHONPATH=place)[-1] == "4 0"


@needs_vectors
def test_a_second_process_compiles_nothing(run_python):
    engine_told = "simd engine: AVX2 and FMA, compiled for this CPU, self-test passed"
    *lines, engine, report, plain, floats, weights, fused = run_python(WARM)
    assert [LINE.fullmatch(line)[2] for line in lines] == ["compiled"] * 6
    assert engine == engine_told
    assert (report, plain) == ("6 0", "3 0 3")
    assert (floats, weights, fused) == ("1 0 1", "1 0 1", "1 0 1")
    *lines, engine, report, plain, floats, weights, fused = run_python(WARM)
    assert [LINE.fullmatch(line)[2] for line in lines] == ["from cache"] * 6
    assert engine == engine_told
    assert (report, plain) == ("0 6", "3 3 0")
    assert (floats, weights, fused) == ("1 1 0", "1 1 0", "1 1 0")


def test_importing_the_kernel_compiles_nothing(run_python):
    script = (
        "from kernels import coefficients, floats, fused, patchify\n"
        "compiled = patchify.patchify, floats.write_bands, coefficients.weigh, fused.write_rows\n"
        "print(*(kernel.signatures for kernel in compiled))"
    )
    assert run_python(script) == ["[] [] [] []"]


def test_a_second_call_compiles_nothing():
    warm(Choice.AUTO, lambda _: None)
    report = warm(Choice.AUTO, lambda _: None)
    assert report.engine.name in ("simd", "portable")
    assert (report.compiled, report.from_cache) in ((0, 6), (0, 4))
    assert report.seconds > 0


def test_numpy_has_nothing_to_compile():
    lines: list[str] = []
    report = warm(Choice.NUMPY, lines.append)
    assert lines == ["numpy engine: chosen by configuration"]
    assert (report.engine.name, report.compiled, report.from_cache) == ("numpy", 0, 0)


def test_many_threads_may_warm_at_once():
    with ThreadPoolExecutor(8) as threads:
        reports = list(threads.map(lambda _: warm(Choice.AUTO, lambda _: None), range(8)))
    assert len({report.engine.name for report in reports}) == 1
    assert len(patchify.patchify.signatures) == 3
