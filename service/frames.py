"""Frames to patches: every frame of a request decoded and written, spread over threads.

In come admitted headers and plans, out comes one flat buffer with the patches
of all items, and the decoder's notes. A lone request uses every idle thread,
for its frames and for the rows of one frame; a busy service decodes one
picture per thread.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Protocol, TypeVar

from numpy.typing import NDArray

from kernels.engine import Engine
from kernels.tables import Stored
from service.buffers import Buffers
from service.codec.decode import decode
from service.errors import at_item
from service.telemetry.stages import Stages
from service.types import Background, Buffer, Header, Item, Plan, SixteenBit

Result = TypeVar("Result")


class Crew(Protocol):
    """Threads that may lend a hand (`pool.executor.Executor` is one)."""

    def spread(self, tasks: Sequence[Callable[[], Result]], /) -> list[Result]: ...

    def idle(self) -> int: ...


class Permit(Protocol):
    """The leave of one request to go on (`pool.permit.Permit` is one)."""

    def check(self) -> None:
        """Raises DeadlineExceeded, or ClientLeft."""

    def reserve(self, pixels: int, answer_bytes: int, /) -> Callable[[], None]:
        """Wait for room; call what is returned once the answer's memory is free."""

    def decoded(self) -> None:
        """The pixels are gone again."""


@dataclass(frozen=True, slots=True)
class Press:
    """What writes patches, shared by all requests of a process."""

    engine: Engine
    buffers: Buffers
    crew: Crew
    sixteen_bit: SixteenBit


@dataclass(frozen=True, slots=True)
class Run:
    """What all frames of one request share; `table` is (256, 3) of `kernels.tables`."""

    table: NDArray[Stored]
    background: Background
    permit: Permit


@dataclass(frozen=True, slots=True)
class Frames:
    """One item's frames: encoded, admitted and planned."""

    item: Item
    headers: tuple[Header, ...]
    plan: Plan


@dataclass(frozen=True, slots=True)
class Written:
    """`elements` is flat and holds all items in order; `notes` are by item."""

    elements: NDArray[Stored]
    notes: tuple[tuple[str, ...], ...]


def write(items: Sequence[Frames], run: Run, press: Press, stages: Stages) -> Written:
    """Decode and write every frame, as soon as the permit gives room for pixels and answer.

    Raises `decode`'s faults with the item at fault, of several the first in order, and
    the permit's.
    """
    try:
        elements = _room(items, run, press.buffers)
        stages.lap("queue")
        return _written(items, elements, run, press, stages)
    finally:
        run.permit.decoded()


def _written(
    items: Sequence[Frames],
    elements: NDArray[Stored],
    run: Run,
    press: Press,
    stages: Stages,
) -> Written:
    jobs = [
        _Job(index, data, header, each.plan, out)
        for index, (each, outs) in enumerate(zip(items, _shares(elements, items), strict=True))
        for data, header, out in zip(each.item.frames, each.headers, outs, strict=True)
    ]
    done = press.crew.spread([partial(_write, job, run, press) for job in jobs])
    notes: list[set[str]] = [set() for _ in items]
    for job, (said, spent) in zip(jobs, done, strict=True):
        notes[job.item].update(said)
        stages.add(spent)
    return Written(elements, tuple(tuple(sorted(each)) for each in notes))


@dataclass(frozen=True, slots=True)
class _Job:
    """One frame, and where its patches go: (h, w, 3, P, P)."""

    item: int
    data: Buffer
    header: Header
    plan: Plan
    out: NDArray[Stored]


def _write(job: _Job, run: Run, press: Press) -> tuple[tuple[str, ...], Stages]:
    stages = Stages()
    run.permit.check()
    with at_item(job.item):
        pixels = decode(job.data, job.header, run.background, press.sixteen_bit, press.buffers)
    stages.lap("decode")
    resized = (job.plan.resized.height, job.plan.resized.width)
    hands = press.crew.idle() + 1
    bands = press.engine.split(pixels.array, resized, run.table, job.out, hands)
    press.crew.spread([partial(_permitted, run.permit, band) for band in bands])
    stages.lap("patchify")
    return pixels.notes, stages


def _permitted(permit: Permit, band: Callable[[], None]) -> None:
    permit.check()
    band()


def _room(items: Sequence[Frames], run: Run, buffers: Buffers) -> NDArray[Stored]:
    """A buffer for the elements of all items, of the table's type, within the permit's share."""
    pixels = sum(header.stored.pixels for each in items for header in each.headers)
    length_bytes = sum(each.plan.elements for each in items) * run.table.itemsize
    on_gone = run.permit.reserve(pixels, length_bytes)
    room: NDArray[Stored] = buffers.take(length_bytes, on_gone).view(run.table.dtype)
    return room


def _shares(elements: NDArray[Stored], items: Sequence[Frames]) -> Iterator[NDArray[Stored]]:
    """Each item's share of the buffer, as (t, h, w, 3, P, P) views."""
    start = 0
    for each in items:
        grid, edge = each.plan.grid, each.plan.patch_px
        share = elements[start : start + each.plan.elements]
        yield share.reshape(grid.t, grid.h, grid.w, 3, edge, edge)
        start += each.plan.elements
