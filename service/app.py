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
from starlette.middleware.cors import CORSMiddleware
from starlette.types import ASGIApp

from kernels.dispatch import Choice
from kernels.warm import warm
from service import about
from service.buffers import Buffers
from service.codec import decode
from service.frames import Press
from service.http import cors, openapi, page, problems, routes
from service.http.auth import Guard
from service.http.boundary import Boundary
from service.http.door import Door
from service.http.front import Front
from service.http.paths import PROBES, Route
from service.http.plan import Plan
from service.http.preprocess import Preprocess
from service.http.state import State
from service.job import Tools
from service.keys import Keys
from service.plan import profiles
from service.pool.admission import Admission
from service.pool.budget import Budget
from service.pool.executor import Executor
from service.pool.readers import Readers
from service.pool.watchdog import watch_supervisor, watch_threads
from service.serve import drain
from service.settings import Settings, load
from service.telemetry import logs
from service.telemetry.metrics import Metrics
from service.telemetry.traces import Traces

log = logging.getLogger("patchmill")

SAMPLE_EVERY_S = 0.5

WARM_PATIENCE_S = 3.0
"""How long a worker keeps its listener closed until its kernels are ready, which takes about a
second from their cache: a worker that replaces another takes no request that it would refuse.
Where they have to be compiled it listens before, for the liveness probe."""

LAST_PATIENCE_S = 1.0
"""For threads whose requests were given up already, before a worker leaves without them."""


def from_environment() -> ASGIApp:
    """What each worker runs."""
    settings = load({})
    logs.configure(settings.log_level, settings.log_format, settings.access_log)
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
        readers=Readers(settings.write_timeout_s),
        metrics=Metrics(about.build()),
        facts=about.facts(settings),
        traces=_traces(settings),
    )
    keys = settings.keys
    shown = settings.docs_access != "off"
    app = FastAPI(
        docs_url=None,
        redoc_url=None,
        openapi_url="/openapi.json" if shown else None,
        title="patchmill",
        summary="Pictures in, patch tensors out.",
        version=version("patchmill"),
        redirect_slashes=False,
        lifespan=_lifespan(state, settings),
    )
    app.include_router(routes.router(state))
    if settings.metrics_access != "off" and not settings.metrics_port:
        app.include_router(routes.metrics(state))
    if shown:
        openapi.document(app, keys)
        page.install(app)
    problems.install(app)
    layers = _layers(state, settings, keys)
    posted: dict[Route, ASGIApp] = {
        Route.PREPROCESS: Preprocess(state),
        Route.PLAN: Plan(state),
    }
    for layer in layers:  # from the inside out
        app.add_middleware(layer)
        posted = {route: layer(answering) for route, answering in posted.items()}
    return Front(posted, app)


def _layers(state: State, settings: Settings, keys: Keys) -> list[Callable[[ASGIApp], ASGIApp]]:
    """What stands around both applications, the innermost first."""
    open_routes = set(PROBES)
    if settings.docs_access == "open":
        open_routes.add(Route.DOCS)
    if settings.metrics_access == "open":
        open_routes.add(Route.METRICS)
    layers: list[Callable[[ASGIApp], ASGIApp]] = [
        partial(Guard, keys=keys, open_routes=open_routes),
    ]
    if settings.origins:  # outside of the guard: a browser asks first, and without a key
        layers.append(partial(CORSMiddleware, allow_origins=settings.origins, **cors.ALLOWED))
    return [*layers, partial(Boundary, state=state)]


def _traces(settings: Settings) -> Traces | None:
    if settings.otel == "off":
        return None
    from service.telemetry.otel import OpenTelemetry  # noqa: PLC0415 - an extra's packages

    return OpenTelemetry(version("patchmill"))


def _lifespan(
    state: State, settings: Settings
) -> Callable[[FastAPI], AbstractAsyncContextManager[dict[str, object]]]:
    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[dict[str, object]]:
        def begin_to_end() -> None:
            state.draining = True
            log.info("draining for %g s", settings.drain_delay_s)

        drain.on_terminate(begin_to_end, settings.drain_delay_s)
        give_up = partial(_give_up, state)
        ready = asyncio.create_task(_make_ready(state, settings))
        tasks = [
            ready,
            asyncio.create_task(_watch(ready, state, settings, give_up)),
            asyncio.create_task(watch_supervisor(os.getppid(), give_up)),
            asyncio.create_task(_sample(state)),
            asyncio.create_task(_make_room(state)),
        ]
        try:
            await asyncio.wait([ready], timeout=WARM_PATIENCE_S)
            # For the protocol, which serves connections.
            yield {
                "metrics": state.metrics,
                "door": Door(state.admission, state.metrics),
                "readers": state.readers,
            }
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks)
            if state.traces:
                await asyncio.to_thread(state.traces.close)
            if not await state.executor.close(LAST_PATIENCE_S):
                drain.leave_at_once()

    return lifespan


async def _sample(state: State) -> None:
    """Keep the gauges of what is held up to date, for whichever worker is asked for them."""
    while True:
        state.metrics.hold(state.in_use())
        await asyncio.sleep(SAMPLE_EVERY_S)


async def _make_room(state: State) -> None:
    """Cut off slow readers while others wait for the memory that they hold."""
    while True:
        if state.budget.waiting:
            state.readers.give_way()
        await asyncio.sleep(SAMPLE_EVERY_S)


async def _watch(
    ready: "asyncio.Task[None]", state: State, settings: Settings, give_up: Callable[[], None]
) -> None:
    """Over the threads, once none of them compiles any more."""
    await ready
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
    state.metrics.kernel(engine.name)
    # What is here now stays: the collector need not look at the compiler's objects again, which
    # took a fifth of the event loop's time under overload.
    gc.collect()
    gc.freeze()
    log.info("ready, with %d threads", state.executor.threads)
