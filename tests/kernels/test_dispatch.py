"""Which engine runs, and why: each way in which it can fail ends in the next slower one."""

import sys
from types import SimpleNamespace

import numpy as np
import pytest

from kernels import cpu, fast, floats, jit, reference
from kernels import patchify as module
from kernels.dispatch import Choice, Engine, select
from kernels.selftest import SelfTestError, self_test
from kernels.tables import STORAGE, table
from tests.kernels.conftest import needs_vectors

TELL = """
import numpy as np
from kernels.dispatch import Choice, select
from kernels.selftest import self_test
engine = select(Choice.PORTABLE)
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

X86 = {"avx2": True, "fma": True, "f16c": True}
# Triple, what numba compiles for, what the CPU has; then the words of the reason.
OTHER_MACHINES = {
    "another architecture": (
        ("aarch64-unknown-linux-gnu", "+neon", {}),
        "the vector kernels are for x86-64, this is aarch64",
    ),
    "an old CPU": (
        ("x86_64-unknown-linux-gnu", "+avx2,+fma,+f16c", {"avx2": False, "fma": True}),
        "the CPU lacks avx2, f16c",
    ),
    "a cache for all hosts, without them": (
        ("x86_64-unknown-linux-gnu", "+sse2,+avx2,-fma", X86),
        "NUMBA_CPU_FEATURES lacks +fma, +f16c",
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
    out.reshape(-1)[-1] = values[255, 2]


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


@needs_vectors
def test_vectors_are_chosen_where_the_cpu_has_them_and_they_pass_their_test():
    for choice in (Choice.AUTO, Choice.SIMD):
        engine = select(choice)
        assert engine.name == "simd"
        assert engine.reason.startswith("AVX2 and FMA, compiled for this CPU, self-test passed")


def test_an_operator_can_force_the_portable_kernel():
    engine = select(Choice.PORTABLE)
    assert engine.name == "portable"
    assert engine.reason.startswith("chosen by configuration; compiled for this CPU, self-test")


def cpu_of(triple: str, features: str, host: dict[str, bool]):
    """What `cpu.py` asks, answered for another machine."""
    codegen = SimpleNamespace(magic_tuple=lambda: (triple, "any", features))
    target = SimpleNamespace(target_context=SimpleNamespace(codegen=lambda: codegen))
    return target, SimpleNamespace(get_host_cpu_features=lambda: host)


@pytest.mark.parametrize(("machine", "words"), OTHER_MACHINES.values(), ids=OTHER_MACHINES)
@pytest.mark.parametrize("choice", [Choice.AUTO, Choice.SIMD])
def test_without_the_instructions_the_portable_kernel_serves_and_says_why(
    monkeypatch, choice, machine, words
):
    target, llvm = cpu_of(*machine)
    monkeypatch.setattr(cpu, "cpu_target", target)
    monkeypatch.setattr(cpu, "llvm", llvm)
    monkeypatch.delitem(sys.modules, "kernels.simd", raising=False)
    engine = select(choice)
    assert engine.name == "portable"
    assert engine.reason.startswith(f"no vector kernels: {words}; compiled for this CPU")
    assert "kernels.simd" not in sys.modules
    assert patches(engine, "float32") == patches(select(Choice.NUMPY), "float32")


@needs_vectors
@pytest.mark.parametrize("dtype", STORAGE)
def test_wrong_vectors_fail_their_test_and_the_portable_kernel_serves(monkeypatch, dtype):
    monkeypatch.setattr(fast, "vertical_first", lambda *_: False)  # as Pillow 12 did
    engine = select()
    assert engine.name == "portable"
    assert engine.reason.startswith("no vector kernels: self-test failed: ")
    assert patches(engine, dtype) == patches(select(Choice.NUMPY), dtype)


@needs_vectors
def test_vectors_that_cannot_be_compiled_leave_the_portable_kernel(monkeypatch):
    def broken(kernel, arguments):
        if kernel not in (module.patchify, floats.write_bands):
            raise MemoryError("out of registers")
        return specialise(kernel, arguments)

    specialise = jit.specialise
    monkeypatch.setattr(jit, "specialise", broken)
    engine = select()
    assert engine.name == "portable"
    assert "no vector kernels: the kernel cannot be compiled: MemoryError: out of" in engine.reason


def test_an_operator_can_force_numpy():
    engine = select(Choice.NUMPY)
    assert (engine.name, engine.reason) == ("numpy", "chosen by configuration")


def test_forcing_numpy_does_not_load_numba(run_python):
    script = "import sys\nfrom kernels.dispatch import *\nselect(Choice.NUMPY)\n"
    assert run_python(script + "print('numba' in sys.modules)") == ["False"]


@pytest.mark.parametrize("dtype", STORAGE)
def test_all_engines_write_the_same_bytes(dtype):
    wanted = patches(select(Choice.NUMPY), dtype)
    assert {patches(select(choice), dtype) for choice in Choice} == {wanted}


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
    assert name == "portable"
    assert why.endswith(note)


def test_where_no_folder_can_be_written_the_kernel_serves_uncached(run_python, tmp_path):
    (tmp_path / "file").touch()
    name, why = run_python(
        TELL,
        NUMBA_CACHE_DIR=str(tmp_path / "file" / "cache"),
        NUMBA_CACHE_LOCATOR_CLASSES="UserProvidedCacheLocator",
    )
    assert name == "portable"
    assert why.endswith("not cached: numba finds no folder to write to, set NUMBA_CACHE_DIR")


@pytest.mark.parametrize(("body", "words"), BROKEN.values(), ids=BROKEN)
@pytest.mark.parametrize("dtype", STORAGE)
def test_a_broken_kernel_fails_its_test_and_numpy_writes_the_same_bytes(
    monkeypatch, body, words, dtype
):
    wanted = patches(select(Choice.NUMPY), dtype)
    monkeypatch.setattr(module, "patchify", body)
    monkeypatch.setattr(jit, "specialise", lambda *_: True)
    engine = select(Choice.PORTABLE)
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
