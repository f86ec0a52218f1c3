"""Errors to answers: the one place where HTTP meets the error tree (RFC 9457)."""

from collections.abc import Mapping

from fastapi import FastAPI
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.types import Receive, Scope, Send

from service.errors import (
    BadRequest,
    InternalFault,
    MethodNotAllowed,
    NotFound,
    PatchmillError,
    SlowRequest,
)
from service.problem import MEDIA_TYPE, content
from service.telemetry.exchange import Exchange

EXCHANGE = "patchmill.exchange"
"""Where a request's scope holds what is to be told of it."""


class Problem(JSONResponse):
    """The answer to a fault, which tells its code to whoever counts."""

    def __init__(self, error: PatchmillError, headers: Mapping[str, str] | None) -> None:
        super().__init__(content(error), error.status, headers, MEDIA_TYPE)
        self._code = error.code

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        exchange: Exchange | None = scope.get(EXCHANGE)
        if exchange:
            exchange.reason = self._code
        await super().__call__(scope, receive, send)


def problem(error: PatchmillError, headers: Mapping[str, str] | None = None) -> JSONResponse:
    """The answer to a fault."""
    answer = Problem(error, headers)
    if error.retry_after_s is not None:
        answer.headers["Retry-After"] = str(error.retry_after_s)
    if error.status == SlowRequest.status:
        answer.headers["connection"] = "close"  # RFC 9110, section 15.5.9
    return answer


def install(app: FastAPI) -> None:
    """Answer our own errors and the framework's (404, 405, a broken request) as problems."""
    app.add_exception_handler(PatchmillError, _ours)
    app.add_exception_handler(HTTPException, _frameworks)


async def _ours(_: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, PatchmillError)
    return problem(error)


async def _frameworks(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, HTTPException)
    known: dict[int, PatchmillError] = {
        NotFound.status: NotFound("see /docs for what is here"),
        MethodNotAllowed.status: MethodNotAllowed(f"{request.method} is not taken here"),
        BadRequest.status: BadRequest("the request could not be read"),
    }
    fault = known.get(error.status_code, InternalFault("an unforeseen answer of the framework"))
    return problem(fault, error.headers)
