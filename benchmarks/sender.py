"""A service that only sends: one ready answer of 38 MiB, by the service's own response and server.

python -m benchmarks.sender PORT
"""

import sys

import numpy as np
import uvicorn
from starlette.types import Receive, Scope, Send

from service.http import answer
from service.serve.listener import listen
from service.serve.supervisor import configured
from service.settings import load
from service.types import Frame

ELEMENTS = np.ones(38 * 2**20, np.uint8)


async def application(_: Scope, receive: Receive, send: Send) -> None:
    while (await receive()).get("more_body"):
        pass
    await answer.send(Frame(bytes(1024), memoryview(ELEMENTS)), {}, send)
    await answer.finish(send)


if __name__ == "__main__":
    settings = load({"port": sys.argv[1]})
    config = configured(application, settings)
    config.lifespan = "off"
    uvicorn.Server(config).run([listen(settings)])
