"""How this package compiles: one way for what is called, one for what is inlined.

A function's body comes in, numba's dispatcher goes out. Importing this module
imports numba, which may fail; it compiles nothing.
"""

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

from numba import config, njit

TARGET: str = config.CPU_NAME or "this CPU"  # type: ignore[attr-defined] # set as it loads
"""What numba compiles for: a name of LLVM's where NUMBA_CPU_NAME has one."""

_SOURCES = hashlib.sha256(
    b"".join(path.read_bytes() for path in sorted(Path(__file__).parent.glob("*.py")))
).hexdigest()


def compiled(body: Callable[..., Any]) -> Any:
    """A function without the GIL; cached where numba finds a folder that it may write to.

    Division follows NumPy (no ZeroDivisionError), which leaves no raise in a loop.
    """
    try:
        kernel = njit(nogil=True, cache=True, error_model="numpy")(body)
    except RuntimeError:  # numba's "no locator available": a read-only installation
        return uncached(body)
    _stamp(kernel)
    return kernel


def _stamp(kernel: Any) -> None:
    """Have the cache miss when any source here changes.

    numba looks at the file that the function is in. Ours are inlined from
    several: without this a change of `simd.py` would not be compiled.
    """
    file = getattr(getattr(kernel, "_cache", None), "_cache_file", None)
    if file is not None:
        file._source_stamp = (file._source_stamp, _SOURCES)


def uncached(body: Callable[..., Any]) -> Any:
    """The same, which neither reads nor writes numba's cache."""
    return njit(nogil=True, error_model="numpy")(body)


def inlined(body: Callable[..., Any]) -> Any:
    """A helper that LLVM always inlines: an argument that is constant there folds away.

    It is not cached: it lives in its callers, and their cache entries hold it.
    """
    return njit(nogil=True, error_model="numpy", forceinline=True)(body)


def called(body: Callable[..., Any]) -> Any:
    """A helper of one copy that its callers call: for large ones. Not cached, like `inlined`."""
    return njit(nogil=True, error_model="numpy")(body)


def is_cached(kernel: Any) -> bool:
    """False, too, when the JIT is off and the kernel is its plain body."""
    return hasattr(kernel, "stats") and kernel.stats.cache_path is not None


def specialise(kernel: Any, signature: tuple[Any, ...]) -> bool:
    """Compile `kernel` for `signature`, or load it; True when nothing was compiled.

    Raises whatever numba raises, and RuntimeError when NUMBA_DISABLE_JIT is set.
    """
    if not hasattr(kernel, "compile"):
        raise RuntimeError("NUMBA_DISABLE_JIT is set")
    misses = kernel.stats.cache_misses[signature]
    kernel.compile(signature)
    return bool(kernel.stats.cache_misses[signature] == misses)
