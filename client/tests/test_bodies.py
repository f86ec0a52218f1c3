"""Each form of body holds the items as docs/http.md says; what it cannot hold is refused."""

import base64
import email.parser
import email.policy
import json
from typing import Any

import msgpack
import pytest

from patchmill_client import InvalidInput, ItemType
from patchmill_client.bodies import RequestBody, encode
from patchmill_client.inputs import Sendable

ONE = Sendable(ItemType.IMAGE, (b"one\r\n--\x00",))
TWO = Sendable(ItemType.IMAGE, (b"two",))
CHUNK = Sendable(ItemType.VIDEO_CHUNK, (b"a", b"b"))


def test_one_picture_is_raw_and_the_very_same_bytes() -> None:
    for form in (None, "raw"):
        body = encode([ONE], form)
        assert body.content is ONE.frames[0]
        assert body.content_type == "application/octet-stream"


@pytest.mark.parametrize("items", [[ONE, TWO], [CHUNK], [ONE, CHUNK]])
def test_anything_else_is_msgpack(items: list[Sendable]) -> None:
    body = encode(items, None)
    assert body == encode(items, "msgpack")
    assert body.content_type == "application/msgpack"
    assert msgpack.unpackb(body.content) == {"items": [entry(item) for item in items]}


def entry(item: Sendable) -> dict[str, object]:
    if item.type is ItemType.IMAGE:
        return {"type": "image", "data": item.frames[0]}
    return {"type": "video_chunk", "frames": list(item.frames)}


def test_json_has_the_same_shape_with_base64() -> None:
    body = encode([ONE, CHUNK], "json")
    assert body.content_type == "application/json"
    image, chunk = json.loads(body.content)["items"]
    assert (image["type"], base64.b64decode(image["data"])) == ("image", ONE.frames[0])
    assert chunk["type"] == "video_chunk"
    assert tuple(map(base64.b64decode, chunk["frames"])) == CHUNK.frames


def test_multipart_is_read_by_another_parser() -> None:
    body = encode([ONE, TWO], "multipart")
    parts = parsed(body)
    assert [part.get_payload(decode=True) for part in parts] == [ONE.frames[0], b"two"]
    for part in parts:
        assert part.get_param("name", header="content-disposition") == "images"


def parsed(body: RequestBody) -> list[Any]:
    whole = f"Content-Type: {body.content_type}\r\n\r\n".encode() + body.content
    message = email.parser.BytesParser(policy=email.policy.HTTP).parsebytes(whole)
    return list(message.iter_parts())


def test_a_boundary_is_new_each_time() -> None:
    assert encode([ONE], "multipart").content_type != encode([ONE], "multipart").content_type


@pytest.mark.parametrize(
    ("items", "form"),
    [([ONE, TWO], "raw"), ([CHUNK], "raw"), ([ONE, CHUNK], "multipart")],
)
def test_what_a_form_cannot_hold_is_refused(items: list[Sendable], form: str) -> None:
    with pytest.raises(InvalidInput):
        encode(items, form)
