"""Connections that behave as no HTTP library would let them: half requests, pauses, deaf ears."""

import json
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from tests.service.running import Running

PATIENCE_S = 20.0


class Connection:
    """One TCP connection to the service."""

    def __init__(self, service: Running) -> None:
        self.socket = socket.create_connection(("127.0.0.1", service.port), PATIENCE_S)

    def head(self, *fields: str, path: str = "/preprocess") -> "Connection":
        """Send the head of a POST."""
        lines = [f"POST {path} HTTP/1.1", "Host: here", *fields, "", ""]
        return self.send("\r\n".join(lines).encode())

    def send(self, data: bytes) -> "Connection":
        self.socket.sendall(data)
        return self

    def post(self, body: bytes, path: str = "/preprocess") -> "Connection":
        return self.head(f"Content-Length: {len(body)}", path=path).send(body)

    def answer(self) -> tuple[int, dict[str, str], bytes]:
        """(status, headers, body) of one answer, interim ones included."""
        head = b""
        while not head.endswith(b"\r\n\r\n"):
            more = self.socket.recv(1)
            assert more, f"closed after {head!r}"
            head += more
        status, *lines = head.decode().split("\r\n")[:-2]
        headers = {name.lower(): value for name, value in (line.split(": ", 1) for line in lines)}
        body = b""
        while len(body) < int(headers.get("content-length", 0)):
            body += self.socket.recv(1 << 20)
        return int(status.split()[1]), headers, body

    def refusal(self) -> tuple[int, str, dict[str, str], dict[str, Any]]:
        """(status, code, headers, problem) of one refusal."""
        status, headers, body = self.answer()
        told = json.loads(body)
        assert (told["status"], headers["content-type"]) == (status, "application/problem+json")
        return status, told["code"], headers, told

    def is_closed(self) -> bool:
        """Whether the service closes it, waiting for that; what still comes is dropped."""
        try:
            while self.socket.recv(1 << 20):
                pass
        except ConnectionResetError:
            pass
        return True

    def close(self) -> None:
        self.socket.close()


@contextmanager
def connected(service: Running) -> Iterator[Connection]:
    connection = Connection(service)
    try:
        yield connection
    finally:
        connection.close()


def in_use(service: Running) -> dict[str, int]:
    found: dict[str, int] = service.client.get("/info").json()["in_use"]
    return found


def requests(service: Running) -> dict[str, Any]:
    found: dict[str, Any] = service.client.get("/info").json()["requests"]
    return found


def until(look: Callable[[], Any], what: str) -> Any:
    """What `look` finds once it is true."""
    deadline_s = time.monotonic() + PATIENCE_S
    pause = threading.Event()
    while time.monotonic() < deadline_s:
        if found := look():
            return found
        pause.wait(0.01)
    raise AssertionError(f"never came true: {what}")


def until_free(service: Running) -> None:
    """Until nothing is held by any request."""

    def nothing() -> bool:
        used = in_use(service)
        return not any(used[name] for name in used if name != "kept_bytes")

    until(nothing, "nothing in use")
