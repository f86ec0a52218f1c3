"""The map of items that msgpack and JSON bodies share: `{"items": [...], parameters}`.

In comes a plain map as a parser made it, out come items and parameter pairs.
Each item says its `type`: an `image` has `data`, a `video_chunk` has `frames`.
How a picture is written is the form's own affair, and so comes in as a function.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

from service.errors import EmptyBody, EmptyItem, MalformedRequest, TooManyItems, at_item
from service.types import Item, ItemType, Limits

Pairs: TypeAlias = tuple[tuple[str, object], ...]

FIELDS = {ItemType.IMAGE: "data", ItemType.VIDEO_CHUNK: "frames"}


def read(
    body: object,
    limits: Limits,
    fault: type[MalformedRequest],
    picture: Callable[[object], bytes],
) -> tuple[tuple[Item, ...], Pairs]:
    """The items in order and the parameters; `fault` is raised for a malformed map.

    `picture` turns the form's way to write a picture into its encoded bytes.
    """
    if not isinstance(body, Mapping):
        raise fault("the body is not a map")
    entries = body.get("items")
    if not isinstance(entries, list):
        raise fault("the body has no list named items")
    check_count(entries, "items", limits)
    items = []
    for index, entry in enumerate(entries):
        with at_item(index):
            items.append(_item(entry, fault, picture))
    return tuple(items), tuple(pair for pair in body.items() if pair[0] != "items")


def check_count(entries: Sequence[object], what: str, limits: Limits) -> None:
    """Raises EmptyBody and TooManyItems, in the body's own word for its entries."""
    if not entries:
        raise EmptyBody(f"the list of {what} is empty")
    if len(entries) > limits.max_items:
        raise TooManyItems(
            f"the request holds {len(entries)} {what}, at most {limits.max_items} are taken",
            limit=limits.max_items,
            actual=len(entries),
            setting="max_items",
        )


def _item(entry: object, fault: type[MalformedRequest], picture: Callable[[object], bytes]) -> Item:
    if not isinstance(entry, Mapping):
        raise fault("an item is a map")
    named = entry.get("type")
    if not isinstance(named, str) or named not in list(ItemType):
        raise fault(f"an item's type is one of {', '.join(ItemType)}")
    kind = ItemType(named)
    field = FIELDS[kind]
    if set(entry) != {"type", field}:
        raise fault(f"an item of type {kind} has the fields type and {field}, and no others")
    if kind is ItemType.IMAGE:
        return Item(kind, (picture(entry[field]),))
    if not isinstance(entry[field], list):
        raise fault("frames is a list of pictures")
    if not entry[field]:
        raise EmptyItem("the video chunk has no frames")
    return Item(kind, tuple(picture(frame) for frame in entry[field]))
