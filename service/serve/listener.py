"""The listening socket, bound before all else starts, so that a wrong address is told first."""

import socket
import stat
from contextlib import suppress
from pathlib import Path

from service.settings import Settings

BACKLOG = 2048
METRICS_BACKLOG = 16


class CannotListen(OSError):
    """The address cannot be bound; the message says which and why."""


def listen(settings: Settings) -> socket.socket:
    """A socket bound to the settings' Unix socket, or host and port; raises CannotListen."""
    address = str(settings.uds) if settings.uds else f"{settings.host}:{settings.port}"
    try:
        if settings.uds:
            return _unix(settings.uds)
        return socket.create_server(
            (settings.host, settings.port), family=_family(settings), backlog=BACKLOG
        )
    except OSError as error:
        raise CannotListen(f"cannot listen on {address}: {error.strerror or error}") from error


def listen_for_metrics(settings: Settings) -> socket.socket | None:
    """A socket for the metrics' own port, None where they have none; raises CannotListen."""
    if not settings.metrics_port or settings.metrics_access == "off":
        return None
    address = (settings.host, settings.metrics_port)
    try:
        return socket.create_server(address, family=_family(settings), backlog=METRICS_BACKLOG)
    except OSError as error:
        place = f"{settings.host}:{settings.metrics_port}"
        raise CannotListen(f"cannot listen on {place}: {error.strerror or error}") from error


def described(listener: socket.socket) -> str:
    """Where it listens, as a client would write it."""
    if listener.family == socket.AF_UNIX:
        return f"unix:{listener.getsockname()}"
    host, port = listener.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def _family(settings: Settings) -> socket.AddressFamily:
    return socket.getaddrinfo(settings.host, settings.port, type=socket.SOCK_STREAM)[0][0]


def _unix(path: Path) -> socket.socket:
    with suppress(FileNotFoundError):
        if stat.S_ISSOCK(path.stat().st_mode) and not _answers(path):
            path.unlink()  # left by a service that was killed
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(path))
    listener.listen(BACKLOG)
    return listener


def _answers(path: Path) -> bool:
    """Whether somebody listens there: taking over would cut it off without a word."""
    with socket.socket(socket.AF_UNIX) as probe:
        return probe.connect_ex(str(path)) == 0
