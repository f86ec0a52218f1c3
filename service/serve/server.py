"""The HTTP server: uvicorn with the parser and the loop that send without a copy."""

import logging
import socket
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import uvicorn

from service.serve.listener import described
from service.settings import Settings

log = logging.getLogger("patchmill")


def serve(app: Callable[..., Any], settings: Settings, listener: socket.socket) -> None:
    """Answer on the socket until a signal says stop; then finish what is in progress."""
    config = uvicorn.Config(
        app,
        root_path=settings.root_path,
        # Pinned, not "auto": the same answer through h11 takes three times the time.
        loop="uvloop",
        http="httptools",
        ws="none",
        log_config=None,
        access_log=False,
        server_header=False,
        lifespan="on",
    )
    log.info("listening on %s", described(listener))
    with suppress(KeyboardInterrupt):  # Ctrl-C was answered by a clean shutdown
        uvicorn.Server(config).run([listener])
