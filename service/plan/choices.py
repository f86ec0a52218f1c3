"""What a request may ask of its profile, beyond what its words allow by themselves.

A request's choices and a profile come in; out comes what the request left open,
or a refusal that says why the two do not go together. No picture is looked at.
"""

from dataclasses import dataclass, fields

from service.errors import BadParameter
from service.plan.profiles import DynamicSizes, Profile, Vllm
from service.types import (
    WHITE,
    AnswerFormat,
    Budget,
    Dtype,
    Hash,
    ItemType,
    Layout,
    Order,
    Plan,
    Wanted,
)


@dataclass(frozen=True, slots=True)
class Settled:
    """The form of an answer: what the request says, or what follows from the rest."""

    format: AnswerFormat
    dtype: Dtype
    layout: Layout

    def element_bytes(self, plan: Plan) -> int:
        """What an item's elements take in memory."""
        return plan.elements * self.dtype.itemsize_bytes

    def text_bytes(self, plan: Plan) -> int:
        """What the same take as base64, which is written beside them; 0 where it is not."""
        if self.format is AnswerFormat.MSGPACK:
            return 0
        return -(-self.element_bytes(plan) // 3) * 4

    def answer_bytes(self, plan: Plan) -> int:
        """What an item adds to the answer."""
        return self.text_bytes(plan) or self.element_bytes(plan)


def settle(profile: Profile, wanted: Wanted) -> Settled:
    """Raise BadParameter for a choice that this profile cannot serve."""
    settled = _settled(profile, wanted)
    if settled.dtype not in profile.dtypes:
        raise BadParameter(
            f"dtype={settled.dtype} cannot be: {profile.name} resizes in {profile.numerics}, whose "
            f"values are no bytes; take one of {', '.join(profile.dtypes)}"
        )
    if settled.layout is not Layout.PATCHES and wanted.order is not Order.RASTER:
        raise BadParameter(
            f"order={wanted.order} is an order of patches, and layout={settled.layout} has none"
        )
    _check_budget(profile, wanted.budget)
    _check_hashes(profile, wanted)
    return settled


def engine(profile: Profile) -> Vllm:
    """What vLLM takes of this profile; BadParameter where no form is known."""
    if profile.vllm is None:
        raise BadParameter(f"no form is known in which vLLM takes {profile.name}")
    return profile.vllm


def check_hashed(kind: ItemType, wanted: Wanted) -> None:
    """Raise BadParameter for an item that vLLM has no hash of its own for."""
    if wanted.hash is Hash.VLLM and kind is not ItemType.IMAGE:
        raise BadParameter("hash=vllm is known of pictures, not of video chunks")


def _settled(profile: Profile, wanted: Wanted) -> Settled:
    if wanted.format is AnswerFormat.MSGPACK:
        return Settled(
            wanted.format, wanted.dtype or Dtype.FLOAT32, wanted.layout or Layout.PATCHES
        )
    takes = engine(profile)
    if wanted.order is not Order.RASTER:
        raise BadParameter(f"order={wanted.order} cannot be with format=vllm, which takes raster")
    if wanted.layout not in (None, takes.layout):
        raise BadParameter(
            f"layout={wanted.layout} cannot be with format=vllm: the engine takes {profile.name} "
            f"as layout={takes.layout}"
        )
    dtype = wanted.dtype or takes.dtypes[0]
    if dtype not in takes.dtypes:
        raise BadParameter(f"dtype={dtype} cannot be with format=vllm: {_why(takes)}")
    return Settled(wanted.format, dtype, takes.layout)


def _why(takes: Vllm) -> str:
    if Dtype.UINT8 in takes.dtypes:
        return (
            "an engine that normalises would do it twice; take uint8, or bfloat16 for one with "
            "--no-mm-device-do-normalize"
        )
    return f"the engine takes {', '.join(takes.dtypes)}, and does not look at what it gets"


def _check_budget(profile: Profile, asked: Budget) -> None:
    if isinstance(profile.sizes, DynamicSizes):
        return
    for field in fields(asked):
        if getattr(asked, field.name) is not None:
            raise BadParameter(
                f"{field.name} is not used by {profile.name}: its sizes follow the rule "
                f"{profile.sizes.rule}, not dynamic"
            )


def _check_hashes(profile: Profile, wanted: Wanted) -> None:
    if wanted.known_hashes and wanted.format is not AnswerFormat.VLLM:
        raise BadParameter("known_hashes leaves tensors out, which only format=vllm can say")
    if wanted.hash is Hash.PATCHMILL:
        if wanted.model_id is not None:
            raise BadParameter("model_id is part of the hash of hash=vllm alone")
        return
    if wanted.model_id is None:
        raise BadParameter("hash=vllm covers the engine's name for its model: give it as model_id")
    if engine(profile).modality == "image" and wanted.background != WHITE:
        raise BadParameter(
            f"background={wanted.background} cannot be with hash=vllm, which for {profile.name} "
            f"covers the file and says white"
        )
