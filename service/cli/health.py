"""`patchmill health`: ask the running service whether it is ready; exit 0 if so, else 1."""

import argparse
import socket
import sys
from http import HTTPStatus
from http.client import HTTPConnection, HTTPException

from service.settings import Settings, SettingsFault, load

TIMEOUT_S = 5.0


def add(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = commands.add_parser("health", help=__doc__.partition(": ")[2].strip())
    parser.set_defaults(run=run)


def run(_: argparse.Namespace) -> int:
    try:
        settings = load({})
        connection = _connection(settings)
        connection.request("GET", "/health/ready")
        answer = connection.getresponse()
        ready = answer.status == HTTPStatus.OK
        print("ready" if ready else answer.read().decode(errors="replace"))
    except SettingsFault as fault:
        print(fault, file=sys.stderr)
        return 1
    except (OSError, HTTPException) as error:
        print(f"not reachable: {error}", file=sys.stderr)
        return 1
    return 0 if ready else 1


def _connection(settings: Settings) -> HTTPConnection:
    """To the address that this same environment makes the service listen on."""
    host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(settings.host, settings.host)  # noqa: S104
    connection = HTTPConnection(host, settings.port, timeout=TIMEOUT_S)
    if settings.uds:
        connection.sock = socket.socket(socket.AF_UNIX)
        connection.sock.settimeout(TIMEOUT_S)
        connection.sock.connect(str(settings.uds))
    return connection
