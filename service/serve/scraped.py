"""`GET /metrics` on a port of its own, answered by the supervisor.

It reads the files that all workers write, so it answers while they are busy and
while one of them is started anew. It is a port for the operator's own network: a
thread for each scraper, with a deadline for each read.
"""

import json
import logging
import socket
import sys
import threading
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from service.errors import (
    BadRequest,
    MethodNotAllowed,
    NotFound,
    PatchmillError,
    Unauthorized,
)
from service.keys import Keys
from service.problem import MEDIA_TYPE, content
from service.telemetry.metrics import CONTENT_TYPE, exposition

TIMEOUT_S = 5.0
METHOD = "GET"

log = logging.getLogger("patchmill")


def scraped(listener: socket.socket, keys: Keys | None) -> None:
    """Answer on the socket in a thread that ends with the process; `keys` None asks for none."""

    class Handler(_Handler):
        wanted = keys

    server = _Server(listener.getsockname()[:2], Handler, bind_and_activate=False)
    server.socket.close()
    server.socket = listener
    threading.Thread(target=server.serve_forever, name="metrics", daemon=True).start()


class _Server(ThreadingHTTPServer):
    """Threads end with the process, and a scraper that leaves is no fault."""

    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:  # noqa: ARG002
        if isinstance(sys.exception(), OSError):
            log.debug("metrics: the scraper left")
        else:
            log.exception("the metrics could not be answered")


class _Handler(BaseHTTPRequestHandler):
    """One connection, one request."""

    timeout = TIMEOUT_S
    wanted: Keys | None = None

    def do_GET(self) -> None:
        if self.path.partition("?")[0] != "/metrics":
            self._refuse(NotFound("there is /metrics, and nothing else"))
        elif self.wanted and not self.wanted.allow(self.headers.get("Authorization", "")):
            self._refuse(Unauthorized("send Authorization: Bearer and a key of this service"))
        else:
            self._answer(200, CONTENT_TYPE, exposition())

    def send_error(self, code: int, *_: object, **__: object) -> None:
        """The library's own answer would be HTML that echoes the request, and 501 for a method."""
        self.close_connection = True
        if code == HTTPStatus.NOT_IMPLEMENTED:
            self._refuse(MethodNotAllowed(f"{METHOD} alone is taken here"))
        else:
            self._refuse(BadRequest("this is not a readable HTTP request"))

    def log_message(self, *_: object) -> None:
        """Nothing: the library would log the request's line, which the client chose."""

    def _refuse(self, error: PatchmillError) -> None:
        self._answer(error.status, MEDIA_TYPE, json.dumps(content(error)).encode())

    def _answer(self, status: int, kind: str, body: bytes) -> None:
        self.send_response_only(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("X-Content-Type-Options", "nosniff")
        if status == MethodNotAllowed.status:
            self.send_header("Allow", METHOD)
        if status == Unauthorized.status:
            self.send_header("WWW-Authenticate", "Bearer")
        self.end_headers()
        self.wfile.write(body)
