"""All plans of a request, and the size of its answer, before any pixel is decoded."""

from collections.abc import Sequence

from service.errors import AnswerTooLarge, at_item
from service.plan import navit
from service.plan.profiles import Profile
from service.types import Dtype, Header, Item, Limits, Plan


def plan_items(
    items: Sequence[Item],
    headers: Sequence[tuple[Header, ...]],
    profile: Profile,
    dtype: Dtype,
    limits: Limits,
) -> list[Plan]:
    """Plan every item by its profile's size rule, in order.

    Raises what the rule raises and AnswerTooLarge, with the item at fault.
    """
    plans: list[Plan] = []
    answer_bytes = 0
    for index, (item, found) in enumerate(zip(items, headers, strict=True)):
        with at_item(index):
            plan = navit.plan(found[0].size, item.type, len(found), profile)
            answer_bytes += plan.elements * dtype.itemsize_bytes
            _check_answer_bytes(answer_bytes, limits)
        plans.append(plan)
    return plans


def _check_answer_bytes(answer_bytes: int, limits: Limits) -> None:
    if answer_bytes > limits.max_answer_bytes:
        raise AnswerTooLarge(
            f"the patches up to this item are {answer_bytes} bytes, an answer may have "
            f"{limits.max_answer_bytes}; uint8 is a quarter of float32",
            limit=limits.max_answer_bytes,
            actual=answer_bytes,
            setting="max_answer_bytes",
        )
