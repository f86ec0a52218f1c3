"""application/json bodies: base64 in every spelling, OpenAI parts, and nothing fetched."""

import base64
import json
from contextlib import suppress
from typing import Any
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.errors import (
    BadBase64,
    BadJson,
    EmptyBody,
    EmptyItem,
    PatchmillError,
    RemoteUrl,
    TooManyItems,
)
from service.http.json_body import parse
from service.types import ItemType
from tests.http.limits import SMALL

DATA = bytes(range(256)) * 2
PLAIN = base64.b64encode(DATA).decode()
WRAPPED = base64.encodebytes(DATA).decode()


def body(*entries: Any, **parameters: Any) -> bytes:
    return json.dumps({"items": list(entries), **parameters}).encode()


def image(data: Any) -> dict[str, Any]:
    return {"type": "image", "data": data}


def openai(url: str, **detail: str) -> dict[str, Any]:
    return {"type": "image_url", "image_url": {"url": url, **detail}}


SPELLINGS = {
    "plain": image(PLAIN),
    "wrapped": image(WRAPPED),
    "with spaces": image(" " + PLAIN + "\r\n\t"),
    "data url": image(f"data:image/png;base64,{PLAIN}"),
    "upper case": image(f"DATA:IMAGE/PNG;BASE64,{PLAIN}"),
    "without a type": image(f"data:;base64,{PLAIN}"),
    "further parameters": image(f"data:image/png;name=a%20b.png;charset=utf-8;base64,{PLAIN}"),
    "spaces in the header": image(f"data:image/png; charset=utf-8; base64 ,{PLAIN}"),
    "a line break before the scheme": image(f"\ndata:image/png;base64,{PLAIN}"),
    "wrapped data url": image(f"data:image/png;base64,\n{WRAPPED}"),
    "percent-encoded in lower case": image(
        f"data:image/png;base64,{quote(PLAIN, safe='').replace('%2B', '%2b')}"
    ),
    "percent-encoded": image(f"data:image/png;base64,{quote(PLAIN, safe='')}"),
    "openai part": openai(f"data:image/jpeg;base64,{PLAIN}"),
    "openai part with detail": openai(f"data:image/jpeg;base64,{PLAIN}", detail="high"),
    "openai part with bare base64": openai(PLAIN),
}


@pytest.mark.parametrize("entry", SPELLINGS.values(), ids=SPELLINGS)
def test_every_spelling_of_a_picture_gives_its_bytes(entry: dict[str, Any]) -> None:
    [item], _ = parse(body(entry), SMALL)
    assert (item.type, item.frames) == (ItemType.IMAGE, (DATA,))


def test_a_byte_order_mark_is_no_fault() -> None:
    assert len(parse(b"\xef\xbb\xbf" + body(image(PLAIN)), SMALL)[0]) == 1


@pytest.mark.parametrize("entry", [image(PLAIN), openai(PLAIN)])
def test_far_too_many_items_are_still_told_by_number(entry: dict[str, Any]) -> None:
    with pytest.raises(TooManyItems) as refusal:
        parse(body(*[entry] * 5000), SMALL)
    assert refusal.value.actual == 5000


def test_items_keep_their_order_and_mix_with_chunks() -> None:
    chunk = {"type": "video_chunk", "frames": [PLAIN, f"data:image/png;base64,{PLAIN}"]}
    items, pairs = parse(body(openai(PLAIN), chunk, image(PLAIN), dtype="uint8"), SMALL)
    assert [item.type for item in items] == ["image", "video_chunk", "image"]
    assert items[1].frames == (DATA, DATA)
    assert pairs == (("dtype", "uint8"),)


BROKEN: dict[str, tuple[bytes, type[PatchmillError]]] = {
    "not json": (b"{", BadJson),
    "trailing data": (body(image(PLAIN)) + b"x", BadJson),
    "not UTF-8": (b'{"items": "\xff"}', BadJson),
    "UTF-16": (json.dumps({"items": []}).encode("utf-16"), BadJson),
    "NaN": (b'{"items": [NaN]}', BadJson),
    "key twice": (b'{"items": [], "items": []}', BadJson),
    "not a map": (b"[]", BadJson),
    "null": (b"null", BadJson),
    "no items": (b"{}", BadJson),
    "items is a map": (b'{"items": {}}', BadJson),
    "no item": (body(), EmptyBody),
    "number of 5000 digits": (b"1" * 5000, BadJson),
    "data is a number": (body(image(5)), BadJson),
    "data is null": (body(image(None)), BadJson),
    "unknown type": (body({"type": "text", "text": "hello"}), BadJson),
    "type is a list": (body({"type": [], "data": PLAIN}), BadJson),
    "further field": (body({**image(PLAIN), "a": 1}), BadJson),
    "openai part with further field": (body(openai(PLAIN, uuid="x")), BadJson),
    "openai part without url": (body({"type": "image_url", "image_url": {}}), BadJson),
    "openai url that is a list": (body({"type": "image_url", "image_url": {"url": []}}), BadJson),
    "many digits": (b'{"items": [' + b"9" * 4000 + b"]}", BadJson),
    "much base64 and one emoji": (
        '{"items": [{"type": "image", "data": "😀'.encode() + b"A" * 2**20 + b'"}]}',
        BadJson,
    ),
    "deep lists": (b"[" * 100_000, BadJson),
    "a million lists": (b'{"items": [' + b"[]," * 1_000_000 + b"[]]}", BadJson),
    "a million numbers": (b'{"items": [' + b"1," * 1_000_000 + b"1]}", BadJson),
    "one item too many": (body(*[image(PLAIN)] * 4), TooManyItems),
    "empty chunk": (body({"type": "video_chunk", "frames": []}), EmptyItem),
    "cut base64": (body(image(PLAIN[:-3])), BadBase64),
    "unpadded": (body(image(base64.b64encode(b"a").decode().rstrip("="))), BadBase64),
    "foreign characters": (body(image("*" * 8)), BadBase64),
    "url-safe alphabet": (body(image("_-_-")), BadBase64),
    "not ascii": (body(image("é" * 8)), BadBase64),
    "an escape that base64 needs not": (body(image("data:;base64,%41%41%41%41")), BadBase64),
    "half an escape": (body(image(f"data:;base64,{PLAIN}%")), BadBase64),
    "half a character in a url": (
        b'{"items": [{"type": "image", "data": "data:;base64,%2B\\ud800"}]}',
        BadBase64,
    ),
    "one wide character before much base64": (body(image("é" + "A" * 400)), BadBase64),
    "half a character": (b'{"items": [{"type": "image", "data": "\\ud800"}]}', BadBase64),
    "data url without comma": (body(image("data:image/png;base64")), BadBase64),
    "data url with endless header": (body(image("data:" + "a" * 5000 + ",")), BadBase64),
    "data url that is not base64": (body(image("data:image/svg+xml,<svg/>")), BadBase64),
    "http": (body(image("http://example.com/a.png")), RemoteUrl),
    "openai http": (body(openai("https://example.com/a.png")), RemoteUrl),
    "http after a space": (body(image(" http://example.com/a.png")), RemoteUrl),
    "upper case http": (body(image("HTTP://EXAMPLE.COM")), RemoteUrl),
    "file": (body(image("file:///etc/passwd")), RemoteUrl),
    "other scheme": (body(openai("s3://bucket/key")), RemoteUrl),
}


@pytest.mark.parametrize(("sent", "fault"), BROKEN.values(), ids=BROKEN)
def test_a_broken_body_is_refused(sent: bytes, fault: type[PatchmillError]) -> None:
    with pytest.raises(PatchmillError) as refusal:
        parse(sent, SMALL)
    assert type(refusal.value) is fault


def test_a_fault_names_its_item_and_never_repeats_the_picture() -> None:
    with pytest.raises(BadBase64) as refusal:
        parse(body(image(PLAIN), image("secret*")), SMALL)
    assert refusal.value.item == 1
    assert "secret" not in refusal.value.detail


@given(st.text(max_size=100))
def test_no_string_as_a_picture_fails_otherwise(text: str) -> None:
    for entry in (image(text), openai(text), image("data:" + text), {"type": text}):
        with suppress(PatchmillError):
            parse(body(entry), SMALL)


@given(st.binary(max_size=200))
def test_base64_comes_back_as_it_was(data: bytes) -> None:
    for spelling in (base64.b64encode(data), base64.encodebytes(data)):
        [item], _ = parse(body(image(spelling.decode())), SMALL)
        assert item.frames == (data,)
