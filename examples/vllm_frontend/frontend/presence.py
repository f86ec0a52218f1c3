"""Work for as long as somebody waits for it: a client that leaves ends it.

In comes a request whose body was read, and a coroutine; out comes what it returns.
Cancelling reaches the connections to the servers behind, so that an engine stops too.
"""

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

from fastapi import Request
from starlette.requests import ClientDisconnect

T = TypeVar("T")


async def while_present(request: Request, work: Coroutine[Any, Any, T]) -> T:
    """What the work returns or raises; ClientDisconnect, once it is cancelled, if nobody waits."""
    working = asyncio.create_task(work)
    leaving = asyncio.create_task(_leaves(request))
    try:
        await asyncio.wait((working, leaving), return_when=asyncio.FIRST_COMPLETED)
        if not working.done():
            raise ClientDisconnect
        return working.result()
    finally:
        working.cancel()
        leaving.cancel()
        await asyncio.gather(working, leaving, return_exceptions=True)


async def _leaves(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass
