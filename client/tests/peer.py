"""A peer on loopback that speaks HTTP as a script tells it: well, late, or wrongly.

Each request takes the next step of the script; the last step serves all that
follow. A step gets the connection and the request and writes what it likes; it
returns whether the connection stays open.
"""

import contextlib
import socket
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import BinaryIO, TypeAlias

MSGPACK = "application/msgpack"


@dataclass(frozen=True)
class Seen:
    """A request as the peer read it."""

    line: str
    headers: dict[str, str]
    body: bytes
    connection: int


Step: TypeAlias = Callable[[socket.socket, Seen], bool]


@dataclass
class Peer:
    """Its address, what it saw, and a latch that holds `wait` until the test lets go."""

    url: str
    seen: list[Seen] = field(default_factory=list)
    connections: int = 0
    latch: threading.Event = field(default_factory=threading.Event)


def answer(
    status: int = 200,
    body: bytes = b"",
    content_type: str | None = MSGPACK,
    headers: Mapping[str, str] | None = None,
    piece_bytes: int | None = None,
) -> Step:
    """A plain answer with a true Content-Length; in small pieces where that is asked for."""

    def step(connection: socket.socket, seen: Seen) -> bool:
        connection.sendall(head(status, len(body), content_type, headers, seen))
        size = piece_bytes or max(1, len(body))
        for start in range(0, len(body), size):
            connection.sendall(body[start : start + size])
        return True

    return step


def claiming(length: int | str, body: bytes) -> Step:
    """A 200 whose Content-Length is what is told here; the connection ends after the body."""

    def step(connection: socket.socket, seen: Seen) -> bool:
        connection.sendall(head(200, length, MSGPACK, None, seen) + body)
        return False

    return step


def unmeasured(body: bytes) -> Step:
    """A 200 without a Content-Length: the end of the connection is the end of the body."""

    def step(connection: socket.socket, seen: Seen) -> bool:
        connection.sendall(head(200, None, MSGPACK, None, seen) + body)
        return False

    return step


def chunked(body: bytes, piece_bytes: int = 1000) -> Step:
    """A 200 in chunks."""

    def step(connection: socket.socket, seen: Seen) -> bool:
        more = {"Transfer-Encoding": "chunked"}
        connection.sendall(head(200, None, MSGPACK, more, seen))
        for start in range(0, len(body), piece_bytes):
            piece = body[start : start + piece_bytes]
            connection.sendall(b"%x\r\n%b\r\n" % (len(piece), piece))
        connection.sendall(b"0\r\n\r\n")
        return True

    return step


def cut(body: bytes, after_bytes: int) -> Step:
    """A 200 whose connection ends too early."""
    return claiming(len(body), body[:after_bytes])


def problem(status: int, document: bytes, headers: Mapping[str, str] | None = None) -> Step:
    return answer(status, document, "application/problem+json", headers)


def hang_up(connection: socket.socket, seen: Seen) -> bool:  # noqa: ARG001
    """No answer at all."""
    return False


def raw(sent: bytes) -> Step:
    """Exactly these bytes."""

    def step(connection: socket.socket, seen: Seen) -> bool:  # noqa: ARG001
        connection.sendall(sent)
        return False

    return step


def wait_for(latch: threading.Event, then: Step) -> Step:
    """Silence until the test lets go."""

    def step(connection: socket.socket, seen: Seen) -> bool:
        latch.wait(60)
        return then(connection, seen)

    return step


def head(
    status: int,
    length: int | str | None,
    content_type: str | None,
    headers: Mapping[str, str] | None,
    seen: Seen,
) -> bytes:
    """A status line and headers; the request's id comes back, as the service does it."""
    lines = [f"HTTP/1.1 {status} So"]
    if length is not None:
        lines.append(f"Content-Length: {length}")
    if content_type is not None:
        lines.append(f"Content-Type: {content_type}")
    if "x-request-id" in seen.headers:
        lines.append(f"X-Request-ID: {seen.headers['x-request-id']}")
    lines += [f"{name}: {value}" for name, value in (headers or {}).items()]
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")


@contextlib.contextmanager
def peer(*script: Step) -> Iterator[Peer]:
    """A peer that listens until the block ends."""
    listener = socket.create_server(("127.0.0.1", 0))
    here = Peer(f"http://127.0.0.1:{listener.getsockname()[1]}")
    steps = iter(script)
    last = script[-1]
    lock = threading.Lock()
    open_sockets: list[socket.socket] = []
    threads: list[threading.Thread] = []

    def serve(connection: socket.socket, number: int) -> None:
        # A client that hangs up in the middle is what many tests are about.
        with connection, contextlib.suppress(OSError), connection.makefile("rb") as incoming:
            while (seen := _read(incoming, number)) is not None:
                with lock:
                    here.seen.append(seen)
                    step = next(steps, last)
                if not step(connection, seen):
                    return

    def accept() -> None:
        with contextlib.suppress(OSError):
            while True:
                connection, _ = listener.accept()
                here.connections += 1
                open_sockets.append(connection)
                thread = threading.Thread(target=serve, args=(connection, here.connections))
                threads.append(thread)
                thread.start()

    acceptor = threading.Thread(target=accept)
    acceptor.start()
    try:
        yield here
    finally:
        here.latch.set()
        with contextlib.suppress(OSError):
            listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        acceptor.join()
        for connection in open_sockets:
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
        for thread in threads:
            thread.join()


def _read(incoming: BinaryIO, number: int) -> Seen | None:
    """The next request, None at the end of the connection."""
    line = incoming.readline()
    if not line:
        return None
    headers: dict[str, str] = {}
    while header := incoming.readline().decode("latin-1").strip():
        name, _, value = header.partition(":")
        headers[name.lower()] = value.strip()
    body = incoming.read(int(headers.get("content-length", "0")))
    return Seen(line.decode("latin-1").strip(), headers, body, number)
