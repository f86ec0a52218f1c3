"""Which engine runs here: the fastest way that can be trusted.

An operator's choice comes in; an `Engine` that passed its self-test goes out,
with the reason in words. There are three ways, each the fallback of the one
before: vector kernels (`simd`), a plain compiled kernel behind Pillow's resize
(`portable`), and NumPy behind it (`numpy`). It never raises: whatever is wrong
with the CPU, numba, its cache or its code, the same bytes come out, only later.
"""

import os
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

from kernels import float_split, reference, target
from kernels.engine import Engine, by_pillow
from kernels.selftest import SelfTestError, self_test, self_test_floats

__all__ = ["Choice", "Compiled", "Engine", "ignore", "select"]


class Choice(StrEnum):
    """What an operator may ask for. AUTO is the fastest that works here, which SIMD is as well."""

    AUTO = "auto"
    SIMD = "simd"
    PORTABLE = "portable"
    NUMPY = "numpy"


@dataclass(frozen=True, slots=True)
class Compiled:
    """A kernel is ready, or one specialisation of it."""

    kernel: str
    from_cache: bool
    seconds: float


def ignore(_: Compiled) -> None:
    """An observer for those who do not want to know."""


class _Unfit(Exception):
    """A way that cannot be taken here; the message is the reason."""


def select(choice: Choice = Choice.AUTO, observe: Callable[[Compiled], None] = ignore) -> Engine:
    """The engine for this machine, compiled and tested; `observe` hears of each kernel.

    Takes seconds when numba must compile, less when its cache has the kernels.
    Calling it again compiles nothing where the cache works, but tests again.
    `observe` must not raise: it is called amid the compiling.
    """
    if choice == Choice.NUMPY:
        return _numpy("chosen by configuration")
    try:
        portable = _portable(observe)
    except _Unfit as unfit:
        return _numpy(str(unfit))
    if choice == Choice.PORTABLE:
        return _because(portable, "chosen by configuration")
    try:
        return _simd(portable, observe)
    except _Unfit as unfit:
        return _because(portable, f"no vector kernels: {unfit}")


def _numpy(reason: str) -> Engine:
    return Engine("numpy", reason, by_pillow(reference.patchify), float_split.by_twin)


def _because(engine: Engine, reason: str) -> Engine:
    return replace(engine, reason=f"{reason}; {engine.reason}")


def _portable(observe: Callable[[Compiled], None]) -> Engine:
    """Pillow's resize and a compiled kernel behind it, and the float resize; raises _Unfit."""
    try:
        target.settle(os.environ)
        from kernels import floats, jit, patchify  # noqa: PLC0415 - numba may be missing or unfit
    except ModuleNotFoundError as error:
        if error.name == "numba":
            raise _Unfit("numba is not installed") from error
        raise _Unfit(f"numba cannot be imported: {_told(error)}") from error
    except Exception as error:
        raise _Unfit(f"numba cannot be imported: {_told(error)}") from error
    wanted = [
        (f"{storage.name} patchify", patchify.patchify, patchify.arguments(storage))
        for storage in patchify.SPECIALISATIONS
    ]
    wanted.append(("float resize", floats.write_bands, floats.ARGUMENTS))
    (kernel, write_bands), note = _compiled(jit, wanted, observe)
    reason = f"compiled for {jit.TARGET}, self-test passed{note}"
    by_kernel = float_split.by_kernel(write_bands)
    return _tested(Engine("portable", reason, by_pillow(kernel), by_kernel))


def _simd(portable: Engine, observe: Callable[[Compiled], None]) -> Engine:
    """The vector kernels; raises _Unfit."""
    try:
        from kernels import cpu, jit  # noqa: PLC0415 - as above

        lacking = cpu.missing()
    except Exception as error:
        raise _Unfit(f"what the CPU can do is not known: {_told(error)}") from error
    if lacking:
        raise _Unfit(lacking)
    try:
        from kernels import coefficients, fast, fused  # noqa: PLC0415 - as above
    except Exception as error:
        raise _Unfit(f"they cannot be imported: {_told(error)}") from error
    wanted = [
        ("weights", coefficients.weigh, coefficients.ARGUMENTS),
        ("fused", fused.write_rows, fused.ARGUMENTS),
    ]
    (weigh, write_rows), note = _compiled(jit, wanted, observe)
    split = fast.Fast(weigh, write_rows, portable._split).split
    reason = f"AVX2 and FMA, compiled for {jit.TARGET}, self-test passed{note}"
    return _tested(Engine("simd", reason, split, portable._float_split))


def _compiled(
    jit: Any, wanted: list[tuple[str, Any, tuple[Any, ...]]], observe: Callable[[Compiled], None]
) -> tuple[list[Any], str]:
    """The distinct kernels of `wanted`, specialised, and what to say of their cache."""
    kernels = list(dict.fromkeys(kernel for _, kernel, _ in wanted))
    try:
        try:
            _specialise(jit, wanted, observe)
        except Exception as error:
            if not any(jit.is_cached(kernel) for kernel in kernels):
                raise
            # The disk is full, or a file of the cache is damaged.
            anew = {kernel: jit.uncached(kernel.py_func) for kernel in kernels}
            _specialise(jit, [(name, anew[kernel], of) for name, kernel, of in wanted], observe)
            return list(anew.values()), f"; not cached: {_told(error)}"
    except Exception as error:
        raise _Unfit(f"the kernel cannot be compiled: {_told(error)}") from error
    if not all(jit.is_cached(kernel) for kernel in kernels):
        return (
            kernels,
            "; not cached: numba finds no folder to write to, set NUMBA_CACHE_DIR",
        )
    return kernels, ""


def _specialise(
    jit: Any, wanted: list[tuple[str, Any, tuple[Any, ...]]], observe: Callable[[Compiled], None]
) -> None:
    for name, kernel, arguments in wanted:
        start = time.perf_counter()
        from_cache = jit.specialise(kernel, arguments)
        observe(Compiled(name, from_cache, time.perf_counter() - start))


def _tested(engine: Engine) -> Engine:
    """The engine, when its bytes are those of the definition; raises _Unfit."""
    try:
        self_test(engine.write_patches)
        self_test_floats(engine.split_float)
    except SelfTestError as error:
        raise _Unfit(f"self-test failed: {error}") from error
    except Exception as error:
        raise _Unfit(f"self-test failed: {_told(error)}") from error
    return engine


def _told(error: Exception) -> str:
    """One line of an error; numba's own run over many."""
    lines = str(error).strip().splitlines() or ["no message"]
    return f"{type(error).__name__}: {lines[0]}"
