"""Workers and who watches them: uvicorn's supervisor, also over a single worker.

It starts a worker anew when one dies for whatever reason, and ends with an
error only when a worker cannot start at all. The listening socket is its own,
so connections wait in it while a lone worker is replaced.
"""

import logging
import socket
from contextlib import suppress
from pathlib import Path

from uvicorn._types import ASGIApplication
from uvicorn.config import STARTUP_FAILURE
from uvicorn.supervisors import Multiprocess

from service.serve.listener import described
from service.serve.protocol import Config, Protocol
from service.settings import Settings

log = logging.getLogger("patchmill")

APPLICATION = "service.app:from_environment"
"""Each worker imports it and makes its own."""


class Supervisor(Multiprocess):
    """Lets go of the listening socket before it waits: once the workers have closed theirs,
    nobody connects to a service that is on its way out."""

    def terminate_all(self) -> None:
        super().terminate_all()
        for listener in self.sockets:
            listener.close()


def configured(application: str | ASGIApplication, settings: Settings) -> Config:
    """How a worker serves the application, or what the named factory makes."""
    config = Config(
        application,
        factory=isinstance(application, str),
        workers=settings.worker_count,
        root_path=settings.root_path,
        # Pinned, not "auto": the same answer through h11 takes three times the time.
        loop="uvloop",
        http=Protocol,
        ws="none",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,  # nothing here asks for the client's address
        lifespan="on",
        timeout_keep_alive=round(settings.keep_alive_s),
        timeout_graceful_shutdown=round(settings.grace_s),
    )
    config.timeouts = settings.timeouts
    return config


def serve(settings: Settings, listener: socket.socket) -> bool:
    """Answer on the socket until a signal says stop; False when the workers could not start.

    The workers read the settings from the environment.
    """
    supervisor = Supervisor(configured(APPLICATION, settings), [listener])
    log.info("listening on %s", described(listener))
    supervisor.run()
    if settings.uds:
        with suppress(FileNotFoundError):
            Path(settings.uds).unlink()
    return all(process.exitcode != STARTUP_FAILURE for process in supervisor.processes)
