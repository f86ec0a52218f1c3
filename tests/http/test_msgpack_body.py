"""application/msgpack bodies: the map of items, and every other value refused within bounds."""

from contextlib import suppress
from typing import Any

import msgpack
import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.errors import BadMsgpack, EmptyBody, EmptyItem, PatchmillError, TooManyItems
from service.http.msgpack_body import parse
from service.types import ItemType
from tests.http.limits import SMALL

IMAGE = {"type": "image", "data": b"x"}
CHUNK = {"type": "video_chunk", "frames": [b"a", b"b"]}


def packed(*entries: Any, **parameters: Any) -> bytes:
    body: bytes = msgpack.packb({"items": list(entries), **parameters})
    return body


def test_items_keep_their_order_and_type_and_parameters_their_values() -> None:
    items, pairs = parse(packed(CHUNK, IMAGE, dtype="uint8"), SMALL)
    assert [(item.type, item.frames) for item in items] == [
        (ItemType.VIDEO_CHUNK, (b"a", b"b")),
        (ItemType.IMAGE, (b"x",)),
    ]
    assert pairs == (("dtype", "uint8"),)


BROKEN: dict[str, tuple[bytes, type[PatchmillError]]] = {
    "empty": (b"", BadMsgpack),
    "one byte": (b"\xc1", BadMsgpack),
    "not a map": (msgpack.packb([1]), BadMsgpack),
    "a number": (b"\x01", BadMsgpack),
    "truncated": (packed(IMAGE)[:-1], BadMsgpack),
    "trailing byte": (packed(IMAGE) + b"\x00", BadMsgpack),
    "no items": (msgpack.packb({"dtype": "uint8"}), BadMsgpack),
    "items is a map": (msgpack.packb({"items": {}}), BadMsgpack),
    "items is empty": (packed(), EmptyBody),
    "item is bytes": (packed(b"x"), BadMsgpack),
    "item without type": (packed({"data": b"x"}), BadMsgpack),
    "unknown type": (packed({"type": "audio", "data": b"x"}), BadMsgpack),
    "type is a list": (packed({"type": [], "data": b"x"}), BadMsgpack),
    "text as data": (packed({"type": "image", "data": "x"}), BadMsgpack),
    "data is nil": (packed({"type": "image", "data": None}), BadMsgpack),
    "further field": (packed({**IMAGE, "url": "x"}), BadMsgpack),
    "image with frames": (packed({"type": "image", "frames": [b"x"]}), BadMsgpack),
    "frames is bytes": (packed({"type": "video_chunk", "frames": b"x"}), BadMsgpack),
    "no frames": (packed({"type": "video_chunk", "frames": []}), EmptyItem),
    "number as a frame": (packed({"type": "video_chunk", "frames": [1]}), BadMsgpack),
    "number as a key": (b"\x81\x01\x02", BadMsgpack),
    "list as a key": (b"\x81\x90\x02", BadMsgpack),
    "key twice": (b"\x82\xa1a\x01\xa1a\x02", BadMsgpack),
    "text that is not UTF-8": (b"\x81\xa1\xff\x01", BadMsgpack),
    "extension type": (packed(IMAGE, dtype=msgpack.ExtType(3, b"x")), BadMsgpack),
    "nested without end": (b"\x91" * 5000, BadMsgpack),
    "a million empty lists": (b"\xdd\x00\x0f\x42\x40" + b"\x90" * 1_000_000, BadMsgpack),
    "lists of lists of lists": (b"\x9f" * 3 + b"\x90" * 15**3, BadMsgpack),
    "a list said to be of 4 billion": (b"\x81\xa5items\xdd\xff\xff\xff\xff", BadMsgpack),
    "binary said to be 4 GiB": (b"\x81\xa5items\xc6\xff\xff\xff\xff", BadMsgpack),
    "one item too many": (packed(*[IMAGE] * 4), TooManyItems),
}


@pytest.mark.parametrize(("body", "fault"), BROKEN.values(), ids=BROKEN)
def test_a_broken_body_is_refused(body: bytes, fault: type[PatchmillError]) -> None:
    with pytest.raises(fault):
        parse(body, SMALL)


def test_far_too_many_items_are_still_told_by_number() -> None:
    with pytest.raises(TooManyItems) as refusal:
        parse(packed(*[IMAGE] * 1000), SMALL)
    assert refusal.value.actual == 1000


def test_a_fault_of_an_item_names_its_index() -> None:
    with pytest.raises(BadMsgpack) as refusal:
        parse(packed(IMAGE, {"type": "image"}), SMALL)
    assert refusal.value.item == 1


@given(st.binary(max_size=300))
def test_no_bytes_make_the_parser_fail_otherwise(body: bytes) -> None:
    with suppress(PatchmillError):
        parse(body, SMALL)


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | st.binary() | st.text(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    )
)
def test_no_value_makes_the_parser_fail_otherwise(value: Any) -> None:
    for body in (value, {"items": value}, {"items": [value]}):
        with suppress(PatchmillError):
            parse(msgpack.packb(body), SMALL)
