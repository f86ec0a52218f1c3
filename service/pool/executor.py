"""Threads for CPU work, so that none of it ever runs on the event loop.

Decoders, the resize and the kernels release the GIL, so threads scale over
cores and nothing is copied between processes. First in, first out. A request
with several parts offers them to threads that have nothing to do: a lone
request uses all cores, a busy service runs one picture per thread.

A thread cannot be killed. So whoever waits is answered at the deadline, the
work is told to stop at its next check, and what does not stop is seen here.
"""

import asyncio
import contextvars
import os
import threading
import time
import traceback
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from functools import partial
from typing import Any, TypeVar, TypeVarTuple

from service.errors import ClientLeft
from service.pool.permit import Permit

Args = TypeVarTuple("Args")
Result = TypeVar("Result")

NICENESS = 10
"""Of the threads, so that the event loop runs when it has to: with two threads busy on two
cores a probe's p99 is 8 ms so, 12 ms without."""
LOOK_AGAIN_S = 0.05


class Executor:
    """A fixed number of threads with one queue."""

    def __init__(self, threads: int) -> None:
        self.threads = threads
        self._threads = ThreadPoolExecutor(
            threads, thread_name_prefix="patchmill", initializer=_give_way_to_the_loop
        )
        self._busy = 0
        self._lock = threading.Lock()
        self._at_work: set[Permit] = set()
        self._asked: set[Future[Any]] = set()

    async def run(self, work: Callable[[*Args], Result], *args: *Args) -> Result:
        """The result of `work(*args)`, computed on one of the threads, however long it takes."""
        return await asyncio.wrap_future(self._threads.submit(self._counted, partial(work, *args)))

    async def answer(
        self,
        permit: Permit,
        gone: "asyncio.Future[None]",
        on_end: Callable[[], None],
        work: Callable[[], Result],
    ) -> Result:
        """The result of `work`, for as long as the permit lasts and until `gone` is done.

        Raises DeadlineExceeded or ClientLeft at once; work that has not begun is then
        dropped, the rest goes on to its next check. `on_end` is called on the event
        loop when no thread is at it any more.
        """
        loop = asyncio.get_running_loop()
        ended: asyncio.Future[None] = loop.create_future()

        def settle(done: "Future[Result]") -> None:
            self._asked.discard(done)
            on_end()
            if not done.cancelled():
                _let_go(done.exception())
            if not ended.done():
                ended.set_result(None)

        # The context goes with the work: a thread's log lines carry the request's id.
        run = contextvars.copy_context().run
        future = self._threads.submit(run, self._permitted, permit, work)
        self._asked.add(future)
        future.add_done_callback(lambda done: loop.call_soon_threadsafe(settle, done))
        try:
            await asyncio.wait(
                (ended, gone), timeout=permit.left_s, return_when=asyncio.FIRST_COMPLETED
            )
        finally:
            if not ended.done():
                ended.cancel()
                permit.abandoned = True
                future.cancel()
        if ended.cancelled():
            raise ClientLeft if gone.done() else permit.expired()
        try:
            return future.result()
        finally:
            del future  # a fault's stack holds this frame, which must not hold the fault

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
        for each in settled:
            _let_go(each.exception())
        return [each.result() for each in settled]

    def waiting(self) -> int:
        """How many requests no thread has begun yet. Called on the event loop."""
        return sum(not (future.running() or future.done()) for future in self._asked)

    def idle(self) -> int:
        """How many threads have nothing to do just now."""
        with self._lock:
            return max(0, self.threads - self._busy)

    def overdue_s(self) -> float:
        """How long beyond its deadline the worst request is still worked on; 0 is not at all."""
        with self._lock:
            return max((-permit.left_s for permit in self._at_work), default=0.0)

    async def close(self, patience_s: float) -> bool:
        """Drop what has not begun and wait for the rest; False when some is not done in time."""
        self._threads.shutdown(wait=False, cancel_futures=True)
        ends_s = time.monotonic() + patience_s
        while self.idle() < self.threads and time.monotonic() < ends_s:
            await asyncio.sleep(LOOK_AGAIN_S)
        return self.idle() == self.threads

    def _permitted(self, permit: Permit, work: Callable[[], Result]) -> Result:
        with self._lock:
            self._at_work.add(permit)
        try:
            permit.check()
            return self._counted(work)
        finally:
            with self._lock:
                self._at_work.discard(permit)

    def _counted(self, task: Callable[[], Result]) -> Result:
        with self._lock:
            self._busy += 1
        try:
            return task()
        finally:
            with self._lock:
                self._busy -= 1


def _give_way_to_the_loop() -> None:
    """Linux holds a niceness for each thread (setpriority(2), "C library/kernel differences")."""
    thread = threading.get_native_id()
    lower = min(19, os.getpriority(os.PRIO_PROCESS, thread) + NICENESS)
    os.setpriority(os.PRIO_PROCESS, thread, lower)


def _let_go(fault: BaseException | None) -> None:
    """Keep a fault's stack for the log, but not what its frames hold: pictures and buffers.

    A future that holds a fault whose stack holds the future is garbage that
    only the collector finds, and an idle service may not run it for hours.
    """
    while fault:
        traceback.clear_frames(fault.__traceback__)
        fault = fault.__cause__ or fault.__context__


def _settled(task: Callable[[], Result]) -> Future[Result]:
    """A future that holds the task's result or fault already."""
    future: Future[Result] = Future()
    try:
        future.set_result(task())
    except BaseException as fault:  # noqa: BLE001 - raised again by whoever asks for the result
        future.set_exception(fault)
    return future
