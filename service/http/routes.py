"""The routes: each reads its request, hands the work on and says what comes back.

`POST /preprocess` takes only the raw request, because a declared body parameter
would make the server read the body before we have looked at the headers.
"""

from typing import Any

from fastapi import APIRouter, Request
from starlette.responses import JSONResponse, Response

from service import job
from service.http import intake, openapi, parameters
from service.http.answer import FrameResponse
from service.http.state import State
from service.telemetry.stages import Stages
from service.types import Dtype, Format


def router(state: State) -> APIRouter:
    """All routes over one state."""
    routes = APIRouter()

    @routes.post("/preprocess", response_class=Response, openapi_extra=openapi.PREPROCESS)
    async def preprocess(request: Request) -> Response:
        """Turn pictures into patches; docs/wire.md describes the answer."""
        stages = Stages()
        tools = state.ready_tools()
        query = request.query_params.multi_items()
        parameters.parse(query)  # before the body is read: a wrong query costs no upload
        taken = await intake.take(request, state.limits, state.executor)
        wanted = parameters.parse((*query, *taken.pairs))
        model = state.profiles.default.name if wanted.model is None else wanted.model
        stages.lap("receive")
        work = job.Request(taken.items, model, wanted.dtype, wanted.background)
        return FrameResponse(await state.executor.run(job.preprocess, work, tools, stages))

    @routes.get("/models", openapi_extra=openapi.MODELS)
    async def models() -> JSONResponse:
        """The profiles: names, aliases, sizes, normalisation and where each comes from."""
        return JSONResponse(
            {
                "default": state.profiles.default.name,
                "models": [
                    {**profile.model_dump(mode="json"), "dtypes": list(Dtype)}
                    for profile in state.profiles
                ],
            }
        )

    @routes.get("/info", openapi_extra=openapi.INFO)
    async def info() -> JSONResponse:
        """What this service is: versions, every setting, and which kernel runs and why."""
        return JSONResponse({**state.facts, "kernel": _kernel(state), "formats": list(Format)})

    @routes.get("/health/live", openapi_extra=openapi.PROBE)
    async def live() -> JSONResponse:
        """The process answers."""
        return JSONResponse({"status": "live"})

    @routes.get("/health/ready", openapi_extra=openapi.READY)
    async def ready() -> JSONResponse:
        """The kernels are warm and requests are taken."""
        state.ready_tools()
        return JSONResponse({"status": "ready"})

    for path, probe in (("/health/live", live), ("/health/ready", ready)):
        # Some balancers probe with HEAD; it is not described twice.
        routes.add_api_route(path, probe, methods=["HEAD"], include_in_schema=False)
    return routes


def _kernel(state: State) -> dict[str, Any]:
    if state.tools is None:
        return {"name": None, "reason": "being compiled"}
    return {"name": state.tools.press.engine.name, "reason": state.tools.press.engine.reason}
