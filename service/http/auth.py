"""Who may come in: a bearer token in front of everything but the routes that are named open.

It stands before the ticket and reads nothing of the body, so a stranger costs
a hash. What is not named needs a key; a route that is added later does too.
"""

from collections.abc import Set as AbstractSet

from starlette.types import ASGIApp, Receive, Scope, Send

from service.errors import Unauthorized
from service.http.paths import Route, route
from service.http.problems import problem
from service.keys import Keys

CHALLENGE = 'Bearer realm="patchmill"'


class Guard:
    """Lets requests with a key pass, and those to an open route."""

    def __init__(self, app: ASGIApp, keys: Keys, open_routes: AbstractSet[Route]) -> None:
        self._app = app
        self._keys = keys
        self._open = open_routes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or not self._keys.wanted or route(scope) in self._open:
            await self._app(scope, receive, send)
            return
        given = [value for name, value in scope["headers"] if name == b"authorization"]
        if len(given) == 1 and self._keys.allow(given[0].decode("latin-1")):
            await self._app(scope, receive, send)
            return
        refusal = Unauthorized("send Authorization: Bearer and a key that this service knows")
        challenge = CHALLENGE + (', error="invalid_token"' if given else "")
        await problem(refusal, {"WWW-Authenticate": challenge})(scope, receive, send)
