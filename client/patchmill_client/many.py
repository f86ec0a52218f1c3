"""Many items, a request each: bounded concurrency, results in order, bounded memory.

In come a function that sends one item and an iterable of items, out comes an
outcome for each item, in the order of the items, exactly once. An error is an
outcome like any other. Items are taken from the iterable only as outcomes are
taken from the result, so neither side runs ahead of the other.
"""

import asyncio
from collections import deque
from collections.abc import (
    AsyncGenerator,
    AsyncIterable,
    Awaitable,
    Callable,
    Generator,
    Iterable,
    Sized,
)
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from os import PathLike
from typing import TypeAlias

from patchmill_client.batch import Batch
from patchmill_client.errors import InvalidInput, PatchmillError
from patchmill_client.inputs import Source


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of the item at place `index`: either a batch or an error."""

    index: int
    batch: Batch | None
    error: PatchmillError | None

    def result(self) -> Batch:
        """The batch; raises the error where there is none."""
        if self.error is not None:
            raise self.error
        assert self.batch is not None
        return self.batch


@dataclass(frozen=True, slots=True)
class Progress:
    """How far it is: outcomes so far, how many of them are errors, and of how many items.

    `total` is None where the iterable does not know its length.
    """

    done: int
    failed: int
    total: int | None


OnProgress: TypeAlias = Callable[[Progress], None]
"""Called before each outcome is handed out, where the outcomes are taken."""


@dataclass(frozen=True, slots=True)
class Window:
    """At most `concurrency` requests at a time and `look_ahead` outcomes not yet taken."""

    concurrency: int
    look_ahead: int


def window(concurrency: int, look_ahead: int | None, max_connections: int) -> Window:
    """A window that the connections allow; `look_ahead` None is twice the concurrency."""
    if not 1 <= concurrency <= max_connections:
        raise InvalidInput(
            f"concurrency is {concurrency}, must be from 1 to max_connections, {max_connections}"
        )
    wide = 2 * concurrency if look_ahead is None else look_ahead
    if wide < concurrency:
        raise InvalidInput(f"look_ahead is {wide}, must not be below concurrency, {concurrency}")
    return Window(concurrency, wide)


def in_order(
    one: Callable[[Source], Batch],
    sources: Iterable[Source],
    bounds: Window,
    on_progress: OnProgress | None,
) -> Generator[Outcome, None, None]:
    """Outcomes in order, over threads. Closing it early waits for the requests under way."""
    _check_sources(sources)
    return _in_order(one, sources, bounds, _Count(sources, on_progress))


def in_order_async(
    one: Callable[[Source], Awaitable[Batch]],
    sources: Iterable[Source] | AsyncIterable[Source],
    bounds: Window,
    on_progress: OnProgress | None,
) -> AsyncGenerator[Outcome, None]:
    """Outcomes in order, over tasks. Closing it early (`aclose`) cancels the requests under way."""
    _check_sources(sources)
    return _in_order_async(one, sources, bounds, _Count(sources, on_progress))


def _in_order(
    one: Callable[[Source], Batch], sources: Iterable[Source], bounds: Window, count: "_Count"
) -> Generator[Outcome, None, None]:
    supply = _Supply(sources)
    pending: deque[Future[Batch]] = deque()
    with ThreadPoolExecutor(bounds.concurrency, "patchmill") as pool:
        try:
            while True:
                for source in supply.take(bounds.look_ahead - len(pending)):
                    pending.append(pool.submit(one, source))
                if not pending:
                    break
                try:
                    batch, fault = pending.popleft().result(), None
                except PatchmillError as error:
                    batch, fault = None, error
                yield count.next(batch, fault)
        finally:
            for future in pending:
                future.cancel()
    supply.finish()


async def _in_order_async(
    one: Callable[[Source], Awaitable[Batch]],
    sources: Iterable[Source] | AsyncIterable[Source],
    bounds: Window,
    count: "_Count",
) -> AsyncGenerator[Outcome, None]:
    gate = asyncio.Semaphore(bounds.concurrency)

    async def gated(source: Source) -> Batch:
        async with gate:
            return await one(source)

    supply = _Supply(sources)
    pending: deque[asyncio.Task[Batch]] = deque()
    try:
        while True:
            for source in await supply.take_async(bounds.look_ahead - len(pending)):
                pending.append(asyncio.create_task(gated(source)))
            if not pending:
                break
            task = pending[0]
            try:
                batch, fault = await task, None
            except PatchmillError as error:
                batch, fault = None, error
            pending.popleft()
            yield count.next(batch, fault)
    finally:
        for task in pending:
            task.cancel()
        await asyncio.gather(*pending, return_exceptions=True)
    supply.finish()


class _Supply:
    """Takes items from an iterable; a fault of the iterable waits for the outcomes before it."""

    def __init__(self, sources: Iterable[Source] | AsyncIterable[Source]) -> None:
        self._plain = iter(sources) if isinstance(sources, Iterable) else None
        self._async = None if isinstance(sources, Iterable) else aiter(sources)
        self._ended = False
        self._fault: Exception | None = None

    def take(self, most: int) -> list[Source]:
        """At most so many items; fewer only at the end."""
        taken: list[Source] = []
        assert self._plain is not None
        while len(taken) < most and not self._ended:
            try:
                taken.append(next(self._plain))
            except StopIteration:
                self._ended = True
            except Exception as fault:  # noqa: BLE001 - the caller's own, raised by finish()
                self._ended, self._fault = True, fault
        return taken

    async def take_async(self, most: int) -> list[Source]:
        """The same from either kind of iterable."""
        if self._async is None:
            return self.take(most)
        taken: list[Source] = []
        while len(taken) < most and not self._ended:
            try:
                taken.append(await anext(self._async))
            except StopAsyncIteration:
                self._ended = True
            except Exception as fault:  # noqa: BLE001 - the caller's own, raised by finish()
                self._ended, self._fault = True, fault
        return taken

    def finish(self) -> None:
        """Raise the iterable's own fault, if it had one."""
        if self._fault is not None:
            raise self._fault


class _Count:
    """Numbers the outcomes and tells the progress; what the callback raises is the caller's own."""

    def __init__(self, sources: object, on_progress: OnProgress | None) -> None:
        self._total = len(sources) if isinstance(sources, Sized) else None
        self._on_progress = on_progress
        self._done = self._failed = 0

    def next(self, batch: Batch | None, error: PatchmillError | None) -> Outcome:
        outcome = Outcome(self._done, batch, error)
        self._done += 1
        self._failed += error is not None
        if self._on_progress is not None:
            self._on_progress(Progress(self._done, self._failed, self._total))
        return outcome


def _check_sources(sources: object) -> None:
    """One path or one picture is an iterable too, of things that are no pictures."""
    if isinstance(sources, str | PathLike | bytes | bytearray | memoryview):
        raise InvalidInput("map takes an iterable of pictures, not one picture")
    if not isinstance(sources, Iterable | AsyncIterable):
        raise InvalidInput(f"map takes an iterable of pictures, not {type(sources).__name__}")
