"""Which application a request goes to: `/preprocess` straight to its own, the rest to FastAPI."""

from starlette.types import ASGIApp, Receive, Scope, Send

from service.http.paths import Route, route


class Front:
    """Both applications as one."""

    def __init__(self, preprocess: ASGIApp, rest: ASGIApp) -> None:
        self._preprocess = preprocess
        self._rest = rest

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and route(scope) is Route.PREPROCESS:
            await self._preprocess(scope, receive, send)
        else:
            await self._rest(scope, receive, send)
