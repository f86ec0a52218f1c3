"""Warming: everything that the first request would otherwise wait for.

An operator's choice and a line printer come in; the engine that will serve
goes out, in a report of what was compiled. It adds only the telling:
`dispatch.select` does the work, once.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass

from kernels.dispatch import Choice, Compiled, select
from kernels.engine import Engine


@dataclass(frozen=True, slots=True)
class Report:
    """The engine to serve with, and how its kernels came: counts and seconds in all."""

    engine: Engine
    compiled: int
    from_cache: int
    seconds: float


def warm(choice: Choice, progress: Callable[[str], None]) -> Report:
    """Select the engine and say so: a line for each kernel, then one for the engine.

    Safe to call from any thread; afterwards any number of threads may write.
    """
    start = time.perf_counter()
    ready: dict[str, Compiled] = {}  # the last word on each: a bad cache compiles anew

    def observe(kernel: Compiled) -> None:
        ready[kernel.kernel] = kernel
        progress(_line(kernel))

    engine = select(choice, observe)
    progress(f"{engine.name} engine: {engine.reason}")
    from_cache = sum(kernel.from_cache for kernel in ready.values())
    return Report(engine, len(ready) - from_cache, from_cache, time.perf_counter() - start)


def _line(kernel: Compiled) -> str:
    source = "from cache" if kernel.from_cache else "compiled"
    return f"{kernel.kernel} kernel: {source} in {kernel.seconds:.2f} s"
