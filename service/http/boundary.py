"""The outermost layer: a request id for every answer, and what to do when our own code fails.

Plain ASGI, so that answers pass through without a copy. A client that left is
no error; any exception that is not ours to answer is a fault of the service: a
500 without particulars, and a log line with the stack and the request id.
"""

import logging
import re
import uuid

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from service.errors import InternalFault
from service.http.problems import problem

REQUEST_ID = "X-Request-ID"
ACCEPTABLE_ID = re.compile(r"[A-Za-z0-9._-]{1,128}")

log = logging.getLogger("patchmill.http")


class Boundary:
    """Wraps the application."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        request_id = _request_id(Headers(scope=scope))
        started = False

        async def send_with_id(message: Message) -> None:
            nonlocal started
            if message["type"] == "http.response.start":
                started = True
                MutableHeaders(scope=message)[REQUEST_ID] = request_id
            await send(message)

        try:
            await self._app(scope, receive, send_with_id)
        except ClientDisconnect:
            log.debug("request %s: the client left", request_id)
        except Exception:
            log.exception("request %s failed", request_id)
            if started:
                raise  # too late for an answer: the server must cut the connection
            fault = InternalFault(f"quote request id {request_id} when you report this")
            await problem(fault)(scope, receive, send_with_id)


def _request_id(headers: Headers) -> str:
    """The caller's own id where it is a plain word, else a new one."""
    given = headers.get(REQUEST_ID, "")
    return given if ACCEPTABLE_ID.fullmatch(given) else uuid.uuid4().hex
