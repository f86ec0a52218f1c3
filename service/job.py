"""The heart: one request, from encoded pictures to the packed answer.

It knows no HTTP and no queue, so a command line or a batch engine calls it as
the service does. Everything that a header can refuse is refused, for all items,
before the first pixel is decoded.
"""

from dataclasses import dataclass

from kernels.tables import table
from service.codec.inspect import inspect
from service.frames import Frames, Permit, Press, Run, write
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
    press: Press
    versions: dict[str, str]


def preprocess(request: Request, tools: Tools, permit: Permit, stages: Stages) -> Frame:
    """Answer one request; raises the tree of `service.errors`, naming the item at fault."""
    profile = tools.profiles.find(request.model)
    headers = inspect(request.items, tools.limits)
    plans = plan_items(request.items, headers, profile, request.dtype, tools.limits)
    stages.lap("plan")
    items = [Frames(*each) for each in zip(request.items, headers, plans, strict=True)]
    lut = table(request.dtype.value, profile.mean, profile.std)
    written = write(items, Run(lut, request.background, permit), tools.press, stages)
    stages.skip()  # `write` has told what each of its threads spent
    policy = policy_text(_policy(request, profile, tools))
    parts = tuple(
        Part(each.item.type, digest(policy, each.item), each.headers[0], each.plan, notes)
        for each, notes in zip(items, written.notes, strict=True)
    )
    stages.lap("pack")
    answer = Patches(
        model=profile.name,
        numerics=profile.numerics,
        mean=profile.mean,
        std=profile.std,
        dtype=request.dtype,
        layout=Layout.PATCHES,
        order=Order.RASTER,
        parts=parts,
        elements=written.elements,
    )
    return pack(answer, stages.rounded_ms())


def _policy(request: Request, profile: Profile, tools: Tools) -> dict[str, object]:
    """All that decides an item's elements, beside its bytes."""
    return {
        "profile": profile.fingerprint,
        "dtype": request.dtype,
        "layout": Layout.PATCHES,
        "order": Order.RASTER,
        "background": str(request.background),
        "sixteen_bit": tools.press.sixteen_bit,
        "versions": tools.versions,
    }
