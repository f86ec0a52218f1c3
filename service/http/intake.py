"""From a request's body to items and parameters, whatever form the body has.

Raw bytes are one picture; multipart, msgpack, and later JSON, hold several and
may carry parameters. The type of the body decides the form; what a picture is
called never decides its format. Bodies stay in memory, bounded by the limits
while they stream; nothing is written to disk and nothing is fetched.
"""

from collections.abc import AsyncIterator
from dataclasses import dataclass

from multipart import parse_options_header
from starlette.requests import Request

from service.errors import BodyTooLarge, EmptyBody, UnsupportedBody, UnsupportedEncoding
from service.http import msgpack_body, multipart_body
from service.types import Item, ItemType, Limits

FORMS = "raw picture bytes, multipart/form-data or application/msgpack"
NOT_YET = ("application/json", "text/json")
MSGPACK = ("application/msgpack", "application/x-msgpack", "application/vnd.msgpack")


@dataclass(frozen=True, slots=True)
class Intake:
    """A body taken apart: at least one item, and (name, value) pairs still unchecked."""

    items: tuple[Item, ...]
    pairs: tuple[tuple[str, object], ...]


async def take(request: Request, limits: Limits) -> Intake:
    """Read and parse the body; the first byte is awaited after the headers are accepted.

    Raises UnsupportedEncoding, UnsupportedBody, BodyTooLarge, EmptyBody and the
    faults of each form.
    """
    _check_headers(request, limits)
    kind, options = parse_options_header(request.headers.get("content-type", ""))
    chunks = _chunks(request, limits)
    if kind == "multipart/form-data":
        parser = multipart_body.Parser(options.get("boundary", ""), limits)
        async for chunk in chunks:
            parser.feed(chunk)
        items, pairs = parser.finish()
    elif kind in MSGPACK:
        items, pairs = msgpack_body.parse(await _whole(chunks), limits)
    elif kind in NOT_YET:
        raise UnsupportedBody(f"a body of type {kind} is not taken; send {FORMS}")
    else:
        # Any other label is a hint at most: the bytes decide.
        items, pairs = (Item(ItemType.IMAGE, (await _whole(chunks),)),), ()
    return Intake(items, pairs)


def _check_headers(request: Request, limits: Limits) -> None:
    encoding = request.headers.get("content-encoding", "identity").strip().lower()
    if encoding not in ("identity", ""):
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
