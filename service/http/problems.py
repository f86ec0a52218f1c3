"""Errors to answers: the one place where HTTP meets the error tree (RFC 9457)."""

from collections.abc import Mapping

from fastapi import FastAPI
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse

from service.errors import (
    BadRequest,
    InternalFault,
    MethodNotAllowed,
    NotFound,
    PatchmillError,
    SlowRequest,
)
from service.problem import MEDIA_TYPE, content


def problem(error: PatchmillError, headers: Mapping[str, str] | None = None) -> JSONResponse:
    """The answer to a fault."""
    answer = JSONResponse(content(error), error.status, headers, MEDIA_TYPE)
    if error.retry_after_s is not None:
        answer.headers["Retry-After"] = str(error.retry_after_s)
    if error.status == SlowRequest.status:
        answer.headers["Connection"] = "close"  # RFC 9110, section 15.5.9
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
