"""Which application a request goes to: the POST routes to their own, the rest to FastAPI."""

from collections.abc import Mapping

from starlette.types import ASGIApp, Receive, Scope, Send

from service.http.paths import Route, route


class Front:
    """All applications as one."""

    def __init__(self, posted: Mapping[Route, ASGIApp], rest: ASGIApp) -> None:
        self._posted = posted
        self._rest = rest

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        chosen = self._posted.get(route(scope)) if scope["type"] == "http" else None
        await (chosen or self._rest)(scope, receive, send)
