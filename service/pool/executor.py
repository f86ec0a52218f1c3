"""Threads for CPU work, so that none of it ever runs on the event loop.

Decoders, the resize and the kernels release the GIL, so threads scale over
cores and nothing is copied between processes. First in, first out.
"""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar, TypeVarTuple

Args = TypeVarTuple("Args")
Result = TypeVar("Result")


class Executor:
    """A fixed number of threads with one queue."""

    def __init__(self, threads: int) -> None:
        self.threads = threads
        self._threads = ThreadPoolExecutor(threads, thread_name_prefix="patchmill")

    async def run(self, work: Callable[[*Args], Result], *args: *Args) -> Result:
        """The result of `work(*args)`, computed on one of the threads."""
        return await asyncio.wrap_future(self._threads.submit(work, *args))

    def close(self) -> None:
        """Wait for the work in progress; drop what has not begun."""
        self._threads.shutdown(wait=True, cancel_futures=True)
