"""From a request's body to items and parameters, whatever form the body has.

Raw bytes are one picture; multipart, msgpack and JSON hold several and may
carry parameters. The type of the body decides the form; what a picture is
called never decides its format. Bodies stay in memory, counted by the request's
ticket while they stream; nothing is written to disk and nothing is fetched.
"""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from io import BytesIO
from math import ceil
from typing import Any

from multipart import parse_options_header
from starlette.datastructures import Headers
from starlette.types import Receive

from service.errors import BodyTooLarge, ClientLeft, EmptyBody, SlowRequest, UnsupportedEncoding
from service.http import json_body, msgpack_body, multipart_body
from service.http.items import Pairs
from service.pool.admission import Ticket
from service.types import Item, ItemType, Limits

MULTIPART = "multipart/form-data"
PARSERS: Mapping[str, Callable[[bytes, Limits], Any]] = {
    "application/json": json_body.parse,
    "application/msgpack": msgpack_body.parse,
    "application/x-msgpack": msgpack_body.parse,
    "application/vnd.msgpack": msgpack_body.parse,
}
"""Body forms that are parsed when they are whole."""

COST = {"application/json": 4, MULTIPART: 2} | dict.fromkeys(tuple(PARSERS)[1:], 2)
"""Bytes of memory a byte of the body takes at most, where it is not one: JSON is held as
bytes, as text, as strings of base64 and decoded; the others as they came and in pieces."""

Items = tuple[tuple[Item, ...], Pairs]
Unpack = Callable[[], Any]
"""Takes a body apart, on a thread: `Items`, or what a route's own parser makes of it."""
Parsers = Mapping[str, Callable[[bytes, Limits], Any]]


@dataclass(frozen=True, slots=True)
class Form:
    """What the headers say of a body, before it is read: made by `form`."""

    kind: str
    boundary: str
    length_bytes: int | None
    cost: int

    @property
    def cost_bytes(self) -> int | None:
        """What the whole body will take of memory; None when its length is not told."""
        return None if self.length_bytes is None else self.length_bytes * self.cost


def form(headers: Headers, limits: Limits) -> Form:
    """Raises UnsupportedEncoding and BodyTooLarge; no byte of the body is needed."""
    encodings = ",".join(headers.getlist("content-encoding")).lower().split(",")
    if any(encoding.strip() not in ("identity", "") for encoding in encodings):
        raise UnsupportedEncoding("send the body without a Content-Encoding")
    transfers = ",".join(headers.getlist("transfer-encoding")).lower().split(",")
    if any(transfer.strip() not in ("chunked", "") for transfer in transfers):
        raise UnsupportedEncoding("send the body with no Transfer-Encoding but chunked")
    length = headers.get("content-length", "")
    length_bytes = int(length) if length.isascii() and length.isdigit() else None
    _check_length(length_bytes or 0, limits)
    kind, options = parse_options_header(headers.get("content-type", ""))
    return Form(kind, options.get("boundary", ""), length_bytes, COST.get(kind, 1))


@dataclass(frozen=True, slots=True)
class Upload:
    """Where a body comes from, and what bounds it."""

    receive: Receive
    ticket: Ticket
    limits: Limits
    timeout_s: float
    timeout_setting: str
    """What the seconds come from: the body's own setting, or the request's deadline."""


async def take(wanted: Form, upload: Upload, parsers: Parsers) -> Unpack:
    """Read the body; gives a call that takes it apart, for a thread.

    It is not for the event loop: unpacking 60 MB would hold up every other
    client. It gives at least one item, and (name, value) pairs still unchecked.
    Raises BodyTooLarge, EmptyBody, SlowRequest, ClientLeft, and the faults of
    multipart; the call raises those of the other forms.
    """
    if wanted.kind == MULTIPART:
        parser = multipart_body.Parser(wanted.boundary, upload.limits)
        await _read(wanted, upload, parser.feed)
        return parser.finish
    # Not a list of chunks: a sender of one-byte chunks would make a list cost forty times the
    # body. A BytesIO gives its buffer away without another copy.
    whole = BytesIO()
    await _read(wanted, upload, whole.write)
    body = whole.getvalue()
    if wanted.kind in parsers:
        return partial(parsers[wanted.kind], body, upload.limits)
    # Any other label is a hint at most: the bytes decide.
    items = (Item(ItemType.IMAGE, (body,)),)
    return lambda: (items, ())


async def _read(wanted: Form, upload: Upload, sink: Callable[[bytes], object]) -> None:
    """The body as it arrives; stops the moment it grows over a limit or is too slow."""
    unforeseen = wanted.cost if wanted.length_bytes is None else 0
    ticket, loop = upload.ticket, asyncio.get_running_loop()
    try:
        async with asyncio.timeout(upload.timeout_s) as limit:
            ticket.uploading(lambda: limit.reschedule(loop.time()))
            more = True
            while more:
                message = await upload.receive()
                if message["type"] == "http.disconnect":
                    raise ClientLeft
                chunk = message["body"]
                ticket.receive(len(chunk), len(chunk) * unforeseen)
                _check_length(ticket.received_bytes, upload.limits)
                if chunk:
                    sink(chunk)
                more = message["more_body"]
    except TimeoutError as error:
        ticket.check()
        raise SlowRequest(
            f"{ticket.received_bytes} bytes of the body came within {upload.timeout_s:g} s",
            limit=ceil(upload.timeout_s),
            setting=upload.timeout_setting,
        ) from error
    ticket.uploaded()
    if not ticket.received_bytes:
        raise EmptyBody("the body has no bytes")


def _check_length(length_bytes: int, limits: Limits) -> None:
    if length_bytes > limits.max_body_bytes:
        raise BodyTooLarge(
            f"the body has {length_bytes} bytes or more, at most {limits.max_body_bytes} are taken",
            limit=limits.max_body_bytes,
            actual=length_bytes,
            setting="max_body_bytes",
        )
