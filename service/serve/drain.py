"""What SIGTERM means: not ready first, then no new connections, then the end.

uvicorn closes its listener at once, so a balancer would learn of it from
refused connections. Here readiness turns to 503 and requests are taken for a
while longer; then uvicorn's own shutdown finishes what is in progress.
"""

import asyncio
import logging
import os
import signal
import threading
from collections.abc import Callable
from types import FrameType
from typing import NoReturn

EXIT_STUCK = 70
"""EX_SOFTWARE of sysexits(3); any code but uvicorn's 3 makes the supervisor start another."""


def on_terminate(begin: Callable[[], None], delay_s: float) -> None:
    """On SIGTERM call `begin`, and after the delay what uvicorn had in place for it.

    Called on the event loop, once uvicorn has set its handlers. Ctrl-C stays
    uvicorn's: nobody routes requests to a service in a terminal.
    """
    if threading.current_thread() is not threading.main_thread():
        return  # Python lets the main thread alone see signals; a test runs a server elsewhere
    loop = asyncio.get_running_loop()
    uvicorns = signal.getsignal(signal.SIGTERM)
    begun = False

    def handle(number: int, frame: FrameType | None) -> None:
        nonlocal begun
        if not begun and callable(uvicorns):
            begun = True
            begin()
            loop.call_soon_threadsafe(loop.call_later, delay_s, uvicorns, number, frame)

    signal.signal(signal.SIGTERM, handle)


def terminate() -> None:
    """Begin this worker's end, as if its supervisor had asked for it."""
    os.kill(os.getpid(), signal.SIGTERM)


def leave_at_once() -> NoReturn:
    """End the process although a thread is not done. `sys.exit` would wait for it for ever."""
    logging.getLogger("patchmill").error("leaving with a thread still at work")
    logging.shutdown()
    os._exit(EXIT_STUCK)
