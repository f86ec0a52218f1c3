"""Sees what a worker cannot mend: a thread that does not come back, and a supervisor that is gone.

Neither a thread nor the work of a C library in it can be ended from outside.
So the worker stops taking requests and ends as a whole; its supervisor starts
another.
"""

import asyncio
import logging
import os
from collections.abc import Callable

from service.pool.executor import Executor

LOOK_EVERY_S = 0.25

log = logging.getLogger("patchmill")


async def watch_threads(
    executor: Executor, stuck_after_s: float, give_up: Callable[[], None]
) -> None:
    """Call `give_up` once, when a thread is so long beyond its request's deadline."""
    while True:
        await asyncio.sleep(LOOK_EVERY_S)
        overdue_s = executor.overdue_s()
        if overdue_s > stuck_after_s:
            log.error("a thread is stuck, %.0f s beyond its request's deadline", overdue_s)
            give_up()
            return


async def watch_supervisor(supervisor: int, give_up: Callable[[], None]) -> None:
    """Call `give_up` once, when the process of this id is not this one's parent any more."""
    while os.getppid() == supervisor:
        await asyncio.sleep(LOOK_EVERY_S)
    log.error("the supervisor is gone")
    give_up()
