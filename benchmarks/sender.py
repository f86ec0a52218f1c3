"""A service that only sends: one ready answer of 38 MiB, by the service's own response and server.

python -m benchmarks.sender PORT
"""

import sys

import numpy as np
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from service.http.answer import FrameResponse
from service.serve.listener import listen
from service.serve.server import serve
from service.settings import load
from service.types import Frame

ELEMENTS = np.ones(38 * 2**20, np.uint8)


async def answer(request: Request) -> Response:
    await request.body()
    return FrameResponse(Frame(bytes(1024), memoryview(ELEMENTS)))


async def ready(_: Request) -> Response:
    return JSONResponse({"status": "ready"})


if __name__ == "__main__":
    routes = [Route("/preprocess", answer, methods=["POST"]), Route("/health/ready", ready)]
    settings = load({"port": sys.argv[1]})
    serve(Starlette(routes=routes), settings, listen(settings))
