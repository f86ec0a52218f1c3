"""The fast path against Pillow and the twin, in bounds, and from many threads."""

import subprocess
import sys
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from kernels import fast
from kernels.dispatch import Choice, Engine, select
from kernels.normalise import Kind
from kernels.tables import STORAGE, table
from tests.kernels.cases import NORMALISATIONS, Case, random_case
from tests.kernels.conftest import needs_vectors
from tests.kernels.verify import checked, kind_of

pytestmark = needs_vectors

ROOT = Path(__file__).parents[2]

# (height, width) in, (height, width) out: what chance would seldom find.
SIZES = {
    "a long row to one pixel": ((1, 4000), (1, 1)),
    "a long column to one pixel": ((4000, 1), (1, 1)),
    "a long row to a column": ((1, 3999), (300, 1)),
    "a large picture to one pixel": ((1500, 1499), (1, 1)),
    "one pixel to many": ((1, 1), (200, 300)),
    "two pixels to a row": ((1, 2), (1, 900)),
    "one pixel less": ((57, 91), (56, 90)),
    "one pixel more": ((56, 90), (57, 91)),
    "half": ((112, 96), (56, 48)),
    "twice": ((40, 30), (80, 60)),
    "vertical first, and larger": ((90, 40), (50, 60)),
    "just horizontal first": ((120, 60), (100, 50)),
    "just vertical first": ((121, 60), (100, 50)),
    "rows of seven pixels, many neighbours": ((700, 7), (9, 7)),
    "narrower than its window": ((60, 5), (30, 2)),
}


@pytest.fixture(scope="module")
def engine() -> Engine:
    engine = select(Choice.SIMD)
    assert engine.name == "simd", engine.reason
    return engine


@pytest.mark.parametrize("extremes", [False, True], ids=["noise", "black and white"])
@pytest.mark.parametrize("channels", [3, 4])
@pytest.mark.parametrize(("size", "resized"), SIZES.values(), ids=SIZES)
def test_a_size_that_chance_would_seldom_find(engine, size, resized, channels, extremes):
    rng = np.random.default_rng(9)
    pixels = rng.integers(0, 256, (*size, channels), dtype=np.uint8)
    if extremes:
        pixels = (pixels & 1) * np.uint8(255)
    grid = tuple(-(-side // 14) + 1 for side in resized)
    for dtype in STORAGE:
        case = Case(pixels, resized, table(dtype, *NORMALISATIONS[0]), (*grid, 3, 14, 14))
        assert checked(engine, case, 2), str(case)


def test_random_cases_of_every_kind(engine):
    kinds: Counter[str] = Counter()
    for seed in range(300):
        case = random_case(np.random.default_rng(seed))
        kinds[kind_of(case)] += 1
        assert checked(engine, case, 1 + seed % 4), f"seed {seed}, {case}"
    assert len(kinds) == 4
    assert min(kinds.values()) >= 20


def test_random_cases_past_the_caches(engine, monkeypatch):
    monkeypatch.setattr(fast, "STREAMED_BYTES", 0)
    for seed in range(3000, 3150):
        case = random_case(np.random.default_rng(seed))
        assert checked(engine, case, 1 + seed % 4), f"seed {seed}, {case}"


@pytest.mark.parametrize("streamed", [[], ["--streamed"]], ids=["stored", "streamed"])
def test_nothing_outside_its_buffers_is_touched(streamed):
    # In a process of its own, as a touch would end it.
    command = ["-m", "tests.kernels.verify", "--cases", "300", "--seed", "1000", "--guarded"]
    done = subprocess.run(
        [sys.executable, *command, *streamed], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.startswith("simd engine")
    assert done.stdout.endswith("300 cases equal\n")


def test_sixteen_threads_at_once_write_what_pillow_would(engine):
    cases = [random_case(np.random.default_rng(seed)) for seed in range(2000, 2064)]
    with ThreadPoolExecutor(16) as threads:
        equal = list(threads.map(lambda case: checked(engine, case, 3), cases))
    assert all(equal)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
def test_a_formula_is_used_only_where_it_gives_the_table(engine, dtype):
    pixels = np.arange(256, dtype=np.uint8).repeat(4).reshape(16, 16, 4)
    for values in (table(dtype, *NORMALISATIONS[0]).copy(), table(dtype, *NORMALISATIONS[1])):
        if values.flags.writeable:
            values.reshape(-1).view(np.uint8)[3 * values.dtype.itemsize] ^= (
                1  # one bit of one value
            )
        out = np.zeros((1, 1, 3, 16, 16), values.dtype)
        engine.write_patches(pixels, (16, 16), values, out)
        assert out.tobytes() == np.ascontiguousarray(values.T).tobytes()


@pytest.mark.parametrize(
    ("dtype", "kind"),
    [
        ("float32", Kind.FLOAT32),
        ("float16", Kind.FLOAT16),
        ("bfloat16", Kind.BFLOAT16),
        ("uint8", Kind.BYTES),
    ],
)
@pytest.mark.parametrize("patch", [8, 14, 16, 64])
def test_a_mean_and_std_of_one_half_has_a_formula(engine, dtype, kind, patch):
    values = table(dtype, *NORMALISATIONS[0])
    recipe = fast._recipe(engine._split.__self__, values.tobytes(), values.dtype, patch)
    assert recipe.kind == kind


@pytest.mark.parametrize("patch", [1, 7, 8, 13, 14, 16, 32, 64, 65, 100])
def test_patches_of_any_size(engine, patch):
    pixels = np.random.default_rng(6).integers(0, 256, (131, 117, 4), dtype=np.uint8)
    grid = (-(-130 // patch), -(-100 // patch) + 1)
    for dtype in STORAGE:
        values = table(dtype, *NORMALISATIONS[1])
        assert checked(engine, Case(pixels, (130, 100), values, (*grid, 3, patch, patch)), 2)


@pytest.mark.parametrize("oddity", [np.nan, np.inf, -np.inf, 3e38])
def test_a_table_that_no_formula_has_is_looked_up(engine, oddity):
    values = np.linspace(-1, 1, 768, dtype=np.float32).reshape(256, 3)
    values[0, 1] = oddity
    pixels = np.arange(256, dtype=np.uint8).repeat(4).reshape(16, 16, 4)
    out = np.zeros((1, 1, 3, 16, 16), np.float32)
    engine.write_patches(pixels, (16, 16), values, out)
    assert out.tobytes() == np.ascontiguousarray(values.T).tobytes()


def test_a_table_of_other_bytes_is_looked_up(engine):
    values = np.random.default_rng(3).integers(0, 256, (256, 3), dtype=np.uint8)
    pixels = np.random.default_rng(4).integers(0, 256, (40, 30, 4), dtype=np.uint8)
    assert checked(engine, Case(pixels, (28, 28), values, (2, 2, 3, 14, 14)), 2)
