"""The heart: one request, from encoded pictures to the packed answer.

It knows no HTTP and no queue, so a command line or a batch engine calls it as
the service does. Everything that a header can refuse is refused, for all items,
before the first pixel is decoded.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kernels.dispatch import Engine
from kernels.tables import STORAGE, Stored, table
from service.codec.decode import decode
from service.codec.inspect import inspect
from service.errors import at_item
from service.plan.items import plan_items
from service.plan.profiles import Profile, Profiles
from service.telemetry.stages import Stages
from service.types import (
    Background,
    Dtype,
    Frame,
    Item,
    Layout,
    Limits,
    Order,
    Part,
    Patches,
    Plan,
    SixteenBit,
)
from service.wire.digest import digest, policy_text
from service.wire.pack import pack


@dataclass(frozen=True, slots=True)
class Request:
    """What a caller asks for; `model` is a profile's name or alias."""

    items: tuple[Item, ...]
    model: str
    dtype: Dtype
    background: Background


@dataclass(frozen=True, slots=True)
class Tools:
    """What all requests of a process share. `versions` are those that decide pixels."""

    limits: Limits
    profiles: Profiles
    engine: Engine
    sixteen_bit: SixteenBit
    versions: dict[str, str]


def preprocess(request: Request, tools: Tools, stages: Stages) -> Frame:
    """Answer one request; raises the tree of `service.errors`, naming the item at fault."""
    stages.lap("queue")
    profile = tools.profiles.find(request.model)
    headers = inspect(request.items, tools.limits)
    plans = plan_items(request.items, headers, profile, request.dtype, tools.limits)
    stages.lap("plan")
    policy = policy_text(_policy(request, profile, tools))
    lut = table(request.dtype.value, profile.mean, profile.std)
    elements = np.empty(sum(plan.elements for plan in plans), STORAGE[request.dtype.value])
    parts = []
    for index, (item, found, plan, out) in enumerate(
        zip(request.items, headers, plans, _split(elements, plans), strict=True)
    ):
        notes: set[str] = set()
        for data, header, patches in zip(item.frames, found, out, strict=True):
            with at_item(index):
                pixels = decode(data, header, request.background, tools.sixteen_bit)
            stages.lap("decode")
            resized = (plan.resized.height, plan.resized.width)
            tools.engine.write_patches(pixels.array, resized, lut, patches)
            stages.lap("patchify")
            notes.update(pixels.notes)
        parts.append(Part(item.type, digest(policy, item), found[0], plan, tuple(sorted(notes))))
        stages.lap("pack")
    answer = Patches(
        model=profile.name,
        numerics=profile.numerics,
        mean=profile.mean,
        std=profile.std,
        dtype=request.dtype,
        layout=Layout.PATCHES,
        order=Order.RASTER,
        parts=tuple(parts),
        elements=elements,
    )
    return pack(answer, stages.rounded_ms())


def _split(elements: NDArray[Stored], plans: Sequence[Plan]) -> Iterator[NDArray[Stored]]:
    """Each item's share of the answer, as (t, h, w, 3, P, P) views."""
    start = 0
    for plan in plans:
        grid, edge = plan.grid, plan.patch_px
        share = elements[start : start + plan.elements]
        yield share.reshape(grid.t, grid.h, grid.w, 3, edge, edge)
        start += plan.elements


def _policy(request: Request, profile: Profile, tools: Tools) -> dict[str, object]:
    """All that decides an item's elements, beside its bytes."""
    background = request.background
    return {
        "profile": profile.model_dump(mode="json", exclude={"aliases", "source"}),
        "dtype": request.dtype,
        "layout": Layout.PATCHES,
        "order": Order.RASTER,
        "background": str(background),
        "sixteen_bit": tools.sixteen_bit,
        "versions": tools.versions,
    }
