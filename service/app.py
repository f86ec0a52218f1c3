"""The composition root: settings in, the ASGI application out. No logic lives here."""

import asyncio
import gc
import logging
import os
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import partial
from importlib.metadata import version

from fastapi import FastAPI
from fastapi_offline import FastAPIOffline
from starlette.types import ASGIApp

from kernels.dispatch import Choice
from kernels.warm import warm
from service import about
from service.buffers import Buffers
from service.codec import decode
from service.frames import Press
from service.http import openapi, problems, routes
from service.http.boundary import Boundary
from service.http.door import Door
from service.http.front import Front
from service.http.preprocess import Preprocess
from service.http.state import State
from service.job import Tools
from service.plan import profiles
from service.pool.admission import Admission
from service.pool.budget import Budget
from service.pool.executor import Executor
from service.pool.watchdog import watch_supervisor, watch_threads
from service.serve import drain
from service.settings import Settings, load
from service.telemetry import logs
from service.telemetry.counts import Counts

log = logging.getLogger("patchmill")

LAST_PATIENCE_S = 1.0
"""For threads whose requests were given up already, before a worker leaves without them."""


def from_environment() -> ASGIApp:
    """What each worker runs."""
    settings = load({})
    logs.configure(settings.log_level)
    return create_app(settings)


def create_app(settings: Settings) -> ASGIApp:
    """Wire the rooms together; raises ProfileFault when profile files are wrong."""
    budgets = settings.budgets
    state = State(
        limits=settings.limits,
        timeouts=settings.timeouts,
        budgets=budgets,
        profiles=profiles.load_all(settings.profiles_dir, settings.default_model),
        executor=Executor(settings.thread_count),
        admission=Admission(budgets),
        budget=Budget(budgets),
        counts=Counts(),
        facts=about.facts(settings),
    )
    app = FastAPIOffline(
        docs_url="/docs",
        redoc_url=None,
        static_url="/docs-assets",
        title="patchmill",
        summary="Pictures in, patch tensors out.",
        version=version("patchmill"),
        redirect_slashes=False,
        lifespan=_lifespan(state, settings),
    )
    app.include_router(routes.router(state))
    openapi.document(app)
    problems.install(app)
    app.add_middleware(Boundary, closing=lambda: state.draining)
    return Front(Boundary(Preprocess(state), closing=lambda: state.draining), app)


def _lifespan(
    state: State, settings: Settings
) -> Callable[[FastAPI], AbstractAsyncContextManager[dict[str, object]]]:
    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[dict[str, object]]:
        def begin_to_end() -> None:
            state.draining = True
            log.info("draining for %g s", settings.drain_delay_s)

        drain.on_terminate(begin_to_end, settings.drain_delay_s)
        # Beside the server and not before it: the liveness probe answers while kernels compile.
        give_up = partial(_give_up, state)
        tasks = [
            asyncio.create_task(_live(state, settings, give_up)),
            asyncio.create_task(watch_supervisor(os.getppid(), give_up)),
        ]
        try:
            # For the protocol, which serves connections.
            yield {"counts": state.counts, "door": Door(state.admission, state.counts)}
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks)
            if not await state.executor.close(LAST_PATIENCE_S):
                drain.leave_at_once()

    return lifespan


async def _live(state: State, settings: Settings, give_up: Callable[[], None]) -> None:
    """Make ready, then watch over the threads."""
    await _make_ready(state, settings)
    await watch_threads(state.executor, settings.stuck_after_s, give_up)


def _give_up(state: State) -> None:
    state.admission.close()
    drain.terminate()


async def _make_ready(state: State, settings: Settings) -> None:
    """Choose and warm the kernel, then open for requests."""
    try:
        engine = (await state.executor.run(warm, Choice(settings.kernel), log.info)).engine
    except Exception:
        log.exception("the kernels could not be made ready; /health/ready stays 503")
        return
    buffers = Buffers(settings.kept_share_bytes)
    state.tools = Tools(
        limits=state.limits,
        profiles=state.profiles,
        press=Press(engine, buffers, state.executor, settings.sixteen_bit),
        versions=decode.versions(),
    )
    # What is here now stays: the collector need not look at the compiler's objects again, which
    # took a fifth of the event loop's time under overload.
    gc.collect()
    gc.freeze()
    log.info("ready, with %d threads", state.executor.threads)
