"""application/msgpack: one map, unpacked within bounds.

A few bytes of msgpack can describe millions of values, so what containers hold is
counted while they are built, and the count bounded far above what a request may hold.
"""

from collections.abc import Sequence
from typing import Any

import msgpack

from service.errors import BadMsgpack
from service.http import items
from service.http.parameters import NAMES
from service.types import Item, Limits

MAX_VALUES = 100_000
"""Containers and what they hold: some megabytes. 60 MB of short strings took 1.5 GB."""
MIN_LIST_LIMIT = 1024
"""How long a list may say it is. Not more: the parser makes room for what a list says, and
lists may be nested 500 deep. A model's own limit on frames gives the clear error below this."""


def parse(body: bytes, limits: Limits) -> tuple[tuple[Item, ...], items.Pairs]:
    """Items and parameter pairs; raises BadMsgpack and the faults of `items.read`."""
    return items.read(_unpack(body, limits), limits, BadMsgpack, _picture)


def _unpack(body: bytes, limits: Limits) -> Any:
    remaining = MAX_VALUES

    def spend(values: int) -> None:
        nonlocal remaining
        remaining -= 1 + values
        if remaining < 0:
            raise BadMsgpack("the body holds more lists, maps and values than its items can need")

    def on_map(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
        spend(len(pairs))
        unpacked = dict(pairs)
        if len(unpacked) != len(pairs):
            raise BadMsgpack("a map names a key twice")
        return unpacked

    def on_list(values: list[Any]) -> list[Any]:
        spend(len(values))
        return values

    try:
        return msgpack.unpackb(
            body,
            object_pairs_hook=on_map,
            list_hook=on_list,
            max_array_len=max(2 * limits.max_items, MIN_LIST_LIMIT),
            max_map_len=2 * len(NAMES) + 2,
            max_ext_len=0,
        )
    except BadMsgpack:
        raise
    except (ValueError, TypeError, RecursionError, msgpack.UnpackException) as error:
        raise BadMsgpack("the body is not one complete msgpack value of the form described") from (
            error
        )


def _picture(value: object) -> bytes:
    if not isinstance(value, bytes):
        raise BadMsgpack("a picture is binary data")
    return value
