"""The composition root: settings in, the ASGI application out. No logic lives here."""

import asyncio
import logging
import platform
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from importlib.metadata import version

from fastapi import FastAPI
from fastapi_offline import FastAPIOffline

from kernels.dispatch import Choice
from kernels.warm import warm
from service.buffers import Buffers
from service.codec import decode
from service.frames import Press
from service.http import problems, routes
from service.http.boundary import Boundary
from service.http.state import State
from service.job import Tools
from service.plan import profiles
from service.pool.executor import Executor
from service.settings import Settings, variable
from service.wire.pack import WIRE_VERSION

log = logging.getLogger("patchmill")


def create_app(settings: Settings) -> FastAPI:
    """Wire the rooms together; raises ProfileFault when profile files are wrong."""
    folders = [profiles.BUILT_IN, *([settings.profiles_dir] if settings.profiles_dir else [])]
    state = State(
        limits=settings.limits,
        profiles=profiles.load(folders, settings.default_model),
        executor=Executor(settings.thread_count),
        facts=_facts(settings),
    )

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        # Beside the server and not before it: the liveness probe answers while kernels compile.
        warming = asyncio.create_task(_make_ready(state, settings))
        try:
            yield
        finally:
            warming.cancel()
            with suppress(asyncio.CancelledError):
                await warming
            state.executor.close()

    app = FastAPIOffline(
        docs_url="/docs",
        redoc_url=None,
        static_url="/docs-assets",
        title="patchmill",
        summary="Pictures in, patch tensors out.",
        version=version("patchmill"),
        redirect_slashes=False,
        lifespan=lifespan,
    )
    app.include_router(routes.router(state))
    problems.install(app)
    app.add_middleware(Boundary)
    return app


async def _make_ready(state: State, settings: Settings) -> None:
    """Choose and warm the kernel, then open for requests."""
    try:
        engine = (await state.executor.run(warm, Choice(settings.kernel), log.info)).engine
    except Exception:
        log.exception("the kernels could not be made ready; /health/ready stays 503")
        return
    state.tools = Tools(
        limits=state.limits,
        profiles=state.profiles,
        press=Press(engine, Buffers(settings.keep_bytes), state.executor, settings.sixteen_bit),
        versions=decode.versions(),
    )
    log.info("ready, with %d threads", state.executor.threads)


def _facts(settings: Settings) -> dict[str, object]:
    return {
        "version": version("patchmill"),
        "wire_version": WIRE_VERSION,
        "threads": settings.thread_count,
        "settings": {
            variable(name): value for name, value in settings.model_dump(mode="json").items()
        },
        "versions": {
            "python": platform.python_version(),
            **{name: version(name) for name in ("numpy", "numba", "fastapi", "uvicorn", "msgpack")},
            **decode.versions(),
        },
    }
