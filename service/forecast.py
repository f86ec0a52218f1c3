"""What a request will come to, before any pixel work: grids, tokens, bytes and identity.

Files, the first bytes of files, or bare sizes come in; a forecast for each item comes
out, equal to what `job.preprocess` will say of it. What a head cannot tell is None with
a reason: a size that later bytes would give, or an orientation that would turn the
grid. Nothing is guessed and no pixel is decoded.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

from service.codec.inspect import check_request_pixels, inspect, inspect_heads
from service.codec.sniff import check_limits
from service.errors import FramesDiffer, at_item
from service.job import Request, Tools, digests_of, sized, terms
from service.plan.choices import Settled
from service.plan.items import check_answer, plan_items
from service.plan.profiles import NavitSizes, Profile
from service.types import Head, Header, Item, Limits, Plan, Size, Sized

NO_SIZE = "the head ends before the size"
NO_ORIENTATION = "an orientation behind the head may turn the grid"
OTHERS = "the grid depends on the other pictures, and one of them is not known"
NOTHING = (None, None)
MAX_DOUBTS = 6
"""Pictures of unknown orientation whose combinations are tried where they share a budget."""


@dataclass(frozen=True, slots=True)
class Forecast:
    """One item. `plan` is None with a `reason`; `digest` is there for whole files alone.

    `resized` is None also where only the grid is certain.
    """

    plan: Plan | None
    resized: Size | None = None
    source: Head | Header | None = None
    digest: str | None = None
    reason: str | None = None


def of_files(request: Request, tools: Tools) -> list[Forecast]:
    """Of whole files; raises what `job.preprocess` would raise before it decodes."""
    profile, form = terms(request, tools)
    headers = inspect(request.items, tools.limits)
    plans = plan_items(sized(request.items, headers), profile, request.wanted.budget)
    _check_answer(plans, profile, form, tools.limits)
    digests = digests_of(request, profile, form, plans, tools)
    return [
        Forecast(plan, plan.resized, found[0], digest)
        for plan, found, digest in zip(plans, headers, digests, strict=True)
    ]


def of_sizes(request: Request, sizes: Sequence[Sized], tools: Tools) -> list[Forecast]:
    """Of bare sizes, upright; raises the limits' faults as a file of that size would."""
    profile, form = terms(request, tools)
    pixels = 0
    for index, each in enumerate(sizes):
        with at_item(index):
            check_limits(each.size, tools.limits)
            pixels += each.size.pixels * each.frames
            check_request_pixels(pixels, tools.limits)
    plans = plan_items(sizes, profile, request.wanted.budget)
    _check_answer(plans, profile, form, tools.limits)
    return [Forecast(plan, plan.resized) for plan in plans]


def of_heads(request: Request, tools: Tools) -> list[Forecast]:
    """Of the first bytes of files; raises what no later byte could mend."""
    profile, form = terms(request, tools)
    heads = inspect_heads(request.items, tools.limits)
    options = []
    for index, (item, found) in enumerate(zip(request.items, heads, strict=True)):
        with at_item(index):
            options.append(_possible(item, found))
    if isinstance(profile.sizes, NavitSizes):  # each picture for itself
        agreed = [_agreed([each], profile, request)[0] if each else NOTHING for each in options]
    elif all(options) and sum(len(each) > 1 for each in options) <= MAX_DOUBTS:
        agreed = _agreed(options, profile, request)
    else:
        agreed = [NOTHING] * len(heads)
    _check_answer([plan for plan, _ in agreed], profile, form, tools.limits)
    return [
        Forecast(plan, resized, found[0], reason=_reason(plan, each))
        for (plan, resized), found, each in zip(agreed, heads, options, strict=True)
    ]


def _check_answer(
    plans: Sequence[Plan | None], profile: Profile, form: Settled, limits: Limits
) -> None:
    """Raises as `check_answer`; what is not known counts nothing."""
    item_bytes = [form.answer_bytes(plan) if plan else 0 for plan in plans]
    check_answer(item_bytes, profile, form, limits)


def _possible(item: Item, heads: Sequence[Head | None]) -> tuple[Sized, ...]:
    """What the item may be: nothing known, one size, or two where it may lie on its side.

    A chunk's frames share one size, so each can rule out a turn of the others. Raises
    FramesDiffer where none is left.
    """
    sizes: tuple[Size, ...] = ()
    for number, head in enumerate(heads):
        if head is None:
            continue
        own = (head.size,) if head.size else (head.stored, head.stored.transposed())
        shared = tuple(size for size in sizes if size in own) if sizes else own
        if not shared:
            raise FramesDiffer(f"frame {number} is stored as {head.stored}, others are {sizes[0]}")
        sizes = shared
    return tuple(Sized(item.type, size, len(heads)) for size in sizes)


def _agreed(
    options: Sequence[tuple[Sized, ...]], profile: Profile, request: Request
) -> list[tuple[Plan | None, Size | None]]:
    """For each picture what is the same whichever sizes they have: the plan, if its grid is."""
    tried = [plan_items(sizes, profile, request.wanted.budget) for sizes in product(*options)]
    agreed: list[tuple[Plan | None, Size | None]] = []
    for plans in zip(*tried, strict=True):
        grids = {(plan.grid, plan.num_tokens) for plan in plans}
        sizes = {plan.resized for plan in plans}
        plan = plans[0] if len(grids) == 1 else None
        agreed.append((plan, plans[0].resized if plan and len(sizes) == 1 else None))
    return agreed


def _reason(plan: Plan | None, options: Sequence[Sized]) -> str | None:
    if plan is not None:
        return None
    if not options:
        return NO_SIZE
    return NO_ORIENTATION if len(options) > 1 else OTHERS
