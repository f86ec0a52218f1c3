"""Errors to answers: the one place where HTTP meets the error tree (RFC 9457)."""

from collections.abc import Mapping
from typing import Any

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
)
from service.settings import variable

MEDIA_TYPE = "application/problem+json"


def problem(error: PatchmillError, headers: Mapping[str, str] | None = None) -> JSONResponse:
    """The answer to a fault: its facts and nothing else."""
    content: dict[str, Any] = {
        "type": f"urn:patchmill:problem:{error.code}",
        "title": error.title,
        "status": error.status,
        "detail": error.detail,
        "code": error.code,
        "retryable": error.retryable,
    }
    facts = {
        "item": error.item,
        "limit": error.limit,
        "actual": error.actual,
        "setting": variable(error.setting) if error.setting else None,
    }
    content.update({name: fact for name, fact in facts.items() if fact is not None})
    return JSONResponse(content, error.status, headers, MEDIA_TYPE)


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
