"""All plans of a request, and the size of its answer, before any pixel is decoded."""

from collections.abc import Iterator, Sequence

from service.errors import AnswerTooLarge, TooManyFrames, at_item
from service.plan import dynamic, navit, tiles
from service.plan.choices import Settled
from service.plan.profiles import DynamicSizes, NavitSizes, Profile
from service.types import AnswerFormat, Budget, ItemType, Limits, Plan, Sized


def plan_items(items: Sequence[Sized], profile: Profile, asked: Budget) -> list[Plan]:
    """Plan every item by its profile's size rule, in order.

    Raises what the rule raises, with the item at fault.
    """
    return list(_plans(items, profile, asked))


def check_answer(
    item_bytes: Sequence[int], profile: Profile, form: Settled, limits: Limits
) -> None:
    """Raise AnswerTooLarge for the item that makes the answer so."""
    answer_bytes = 0
    for index, length in enumerate(item_bytes):
        with at_item(index):
            answer_bytes += length
            _check_bytes(answer_bytes, profile, form, limits)


def _plans(items: Sequence[Sized], profile: Profile, asked: Budget) -> Iterator[Plan]:
    if not isinstance(profile.sizes, NavitSizes):
        _check_pictures(items, profile)
    if isinstance(profile.sizes, DynamicSizes):
        yield from dynamic.plan([item.size for item in items], profile, asked)
        return
    for index, item in enumerate(items):
        with at_item(index):
            if isinstance(profile.sizes, NavitSizes):
                yield navit.plan(item.size, item.type, item.frames, profile)
            else:
                yield tiles.plan(item.size, profile)


def _check_pictures(items: Sequence[Sized], profile: Profile) -> None:
    for index, item in enumerate(items):
        if item.type is not ItemType.IMAGE:
            raise TooManyFrames(
                f"{profile.name} takes no video chunks, only pictures: send each of the "
                f"{item.frames} frames as an image, or ask for another model",
                limit=0,
                actual=item.frames,
                item=index,
            )


def _check_bytes(answer_bytes: int, profile: Profile, form: Settled, limits: Limits) -> None:
    if answer_bytes > limits.max_answer_bytes:
        vllm = profile.vllm if form.format is AnswerFormat.VLLM else None
        dtypes = vllm.dtypes if vllm else profile.dtypes
        smaller = [each for each in dtypes if each.itemsize_bytes < form.dtype.itemsize_bytes]
        advice = f"dtype={' or '.join(smaller)} is smaller" if smaller else "send fewer at once"
        raise AnswerTooLarge(
            f"the elements up to this item are {answer_bytes} bytes, an answer may have "
            f"{limits.max_answer_bytes}; {advice}",
            limit=limits.max_answer_bytes,
            actual=answer_bytes,
            setting="max_answer_bytes",
        )
