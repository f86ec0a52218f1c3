"""From a request's body to items and parameters, whatever form the body has.

Raw bytes are one picture; multipart, msgpack and JSON hold several and may
carry parameters. The type of the body decides the form; what a picture is
called never decides its format. Bodies stay in memory, bounded by the limits
while they stream; nothing is written to disk and nothing is fetched.
"""

from collections.abc import AsyncIterator
from dataclasses import dataclass

from multipart import parse_options_header
from starlette.requests import Request

from service.errors import BodyTooLarge, EmptyBody, UnsupportedEncoding
from service.http import json_body, msgpack_body, multipart_body
from service.http.items import Pairs
from service.pool.executor import Executor
from service.types import Item, ItemType, Limits

MULTIPART = "multipart/form-data"
PARSERS = {
    "application/json": json_body.parse,
    "application/msgpack": msgpack_body.parse,
    "application/x-msgpack": msgpack_body.parse,
    "application/vnd.msgpack": msgpack_body.parse,
}
"""Body forms that are parsed when they are whole."""


@dataclass(frozen=True, slots=True)
class Intake:
    """A body taken apart: at least one item, and (name, value) pairs still unchecked."""

    items: tuple[Item, ...]
    pairs: Pairs


async def take(request: Request, limits: Limits, executor: Executor) -> Intake:
    """Read and parse the body; the first byte is awaited after the headers are accepted.

    Whole bodies are parsed on the executor: unpacking 60 MB would hold up every
    other client of the event loop. Raises UnsupportedEncoding, BodyTooLarge,
    EmptyBody and the faults of each form.
    """
    _check_headers(request, limits)
    kind, options = parse_options_header(request.headers.get("content-type", ""))
    chunks = _chunks(request, limits)
    if kind == MULTIPART:
        parser = multipart_body.Parser(options.get("boundary", ""), limits)
        async for chunk in chunks:
            parser.feed(chunk)
        return Intake(*parser.finish())
    body = await _whole(chunks)
    if kind in PARSERS:
        return Intake(*await executor.run(PARSERS[kind], body, limits))
    # Any other label is a hint at most: the bytes decide.
    return Intake((Item(ItemType.IMAGE, (body,)),), ())


def _check_headers(request: Request, limits: Limits) -> None:
    encodings = ",".join(request.headers.getlist("content-encoding")).lower().split(",")
    if any(encoding.strip() not in ("identity", "") for encoding in encodings):
        raise UnsupportedEncoding("send the body without a Content-Encoding")
    length = request.headers.get("content-length", "")
    if length.isascii() and length.isdigit():
        _check_length(int(length), limits)


def _check_length(length_bytes: int, limits: Limits) -> None:
    if length_bytes > limits.max_body_bytes:
        raise BodyTooLarge(
            f"the body has {length_bytes} bytes or more, at most {limits.max_body_bytes} are taken",
            limit=limits.max_body_bytes,
            actual=length_bytes,
            setting="max_body_bytes",
        )


async def _chunks(request: Request, limits: Limits) -> AsyncIterator[bytes]:
    """The body as it arrives; stops the moment it grows over the limit."""
    received_bytes = 0
    async for chunk in request.stream():
        received_bytes += len(chunk)
        _check_length(received_bytes, limits)
        if chunk:
            yield chunk
    if not received_bytes:
        raise EmptyBody("the body has no bytes")


async def _whole(chunks: AsyncIterator[bytes]) -> bytes:
    """The body as one bytes object.

    A bytearray in between, not a list of chunks: a sender of one-byte chunks
    would make a list cost forty times the body.
    """
    body = bytearray()
    async for chunk in chunks:
        body += chunk
    return bytes(body)
