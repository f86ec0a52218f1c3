"""The HTTP server: uvicorn with the parser and the loop that send without a copy."""

from collections.abc import Callable
from contextlib import suppress
from typing import Any

import uvicorn

from service.settings import Settings


def serve(app: Callable[..., Any], settings: Settings) -> None:
    """Listen and answer until a signal says stop; then finish what is in progress."""
    config = uvicorn.Config(
        app,
        host=settings.host,
        port=settings.port,
        uds=str(settings.uds) if settings.uds else None,
        # Pinned, not "auto": the same answer through h11 takes three times the time.
        loop="uvloop",
        http="httptools",
        log_config=None,
        access_log=False,
        server_header=False,
        lifespan="on",
    )
    with suppress(KeyboardInterrupt):  # Ctrl-C was answered by a clean shutdown
        uvicorn.Server(config).run()
