"""The outermost layer: a request id for every answer, what is told of it, and our own faults.

Plain ASGI, so that answers pass through without a copy. A client that left is
no error; any exception that is not ours to answer is a fault of the service: a
500 without particulars, and a log line with the stack and the request id.
Metrics, the access log and traces are fed here, where every answer passes.

Answers given before the body was read are told apart here: a short rest of a
body is read and dropped by the server, so that the connection can be used
again; a long one, or one of unknown length, is not worth it, and the
connection closes.
"""

import asyncio
import logging
import re
import uuid

from starlette.datastructures import Headers
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from service.errors import ClientLeft, Draining, InternalFault
from service.http.paths import Route, route
from service.http.problems import EXCHANGE, problem
from service.http.security import secured
from service.http.state import State
from service.telemetry import logs
from service.telemetry.exchange import Exchange

REQUEST_ID = "X-Request-ID"
ACCEPTABLE_ID = re.compile(r"[A-Za-z0-9._-]{1,128}")
MAX_DROPPED_BYTES = 2**20
"""Reading and dropping 197 kB takes 0.43 ms of CPU; a new connection takes less than 1 MiB."""
CLOSE = (b"connection", b"close")

log = logging.getLogger("patchmill.http")


class Boundary:
    """Wraps the application."""

    def __init__(self, app: ASGIApp, state: State) -> None:
        self._app = app
        self._state = state

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        exchange = Exchange(_request_id(headers), scope["method"], route(scope))
        scope[EXCHANGE] = exchange
        logs.request_id.set(exchange.request_id)  # each request has a context of its own
        unread = True

        async def receive_and_note() -> Message:
            nonlocal unread
            message = await receive()
            exchange.received_bytes += len(message.get("body", b""))
            unread = message.get("more_body", False)
            return message

        async def send_with_id(message: Message) -> None:
            if message["type"] == "http.response.start":
                exchange.status = message["status"]
                given = message["headers"] = secured(list(message.get("headers", ())))
                given.append((b"x-request-id", exchange.request_id.encode()))
                closes = self._state.draining or (unread and _not_worth_reading(headers))
                if closes and CLOSE not in given:
                    given.append(CLOSE)
                # Before the client can see the answer: whoever has it finds it counted.
                self._state.metrics.began(exchange)
            elif body := message.get("body"):
                exchange.sent_bytes += len(body)
            await send(message)

        try:
            await self._app(scope, receive_and_note, send_with_id)
        except (ClientLeft, ClientDisconnect):
            log.debug("the client left")
        except asyncio.CancelledError:
            if exchange.status:
                raise  # too late for an answer: the server must cut the connection
            log.warning("the grace period ended before request %s", exchange.request_id)
            over = Draining("the grace period is over")
            await problem(over)(scope, receive, send_with_id)
        except Exception:
            log.exception("request %s failed", exchange.request_id)
            if exchange.status:
                raise  # too late for an answer: the server must cut the connection
            fault = InternalFault(f"quote request id {exchange.request_id} when you report this")
            await problem(fault)(scope, receive, send_with_id)
        finally:
            self._tell(exchange, headers)

    def _tell(self, exchange: Exchange, headers: Headers) -> None:
        """Of a request that is over."""
        self._state.metrics.moved(exchange)
        if logs.access.isEnabledFor(logging.INFO):
            logs.access.info("answered", extra={"facts": exchange.facts()})
        if self._state.traces and exchange.route == Route.PREPROCESS:
            self._state.traces.tell(exchange, headers)


def _request_id(headers: Headers) -> str:
    """The caller's own id where it is a plain word, else a new one."""
    given = headers.get(REQUEST_ID, "")
    return given if ACCEPTABLE_ID.fullmatch(given) else uuid.uuid4().hex


def _not_worth_reading(headers: Headers) -> bool:
    """Whether the rest of an unread body is long, of unknown length, or will never come.

    A client that asked with `Expect: 100-continue` and is refused may or may
    not send its body then: the next bytes could be either.
    """
    length = headers.get("content-length", "")
    if length.isascii() and length.isdigit():
        return int(length) > MAX_DROPPED_BYTES or (int(length) > 0 and "expect" in headers)
    return "transfer-encoding" in headers
