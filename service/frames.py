"""Frames to patches: every frame of a request decoded and written, spread over threads.

In come admitted headers and plans, out comes one flat buffer with the patches
of all items, and the decoder's notes. A lone request uses every idle thread,
for its frames and for the rows of one frame; a busy service decodes one
picture per thread.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Protocol, TypeAlias, TypeVar

from numpy.typing import NDArray

from kernels.affine import Affine
from kernels.engine import Engine
from kernels.float_split import Part
from kernels.tables import Stored
from service.buffers import Buffers
from service.codec.decode import decode
from service.errors import at_item
from service.telemetry.stages import Stages
from service.types import (
    Arrangement,
    Background,
    Buffer,
    Header,
    Item,
    Layout,
    Order,
    Pixels,
    Plan,
    SixteenBit,
    Tile,
)

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


Values: TypeAlias = NDArray[Stored] | Affine
"""How pixels become elements: bytes by a table of `kernels.tables`, floats by a line."""


Hashed: TypeAlias = Callable[[Buffer, Pixels], str]
"""Gives a picture's digest, of its file and its pixels."""


@dataclass(frozen=True, slots=True)
class Finish:
    """What all frames of a request become."""

    values: Values
    arrangement: Arrangement
    background: Background
    hashed: Hashed | None = None
    """For digests that are not known before the pixels are."""
    known: frozenset[str] = frozenset()
    """Of what `hashed` gives, those whose elements the receiver has: they need not be made."""
    text_bytes: Callable[[Plan], int] = lambda _: 0
    """What packing will take beside an item's elements."""


@dataclass(frozen=True, slots=True)
class Frames:
    """One item's frames: encoded, admitted and planned; `digest` is ours.

    Of a `known` one nothing is made: its receiver has the elements.
    """

    item: Item
    headers: tuple[Header, ...]
    plan: Plan
    digest: str
    known: bool

    @property
    def elements(self) -> int:
        return 0 if self.known else self.plan.elements


@dataclass(frozen=True, slots=True)
class Made:
    """What is told of one item. Where it is `known`, its elements are whatever lay there."""

    digest: str
    known: bool
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Written:
    """`elements` is flat and holds all items in order; `made` is by item."""

    elements: NDArray[Stored]
    made: tuple[Made, ...]


def write(
    items: Sequence[Frames], finish: Finish, press: Press, permit: Permit, stages: Stages
) -> Written:
    """Decode and write every frame, as soon as the permit gives room for pixels and answer.

    Raises `decode`'s faults with the item at fault, of several the first in order, and
    the permit's.
    """
    try:
        elements = _room(items, finish, press.buffers, permit)
        stages.lap("queue")
        jobs = [
            job
            for index, (each, outs) in enumerate(
                zip(items, _shares(elements, items, finish.arrangement), strict=True)
            )
            if not each.known
            for job in _jobs(index, each, outs)
        ]
        done = press.crew.spread([partial(_write, job, finish, press, permit) for job in jobs])
    finally:
        permit.decoded()
    notes: list[set[str]] = [set() for _ in items]
    digests = [each.digest for each in items]
    for job, (digest, said, spent) in zip(jobs, done, strict=True):
        digests[job.item] = digest or digests[job.item]
        notes[job.item].update(said)
        stages.add(spent)
    return Written(
        elements,
        tuple(
            Made(digest, each.known or digest in finish.known, tuple(sorted(said)))
            for each, digest, said in zip(items, digests, notes, strict=True)
        ),
    )


@dataclass(frozen=True, slots=True)
class _Job:
    """One frame, the squares to make of it, and where each goes: `kernels.arrange`."""

    item: int
    data: Buffer
    header: Header
    tiles: tuple[Tile, ...]
    outs: tuple[NDArray[Stored], ...]


def _jobs(index: int, each: Frames, outs: NDArray[Stored]) -> Iterator[_Job]:
    """One for each frame of an item; a picture of tiles is decoded once for all."""
    if each.plan.tiles:
        yield _Job(index, each.item.frames[0], each.headers[0], each.plan.tiles, tuple(outs))
        return
    whole = (Tile(each.plan.resized, 0, 0),)
    for data, header, out in zip(each.item.frames, each.headers, outs, strict=True):
        yield _Job(index, data, header, whole, (out,))


def _write(
    job: _Job, finish: Finish, press: Press, permit: Permit
) -> tuple[str | None, tuple[str, ...], Stages]:
    stages = Stages()
    permit.check()
    with at_item(job.item):
        pixels = decode(job.data, job.header, finish.background, press.sixteen_bit, press.buffers)
    stages.lap("decode")
    digest = finish.hashed(job.data, pixels) if finish.hashed else None
    if digest:
        stages.lap("pack")
        if digest in finish.known:
            return digest, pixels.notes, stages
    hands = -(-(press.crew.idle() + 1) // len(job.outs))
    parts: list[Part] = []
    for tile, out in zip(job.tiles, job.outs, strict=True):
        resized = (tile.resized.height, tile.resized.width)
        if isinstance(finish.values, Affine):
            corner = (tile.top, tile.left)
            parts += press.engine.split_float(
                pixels.array, resized, corner, finish.values, out, hands
            )
        else:
            parts += press.engine.split(pixels.array, resized, finish.values, out, hands)
    press.crew.spread([partial(_permitted, permit, part) for part in parts])
    stages.lap("patchify")
    return digest, pixels.notes, stages


def _permitted(permit: Permit, part: Part) -> None:
    permit.check()
    part()


def _room(
    items: Sequence[Frames], finish: Finish, buffers: Buffers, permit: Permit
) -> NDArray[Stored]:
    """A buffer for the elements of all items, of the values' type, within the permit's share.

    The share is given back when the elements are gone, so packing keeps them as long as
    what it makes beside them.
    """
    values = finish.values
    storage = values.storage if isinstance(values, Affine) else values.dtype
    made = [each for each in items if not each.known]
    pixels = sum(header.stored.pixels for each in made for header in each.headers)
    length_bytes = sum(each.elements for each in made) * storage.itemsize
    text_bytes = sum(finish.text_bytes(each.plan) for each in made)
    on_gone = permit.reserve(pixels, length_bytes + text_bytes)
    room: NDArray[Stored] = buffers.take(length_bytes, on_gone).view(storage)
    return room


def _shares(
    elements: NDArray[Stored], items: Sequence[Frames], arrangement: Arrangement
) -> Iterator[NDArray[Stored]]:
    """Each item's share of the buffer: for each frame or tile a shape of `kernels.arrange`."""
    start = 0
    for each in items:
        share = elements[start : start + each.elements]
        if not each.known:
            share = share.reshape(each.plan.grid.t, *_frame_shape(each.plan, arrangement))
        yield share
        start += each.elements


def _frame_shape(plan: Plan, arrangement: Arrangement) -> tuple[int, ...]:
    grid, patch = plan.grid, (3, plan.patch_px, plan.patch_px)
    if arrangement.layout is Layout.IMAGE:
        return (3, plan.picture.height, plan.picture.width)
    if arrangement.order is Order.RASTER:
        return (grid.h, grid.w, *patch)
    merge = arrangement.merge
    return (grid.h // merge, grid.w // merge, merge, merge, *patch)
