"""The heart: one request, from encoded pictures to the packed answer.

It knows no HTTP and no queue, so a command line or a batch engine calls it as
the service does. Everything that a header can refuse is refused, for all items,
before the first pixel is decoded.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from kernels import float_reference
from kernels.affine import affine
from kernels.tables import table
from service.codec.inspect import inspect
from service.frames import Finish, Frames, Permit, Press, write
from service.plan import choices
from service.plan.items import check_answer, plan_items
from service.plan.profiles import NavitSizes, Profile, Profiles
from service.telemetry.stages import Stages
from service.types import (
    OF_THE_PROFILE,
    Arrangement,
    Background,
    Budget,
    Dtype,
    Frame,
    Header,
    Item,
    Layout,
    Limits,
    Order,
    Part,
    Patches,
    Plan,
    Sized,
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
    layout: Layout = Layout.PATCHES
    order: Order = Order.RASTER
    budget: Budget = OF_THE_PROFILE


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
    choices.check(profile, request.dtype, request.layout, request.order, request.budget)
    headers = inspect(request.items, tools.limits)
    plans = plan_items(sized(request.items, headers), profile, request.budget)
    check_answer(plans, profile, request.dtype, tools.limits)
    stages.lap("plan")
    items = [Frames(*each) for each in zip(request.items, headers, plans, strict=True)]
    written = write(items, _finish(request, profile), tools.press, permit, stages)
    stages.skip()  # `write` has told what each of its threads spent
    by_item = policies(request, profile, plans, tools)
    parts = tuple(
        Part(each.item.type, digest(policy, each.item), each.headers[0], each.plan, notes)
        for each, policy, notes in zip(items, by_item, written.notes, strict=True)
    )
    stages.lap("pack")
    answer = Patches(
        model=profile.name,
        numerics=profile.numerics,
        mean=profile.mean,
        std=profile.std,
        dtype=request.dtype,
        layout=request.layout,
        order=request.order,
        parts=parts,
        elements=written.elements,
    )
    formats = tuple(header.format for each in headers for header in each)
    return replace(pack(answer, stages.rounded_ms()), model=profile.name, formats=formats)


def _finish(request: Request, profile: Profile) -> Finish:
    make = affine if profile.numerics == "float32" else table
    return Finish(
        values=make(request.dtype.value, profile.mean, profile.std),
        arrangement=Arrangement(request.layout, request.order, profile.merge),
        background=request.background,
    )


def sized(items: Sequence[Item], headers: Sequence[tuple[Header, ...]]) -> list[Sized]:
    """What the headers tell of each item's size."""
    pairs = zip(items, headers, strict=True)
    return [Sized(item.type, found[0].size, len(found)) for item, found in pairs]


def policies(
    request: Request, profile: Profile, plans: Sequence[Plan], tools: Tools
) -> list[bytes]:
    """For each item, all that decides its elements beside its bytes."""
    policy: dict[str, object] = {
        "profile": profile.fingerprint,
        "dtype": request.dtype,
        "layout": request.layout,
        "order": request.order,
        "background": str(request.background),
        "sixteen_bit": tools.press.sixteen_bit,
        "versions": tools.versions,
    }
    if profile.numerics == "float32":  # our own definition, whose version is no library's
        policy["float_resize"] = float_reference.REVISION
    if isinstance(profile.sizes, NavitSizes):
        return [policy_text(policy)] * len(plans)
    # Here a size follows from other pictures and parameters too, not from the bytes alone.
    return [policy_text({**policy, "resized": str(plan.resized)}) for plan in plans]
