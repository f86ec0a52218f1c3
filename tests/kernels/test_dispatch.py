"""Which engine runs, and why: each way in which numba can let us down ends in NumPy."""

import numpy as np
import pytest

from kernels import patchify as module
from kernels import reference
from kernels.dispatch import Choice, Engine, select
from kernels.selftest import SelfTestError, self_test
from kernels.tables import STORAGE, table

TELL = """
import numpy as np
from kernels.dispatch import select
from kernels.selftest import self_test
engine = select()
self_test(engine.write_patches)
print(engine.name)
print(engine.reason)
"""

# What happens before the engine is selected, then the words of the reason.
NUMPY_SERVES = {
    "numba is missing": (
        "import sys; sys.modules['numba'] = None",
        "numba is not installed",
    ),
    "part of numba is missing": (
        "import sys; sys.modules['llvmlite'] = None",
        "numba cannot be imported: ModuleNotFoundError: ",
    ),
    "numba breaks as it loads": (
        "import llvmlite.binding as b; del b.initialize_native_target",
        "numba cannot be imported: AttributeError: ",
    ),
    "numba cannot compile": (
        "import numba.core.compiler as c\n"
        "def broken(*_): raise c.errors.LoweringError('no such\\nmachine')\n"
        "c.Compiler.compile_extra = broken; c.CompilerBase.compile_extra = broken",
        "the kernel cannot be compiled: LoweringError: ",
    ),
}

KERNEL_SERVES_UNCACHED = {
    "the disk is full": (
        "import numba.core.caching as c\n"
        "def full(*_): raise OSError(28, 'No space left on device')\n"
        "c.IndexDataCacheFile.save = full",
        "not cached: OSError: [Errno 28] No space left on device",
    ),
    "the cache is damaged": (
        "import numba.core.caching as c, pickle\n"
        "def damaged(*_): raise pickle.UnpicklingError('pickle data was truncated')\n"
        "c.IndexDataCacheFile.load = damaged",
        "not cached: UnpicklingError: pickle data was truncated",
    ),
}


def wrong_channel(pixels, values, out):
    reference.patchify(np.ascontiguousarray(pixels[:, :, ::-1]), values, out)


def wrong_padding(pixels, values, out):
    reference.patchify(pixels, values, out)
    out[-1, -1, 2, -1, -1] = values[255, 2]


def writes_nothing(_pixels, _values, _out):
    pass


def breaks(_pixels, _values, _out):
    raise MemoryError("out of registers")


BROKEN = {
    "channels mixed up": (wrong_channel, "self-test failed: "),
    "padding not zero": (wrong_padding, "values differ"),
    "nothing written": (writes_nothing, "values differ"),
    "the kernel raises": (breaks, "self-test failed: MemoryError: out of registers"),
}


def patches(engine: Engine, dtype: str) -> bytes:
    pixels = np.random.default_rng(3).integers(0, 256, (45, 60, 3), dtype=np.uint8)
    values = table(dtype, (0.5, 0.4, 0.3), (0.2, 0.3, 0.4))
    out = np.zeros((4, 4, 3, 14, 14), values.dtype)
    engine.write_patches(pixels, (33, 47), values, out)
    return out.tobytes()


def test_numba_is_chosen_where_it_passes_its_test():
    engine = select()
    assert engine.name == "numba"
    assert engine.reason.startswith("compiled for this CPU, self-test passed")


def test_an_operator_can_force_numpy():
    engine = select(Choice.NUMPY)
    assert (engine.name, engine.reason) == ("numpy", "chosen by configuration")


def test_forcing_numpy_does_not_load_numba(run_python):
    script = "import sys\nfrom kernels.dispatch import *\nselect(Choice.NUMPY)\n"
    assert run_python(script + "print('numba' in sys.modules)") == ["False"]


@pytest.mark.parametrize("dtype", STORAGE)
def test_both_engines_write_the_same_bytes(dtype):
    assert patches(select(), dtype) == patches(select(Choice.NUMPY), dtype)


@pytest.mark.parametrize(("before", "reason"), NUMPY_SERVES.values(), ids=NUMPY_SERVES)
def test_without_a_working_numba_numpy_serves_and_says_why(run_python, before, reason):
    name, why = run_python(f"{before}\n{TELL}")
    assert name == "numpy"
    assert why.startswith(reason)


def test_with_the_jit_off_numpy_serves_and_says_why(run_python):
    name, why = run_python(TELL, NUMBA_DISABLE_JIT="1")
    assert name == "numpy"
    assert why == "the kernel cannot be compiled: RuntimeError: NUMBA_DISABLE_JIT is set"


@pytest.mark.parametrize(
    ("before", "note"), KERNEL_SERVES_UNCACHED.values(), ids=KERNEL_SERVES_UNCACHED
)
def test_when_the_cache_fails_the_kernel_serves_without_it(run_python, before, note):
    name, why = run_python(f"{before}\n{TELL}")
    assert name == "numba"
    assert why.endswith(note)


def test_where_no_folder_can_be_written_the_kernel_serves_uncached(run_python, tmp_path):
    (tmp_path / "file").touch()
    name, why = run_python(
        TELL,
        NUMBA_CACHE_DIR=str(tmp_path / "file" / "cache"),
        NUMBA_CACHE_LOCATOR_CLASSES="UserProvidedCacheLocator",
    )
    assert name == "numba"
    assert why.endswith("not cached: numba finds no folder to write to, set NUMBA_CACHE_DIR")


@pytest.mark.parametrize(("body", "words"), BROKEN.values(), ids=BROKEN)
@pytest.mark.parametrize("dtype", STORAGE)
def test_a_broken_kernel_fails_its_test_and_numpy_writes_the_same_bytes(
    monkeypatch, body, words, dtype
):
    wanted = patches(select(Choice.NUMPY), dtype)
    monkeypatch.setattr(module, "patchify", body)
    monkeypatch.setattr(module, "specialise", lambda *_: True)
    engine = select()
    assert engine.name == "numpy"
    assert words in engine.reason
    assert engine.reason.startswith("self-test failed: ")
    assert patches(engine, dtype) == wanted


@pytest.mark.parametrize("dtype", STORAGE)
def test_the_self_test_notices_one_wrong_value_of_one_dtype(dtype):
    def write(pixels, resized, values, out):
        reference.patchify(reference.resize(pixels, *resized), values, out)
        if out.dtype == STORAGE[dtype]:
            raw = out.reshape(-1).view(np.uint8)
            raw[-1] ^= 1

    with pytest.raises(SelfTestError, match="1 of 1200 "):
        self_test(write)


def test_the_self_test_notices_a_wrong_resize():
    def write(pixels, resized, values, out):
        columns = np.arange(resized[1]) * pixels.shape[1] // resized[1]
        rows = np.arange(resized[0]) * pixels.shape[0] // resized[0]
        reference.patchify(pixels[rows][:, columns], values, out)

    with pytest.raises(SelfTestError, match="values differ"):
        self_test(write)


def test_the_self_test_looks_up_all_768_values():
    seen: set[tuple[int, int]] = set()

    def write(pixels, resized, values, out):
        small = reference.resize(pixels, *resized)
        seen.update((int(v), c) for c in range(3) for v in np.unique(small[:, :, c]))
        reference.patchify(small, values, out)

    self_test(write)
    assert len(seen) == 768


def test_importing_the_door_does_not_load_numba(run_python):
    script = "import sys\nimport kernels.dispatch, kernels.warm\nprint('numba' in sys.modules)"
    assert run_python(script) == ["False"]
