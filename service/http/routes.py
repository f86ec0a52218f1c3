"""The routes beside `/preprocess`: what this service knows, and how it is."""

import asyncio
from typing import Any

from fastapi import APIRouter
from starlette.responses import JSONResponse, Response

from service.http import openapi
from service.http.paths import Route
from service.http.state import State
from service.telemetry.metrics import CONTENT_TYPE
from service.types import Format


def router(state: State) -> APIRouter:
    """All of them over one state."""
    routes = APIRouter()

    @routes.get("/models", openapi_extra=openapi.MODELS)
    async def models() -> JSONResponse:
        """The profiles: names, aliases, sizes, normalisation and where each comes from."""
        return JSONResponse(
            {
                "default": state.profiles.default.name,
                "models": [
                    {**profile.model_dump(mode="json"), "dtypes": list(profile.dtypes)}
                    for profile in state.profiles
                ],
            }
        )

    @routes.get("/info", openapi_extra=openapi.INFO)
    async def info() -> JSONResponse:
        """Versions, every setting, which kernel runs and why, budgets and what is in use."""
        return JSONResponse(
            {
                **state.facts,
                "kernel": _kernel(state),
                "formats": list(Format),
                "in_use": state.in_use(),
                "requests": state.metrics.facts(Route.PREPROCESS),
            }
        )

    @routes.get("/health/live", openapi_extra=openapi.PROBE)
    async def live() -> JSONResponse:
        """The process answers."""
        return JSONResponse({"status": "live"})

    @routes.get("/health/ready", openapi_extra=openapi.READY)
    async def ready() -> JSONResponse:
        """The kernels are warm, and the worker is not about to end."""
        state.check_ready()
        return JSONResponse({"status": "ready"})

    for path, probe in (("/health/live", live), ("/health/ready", ready)):
        # Some balancers probe with HEAD; it is not described twice.
        routes.add_api_route(path, probe, methods=["HEAD"], include_in_schema=False)
    return routes


def metrics(state: State) -> APIRouter:
    """`GET /metrics`, where it is asked for here."""
    routes = APIRouter()

    @routes.get("/metrics", openapi_extra=openapi.METRICS)
    async def metrics() -> Response:
        """Every metric, of all workers together."""
        state.metrics.hold(state.in_use())
        text = await asyncio.to_thread(state.metrics.exposition)
        return Response(text, headers={"Content-Type": CONTENT_TYPE})

    return routes


def _kernel(state: State) -> dict[str, Any]:
    if state.tools is None:
        return {"name": None, "reason": "being compiled"}
    return {"name": state.tools.press.engine.name, "reason": state.tools.press.engine.reason}
