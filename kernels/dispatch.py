"""Which engine runs here: the compiled kernel where it can be trusted, else NumPy.

An operator's choice comes in; an `Engine` that passed its self-test goes out,
with the reason in words. It never raises: whatever is wrong with numba, its
cache or its code, the same bytes come out of the NumPy engine, only later.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from types import ModuleType
from typing import Any

from kernels import reference
from kernels.engine import Engine
from kernels.selftest import SelfTestError, self_test

__all__ = ["Choice", "Compiled", "Engine", "ignore", "select"]


class Choice(StrEnum):
    """What an operator may ask for."""

    AUTO = "auto"
    NUMPY = "numpy"


@dataclass(frozen=True, slots=True)
class Compiled:
    """One specialisation of the kernel is ready; `dtype` is that of its storage."""

    dtype: str
    from_cache: bool
    seconds: float


def ignore(_: Compiled) -> None:
    """An observer for those who do not want to know."""


def select(choice: Choice = Choice.AUTO, observe: Callable[[Compiled], None] = ignore) -> Engine:
    """The engine for this machine, compiled and tested; `observe` hears of each kernel.

    Takes seconds when numba must compile, less when its cache has the kernels.
    Calling it again compiles nothing where the cache works, but tests again.
    `observe` must not raise: it is called amid the compiling.
    """
    if choice == Choice.NUMPY:
        return _numpy("chosen by configuration")
    try:
        from kernels import patchify  # noqa: PLC0415 - numba may be missing or unfit
    except ModuleNotFoundError as error:
        if error.name == "numba":
            return _numpy("numba is not installed")
        return _numpy(f"numba cannot be imported: {_told(error)}")
    except Exception as error:  # noqa: BLE001 - numba may raise anything as it loads
        return _numpy(f"numba cannot be imported: {_told(error)}")
    try:
        kernel, note = _compiled(patchify, observe)
    except Exception as error:  # noqa: BLE001 - numba and LLVM raise many kinds
        return _numpy(f"the kernel cannot be compiled: {_told(error)}")
    return _tested(Engine("numba", f"compiled for this CPU, self-test passed{note}", kernel))


def _numpy(reason: str) -> Engine:
    return Engine("numpy", reason, reference.patchify)


def _compiled(module: ModuleType, observe: Callable[[Compiled], None]) -> tuple[Any, str]:
    """The kernel with all its specialisations, and what to say of its cache."""
    kernel = module.patchify
    try:
        _specialise(module, kernel, observe)
    except Exception as error:
        if not module.is_cached(kernel):
            raise
        # The disk is full, or a file of the cache is damaged.
        kernel = module.uncached(kernel)
        _specialise(module, kernel, observe)
        return kernel, f"; not cached: {_told(error)}"
    if not module.is_cached(kernel):
        return kernel, "; not cached: numba finds no folder to write to, set NUMBA_CACHE_DIR"
    return kernel, ""


def _specialise(module: ModuleType, kernel: Any, observe: Callable[[Compiled], None]) -> None:
    for storage in module.SPECIALISATIONS:
        start = time.perf_counter()
        from_cache = module.specialise(kernel, storage)
        observe(Compiled(storage.name, from_cache, time.perf_counter() - start))


def _tested(engine: Engine) -> Engine:
    """`engine`, or NumPy when its bytes are not those of the definition."""
    try:
        self_test(engine.write_patches)
    except SelfTestError as error:
        return _numpy(f"self-test failed: {error}")
    except Exception as error:  # noqa: BLE001 - a broken kernel may raise anything
        return _numpy(f"self-test failed: {_told(error)}")
    return engine


def _told(error: Exception) -> str:
    """One line of an error; numba's own run over many."""
    lines = str(error).strip().splitlines() or ["no message"]
    return f"{type(error).__name__}: {lines[0]}"
