"""The heart: one request, from encoded pictures to the packed answer.

It knows no HTTP and no queue, so a command line or a batch engine calls it as
the service does. Everything that a header can refuse is refused, for all items,
before the first pixel is decoded.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

from kernels import float_reference
from kernels.affine import affine
from kernels.tables import table
from service.codec.inspect import inspect
from service.errors import at_item
from service.frames import Finish, Frames, Hashed, Made, Permit, Press, write
from service.plan import choices
from service.plan.choices import Settled
from service.plan.items import check_answer, plan_items
from service.plan.profiles import NavitSizes, Profile, Profiles
from service.telemetry.stages import Stages
from service.types import (
    AnswerFormat,
    Arrangement,
    Frame,
    Header,
    Item,
    Limits,
    Part,
    Patches,
    Plan,
    Sized,
    Wanted,
)
from service.wire import pack, vllm
from service.wire.digest import digest, policy_text
from service.wire.vllm_hash import of_chunk, of_image


@dataclass(frozen=True, slots=True)
class Request:
    """What a caller asks for."""

    items: tuple[Item, ...]
    wanted: Wanted


@dataclass(frozen=True, slots=True)
class Tools:
    """What all requests of a process share. `versions` are those that decide pixels."""

    limits: Limits
    profiles: Profiles
    press: Press
    versions: dict[str, str]


def preprocess(request: Request, tools: Tools, permit: Permit, stages: Stages) -> Frame:
    """Answer one request; raises the tree of `service.errors`, naming the item at fault."""
    profile, form = terms(request, tools)
    headers = inspect(request.items, tools.limits)
    plans = plan_items(sized(request.items, headers), profile, request.wanted.budget)
    stages.lap("plan")
    digests = digests_of(request, profile, form, plans, tools)
    known = [request.wanted.knows(digest) for digest in digests]
    stages.lap("pack")
    by_item = zip(request.items, headers, plans, digests, known, strict=True)
    items = [Frames(*each) for each in by_item]
    made_bytes = [0 if each.known else form.answer_bytes(each.plan) for each in items]
    check_answer(made_bytes, profile, form, tools.limits)
    written = write(items, _finish(request, profile, form), tools.press, permit, stages)
    stages.skip()  # `write` has told what each of its threads spent
    answer = Patches(
        model=profile.name,
        numerics=profile.numerics,
        mean=profile.mean,
        std=profile.std,
        dtype=form.dtype,
        layout=form.layout,
        order=request.wanted.order,
        parts=tuple(_part(*each) for each in zip(items, written.made, strict=True)),
        elements=written.elements,
    )
    frame = _packed(answer, profile, form, tools, stages)
    formats = tuple(header.format for each in headers for header in each)
    return replace(frame, model=profile.name, formats=formats)


def terms(request: Request, tools: Tools) -> tuple[Profile, Settled]:
    """Whose sizes and which form; raises UnknownModel, BadParameter."""
    profile = tools.profiles.find(request.wanted.model)
    form = choices.settle(profile, request.wanted)
    for index, item in enumerate(request.items):
        with at_item(index):
            choices.check_hashed(item.type, request.wanted)
    return profile, form


def _part(each: Frames, made: Made) -> Part:
    return Part(
        type=each.item.type,
        digest=made.digest,
        header=each.headers[0],
        plan=each.plan,
        notes=made.notes,
        known=made.known,
        made=not each.known,
    )


def _finish(request: Request, profile: Profile, form: Settled) -> Finish:
    wanted = request.wanted
    make = affine if profile.numerics == "float32" else table
    return Finish(
        values=make(form.dtype.value, profile.mean, profile.std),
        arrangement=Arrangement(form.layout, wanted.order, profile.merge),
        background=wanted.background,
        hashed=_hashed(wanted, profile),
        known=wanted.known_hashes,
        text_bytes=form.text_bytes,
    )


def _hashed(wanted: Wanted, profile: Profile) -> Hashed | None:
    if wanted.model_id is None:
        return None
    of = of_chunk if choices.engine(profile).modality == "vision_chunk" else of_image
    return partial(of, wanted.model_id)


def _packed(
    answer: Patches, profile: Profile, form: Settled, tools: Tools, stages: Stages
) -> Frame:
    if form.format is AnswerFormat.VLLM:
        return vllm.pack(answer, choices.engine(profile).modality, tools.press.buffers.take)
    stages.lap("pack")
    return pack.pack(answer, stages.rounded_ms())


def sized(items: Sequence[Item], headers: Sequence[tuple[Header, ...]]) -> list[Sized]:
    """What the headers tell of each item's size."""
    pairs = zip(items, headers, strict=True)
    return [Sized(item.type, found[0].size, len(found)) for item, found in pairs]


def digests_of(
    request: Request, profile: Profile, form: Settled, plans: Sequence[Plan], tools: Tools
) -> list[str]:
    """For each item the digest of its bytes and of all else that decides its elements."""
    policy: dict[str, object] = {
        "profile": profile.fingerprint,
        "dtype": form.dtype,
        "layout": form.layout,
        "order": request.wanted.order,
        "background": str(request.wanted.background),
        "sixteen_bit": tools.press.sixteen_bit,
        "versions": tools.versions,
    }
    if profile.numerics == "float32":  # our own definition, whose version is no library's
        policy["float_resize"] = float_reference.REVISION
    if isinstance(profile.sizes, NavitSizes):
        texts = [policy_text(policy)] * len(plans)
    else:
        # Here a size follows from other pictures and parameters too, not from the bytes alone.
        texts = [policy_text({**policy, "resized": str(plan.resized)}) for plan in plans]
    return [digest(text, item) for text, item in zip(texts, request.items, strict=True)]
