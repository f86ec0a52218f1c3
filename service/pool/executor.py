"""Threads for CPU work, so that none of it ever runs on the event loop.

Decoders, the resize and the kernels release the GIL, so threads scale over
cores and nothing is copied between processes. First in, first out. A request
with several parts offers them to threads that have nothing to do: a lone
request uses all cores, a busy service runs one picture per thread.
"""

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from functools import partial
from threading import Lock
from typing import TypeVar, TypeVarTuple

Args = TypeVarTuple("Args")
Result = TypeVar("Result")


class Executor:
    """A fixed number of threads with one queue."""

    def __init__(self, threads: int) -> None:
        self.threads = threads
        self._threads = ThreadPoolExecutor(threads, thread_name_prefix="patchmill")
        self._busy = 0
        self._lock = Lock()

    async def run(self, work: Callable[[*Args], Result], *args: *Args) -> Result:
        """The result of `work(*args)`, computed on one of the threads."""
        return await asyncio.wrap_future(self._threads.submit(self._counted, partial(work, *args)))

    def spread(self, tasks: Sequence[Callable[[], Result]]) -> list[Result]:
        """The tasks' results in order, computed by the caller and by whoever is idle.

        Called on one of the threads. The caller takes back what no other thread
        has begun, so nobody waits for a thread that never comes. Every task
        runs; then the fault of the first that failed is raised, so that the
        same request always gives the same answer.
        """
        offered = [self._threads.submit(self._counted, task) for task in tasks[1:]]
        settled = [_settled(task) for task in tasks[:1]]
        for task, future in zip(tasks[1:], offered, strict=True):
            settled.append(_settled(task) if future.cancel() else future)
        wait(settled)  # no thread may go on writing for a request that has failed
        return [each.result() for each in settled]

    def idle(self) -> int:
        """How many threads have nothing to do just now."""
        with self._lock:
            return max(0, self.threads - self._busy)

    def close(self) -> None:
        """Wait for the work in progress; drop what has not begun."""
        self._threads.shutdown(wait=True, cancel_futures=True)

    def _counted(self, task: Callable[[], Result]) -> Result:
        with self._lock:
            self._busy += 1
        try:
            return task()
        finally:
            with self._lock:
                self._busy -= 1


def _settled(task: Callable[[], Result]) -> Future[Result]:
    """A future that holds the task's result or fault already."""
    future: Future[Result] = Future()
    try:
        future.set_result(task())
    except BaseException as fault:  # noqa: BLE001 - raised again by whoever asks for the result
        future.set_exception(fault)
    return future
