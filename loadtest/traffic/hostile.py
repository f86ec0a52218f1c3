"""What must be refused, and by which name: damage, lies, other formats, broken requests.

A handful that costs a generator nothing; tests/hostile has the whole table.
"""

import base64
import json
import random
import struct
from collections.abc import Iterator
from dataclasses import dataclass

from traffic.judge import Refusal

PREPROCESS = "/preprocess?dtype=uint8"
RAW = "application/octet-stream"
JSON = "application/json"


@dataclass(frozen=True)
class Row:
    """A request that deserves its refusal."""

    path: str
    content_type: str
    body: bytes
    refusal: Refusal


def rows(innocent: bytes) -> Iterator[Row]:
    """All of them; `innocent` is a sound JPEG that some are made from."""
    half = innocent[: len(innocent) // 2]
    text = base64.b64encode(innocent).decode()
    yield Row(PREPROCESS, RAW, b"", Refusal(400, "empty_body"))
    yield Row(PREPROCESS, RAW, half, Refusal(422, "truncated_image"))
    yield Row(PREPROCESS, RAW, b"<!doctype html><title>404</title>", _unsupported())
    yield Row(PREPROCESS, RAW, random.Random(1).randbytes(4096), _unsupported())
    yield Row(PREPROCESS, RAW, _png_of(30_000, 30_000), Refusal(422, "too_many_pixels"))
    yield Row(PREPROCESS, JSON, b'{"items": [', Refusal(400, "bad_json"))
    yield Row(PREPROCESS, JSON, _item(text[:-8] + "%%%%%%%%"), Refusal(400, "bad_base64"))
    yield Row(PREPROCESS, JSON, _url("http://10.0.0.1/secret.jpg"), Refusal(422, "remote_url"))
    yield Row("/preprocess?dtyp=uint8", RAW, innocent, Refusal(422, "bad_parameter"))


def _unsupported() -> Refusal:
    return Refusal(415, "unsupported_format")


def _item(text: str) -> bytes:
    return json.dumps({"items": [{"type": "image", "data": text}]}).encode()


def _url(url: str) -> bytes:
    return json.dumps({"items": [{"type": "image_url", "image_url": {"url": url}}]}).encode()


def _png_of(width: int, height: int) -> bytes:
    """A header alone, of a picture far too large."""
    return b"\x89PNG\r\n\x1a\n" + struct.pack(
        ">I4sIIBBBBBI", 13, b"IHDR", width, height, 8, *[2, 0, 0, 0], 0
    )
