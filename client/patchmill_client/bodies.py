"""Items into one request body, in any form that the service takes (docs/http.md)."""

import base64
import json
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

import msgpack

from patchmill_client.errors import InvalidInput
from patchmill_client.inputs import Sendable
from patchmill_client.values import ItemType


class Form(StrEnum):
    """How pictures are put into a body."""

    RAW = "raw"
    MULTIPART = "multipart"
    MSGPACK = "msgpack"
    JSON = "json"


@dataclass(frozen=True, slots=True)
class RequestBody:
    """Encoded once, so that a repeated request sends the same bytes."""

    content: bytes
    content_type: str


def encode(items: Sequence[Sendable], form: str | None) -> RequestBody:
    """The items in a form; None takes raw for one picture and msgpack for anything else.

    `form` is a word of `Form`. Raises InvalidInput for items that the form cannot hold.
    """
    if form is None:
        form = Form.RAW if _is_one_picture(items) else Form.MSGPACK
    match Form(form):
        case Form.RAW:
            return _raw(items)
        case Form.MULTIPART:
            return _multipart(items)
        case Form.MSGPACK:
            return _msgpack(items)
        case Form.JSON:
            return _json(items)


def _is_one_picture(items: Sequence[Sendable]) -> bool:
    return len(items) == 1 and items[0].type is ItemType.IMAGE


def _raw(items: Sequence[Sendable]) -> RequestBody:
    if not _is_one_picture(items):
        raise InvalidInput("a raw body holds one picture")
    return RequestBody(items[0].frames[0], "application/octet-stream")


def _multipart(items: Sequence[Sendable]) -> RequestBody:
    boundary = uuid.uuid4().hex
    opening = (
        f'--{boundary}\r\nContent-Disposition: form-data; name="images"; filename="picture"\r\n'
        "Content-Type: application/octet-stream\r\n\r\n"
    ).encode()
    parts: list[bytes] = []
    for index, item in enumerate(items):
        if item.type is not ItemType.IMAGE:
            raise InvalidInput("a multipart body holds pictures, not video chunks", index)
        parts += (opening, item.frames[0], b"\r\n")
    parts.append(f"--{boundary}--\r\n".encode())
    return RequestBody(b"".join(parts), f"multipart/form-data; boundary={boundary}")


def _msgpack(items: Sequence[Sendable]) -> RequestBody:
    entries = [
        {"type": str(item.type), "data": item.frames[0]}
        if item.type is ItemType.IMAGE
        else {"type": str(item.type), "frames": item.frames}
        for item in items
    ]
    content: bytes = msgpack.packb({"items": entries})
    return RequestBody(content, "application/msgpack")


def _json(items: Sequence[Sendable]) -> RequestBody:
    entries = [
        {"type": item.type, "data": _base64(item.frames[0])}
        if item.type is ItemType.IMAGE
        else {"type": item.type, "frames": [_base64(frame) for frame in item.frames]}
        for item in items
    ]
    return RequestBody(json.dumps({"items": entries}).encode(), "application/json")


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode("ascii")
