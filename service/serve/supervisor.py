"""Workers and who watches them: uvicorn's supervisor, also over a single worker.

It starts a worker anew when one dies for whatever reason, and ends with an
error only when a worker cannot start at all. The listening socket is its own,
so connections wait in it while a lone worker is replaced.
"""

import logging
import socket
from contextlib import suppress
from math import ceil

from uvicorn._types import ASGIApplication
from uvicorn.config import STARTUP_FAILURE
from uvicorn.supervisors import Multiprocess

from service.keys import Keys
from service.serve.listener import described
from service.serve.protocol import Config, Protocol
from service.serve.scraped import scraped
from service.settings import Settings
from service.telemetry.metrics import Restarts

log = logging.getLogger("patchmill")

APPLICATION = "service.app:from_environment"
"""Each worker imports it and makes its own."""


class Supervisor(Multiprocess):
    """Counts the workers that it starts anew, and forgets what dead ones held.

    Lets go of the listening socket before it waits: once the workers have closed theirs,
    nobody connects to a service that is on its way out.
    """

    def __init__(self, config: Config, sockets: list[socket.socket]) -> None:
        super().__init__(config, sockets)
        self._restarts = Restarts()
        self._known: set[int] = set()

    def keep_subprocess_alive(self) -> None:
        before = self._pids()
        super().keep_subprocess_alive()
        after = self._pids()
        self._restarts.count(len(before - after))
        for pid in (self._known | before) - after:  # also those that a signal has replaced
            self._restarts.forget(pid)
        self._known = after

    def _pids(self) -> set[int]:
        return {process.process.pid for process in self.processes if process.process.pid}

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
        timeout_keep_alive=ceil(settings.keep_alive_s),
        timeout_graceful_shutdown=ceil(settings.grace_s),
    )
    config.timeouts = settings.timeouts
    return config


def serve(
    settings: Settings, listener: socket.socket, for_metrics: socket.socket | None, keys: Keys
) -> bool:
    """Answer on the socket until a signal says stop; False when the workers could not start.

    The workers read the settings from the environment. Metrics are served here where
    they have a socket of their own.
    """
    supervisor = Supervisor(configured(APPLICATION, settings), [listener])
    log.info("listening on %s", described(listener))
    if for_metrics:
        asks = keys.wanted and settings.metrics_access == "key"
        scraped(for_metrics, keys if asks else None)
        log.info("metrics on %s/metrics", described(for_metrics))
    bound = settings.uds.stat().st_ino if settings.uds else None
    supervisor.run()
    if settings.uds:
        with suppress(FileNotFoundError):
            if settings.uds.stat().st_ino == bound:  # else it is a successor's already
                settings.uds.unlink()
    return all(process.exitcode != STARTUP_FAILURE for process in supervisor.processes)
