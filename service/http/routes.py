"""The routes beside `/preprocess`: what this service knows, and how it is."""

from typing import Any

from fastapi import APIRouter
from starlette.responses import JSONResponse

from service.http import openapi
from service.http.state import State
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
                "in_use": _in_use(state),
                "requests": state.counts.facts(),
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


def _kernel(state: State) -> dict[str, Any]:
    if state.tools is None:
        return {"name": None, "reason": "being compiled"}
    return {"name": state.tools.press.engine.name, "reason": state.tools.press.engine.reason}


def _in_use(state: State) -> dict[str, int]:
    """What this worker holds now, under the names of its budgets, and the pool's idle memory."""
    buffers = state.tools.press.buffers if state.tools else None
    return {
        "queue_length": state.admission.tickets,
        "body_bytes": state.admission.body_bytes,
        "pixels": state.budget.pixels,
        "answer_bytes": state.budget.answer_bytes,
        "kept_bytes": buffers.kept_bytes if buffers else 0,
    }
