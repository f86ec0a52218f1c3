"""Peer (f): the service that one would write in an afternoon, to measure ours against.

FastAPI with an uploaded file, Pillow's resize, the published style of kernel
(one parallel loop over all elements, div and mod for every index), and
`packb` of the whole answer in the handler. Not a straw man: uvloop, httptools,
worker threads and a warm kernel, and the answer's bytes are those of ours.

    python -m benchmarks.obvious PORT
"""

import io
import sys
from threading import Lock

import msgpack
import numpy as np
import uvicorn
from fastapi import FastAPI, Request, Response
from PIL import Image
from starlette.concurrency import run_in_threadpool

from benchmarks.kernels_peers import MEAN, STD, per_element_parallel
from service.plan import navit, profiles
from service.types import ItemType, Size

PROFILE = profiles.load([profiles.BUILT_IN], "kimi-k2.5").default
# numba's default threading layer ends the process when two threads enter a parallel kernel.
KERNEL = Lock()

app = FastAPI()


@app.post("/preprocess")
async def preprocess(request: Request) -> Response:
    return await run_in_threadpool(answer, await request.body())


@app.get("/health/ready")
async def ready() -> dict[str, str]:
    return {"status": "ready"}


def answer(body: bytes) -> Response:
    picture = Image.open(io.BytesIO(body)).convert("RGB")
    plan = navit.plan(Size(picture.height, picture.width), ItemType.IMAGE, 1, PROFILE)
    size = (plan.resized.width, plan.resized.height)
    pixels = np.asarray(picture.resize(size, Image.Resampling.BICUBIC))
    shape = (plan.grid.patches, 3, plan.patch_px, plan.patch_px)
    patches = np.empty(shape, np.float32)
    with KERNEL:
        per_element_parallel(pixels, plan.patch_px, plan.grid.w, MEAN, STD, patches.reshape(-1))
    values = {"dtype": "float32", "shape": shape, "data": patches.tobytes()}
    grid = [1, plan.grid.h, plan.grid.w]
    packed = msgpack.packb({"grid_thws": [grid], "pixel_values": values})
    return Response(packed, media_type="application/msgpack")


if __name__ == "__main__":
    uvicorn.run(
        app,
        port=int(sys.argv[1]),
        loop="uvloop",
        http="httptools",
        access_log=False,
        log_level="warning",
    )
