"""`POST /preprocess`, as an ASGI application of its own.

It reads as the life of a request: a ticket, the body, a thread's work, the
answer. Plain ASGI and not a route of the framework, because nothing may be read
before the ticket is given, because a refusal under load has to cost next to
nothing, and because the framework's wrappers take 0.2 ms of a request's 5.
"""

import asyncio
from collections.abc import Callable
from functools import partial

from starlette.datastructures import Headers, QueryParams
from starlette.types import Receive, Scope, Send

from service import job
from service.errors import ClientLeft, MethodNotAllowed, PatchmillError
from service.http import answer, intake, parameters
from service.http.intake import Form, Items, Upload
from service.http.parameters import Parameters
from service.http.problems import EXCHANGE, problem
from service.http.state import State
from service.pool.admission import Ticket
from service.pool.permit import Permit
from service.telemetry.exchange import Exchange, Phase
from service.telemetry.stages import Stages
from service.types import Frame

METHOD = "POST"


class Preprocess:
    """Answers every request on /preprocess; `Boundary` is around it."""

    def __init__(self, state: State) -> None:
        self._state = state

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            if scope["method"] != METHOD:
                raise MethodNotAllowed(f"{scope['method']} is not taken here")
            await self._answer(scope, receive, send)
        except PatchmillError as refusal:
            allow = {"Allow": METHOD} if isinstance(refusal, MethodNotAllowed) else None
            await problem(refusal, allow)(scope, receive, send)

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Everything that can be refused without the body is refused before the ticket."""
        exchange: Exchange = scope[EXCHANGE]
        stages = exchange.stages
        self._state.ready_tools()
        pairs = QueryParams(scope["query_string"]).multi_items()
        wanted = parameters.parse(pairs)
        form = intake.form(Headers(scope=scope), self._state.limits)
        permit = Permit(self._state.budget, self._state.timeouts.deadline_s)
        ticket = self._state.admission.enter(form.cost_bytes)
        try:
            unpack = await self._upload(form, receive, ticket, permit)
            stages.lap("receive")
            work = partial(self._work, unpack, wanted, pairs, permit, stages)
            frame = await self._under(permit, ticket, receive, work)
            stages.lap("pack")
            await answer.send(frame, stages.spent_s(), send)
        finally:
            ticket.leave()
        model, formats = frame.model, frame.formats
        del frame  # while the client reads, the answer is the connection's alone
        await answer.finish(send)
        stages.lap("send")
        self._state.metrics.answered(model, formats, stages.spent_s())

    async def _upload(
        self, form: Form, receive: Receive, ticket: Ticket, permit: Permit
    ) -> Callable[[], Items]:
        timeout_s = min(self._state.timeouts.body_timeout_s, permit.left_s)
        try:
            return await intake.take(form, Upload(receive, ticket, self._state.limits, timeout_s))
        except ClientLeft:
            self._state.metrics.left(Phase.UPLOAD)
            raise

    def _work(
        self,
        unpack: Callable[[], Items],
        wanted: Parameters,
        query: list[tuple[str, str]],
        permit: Permit,
        stages: Stages,
    ) -> Frame:
        """What a thread does for the request."""
        stages.lap("queue")
        items, pairs = unpack()
        if pairs:
            wanted = parameters.parse((*query, *pairs))
        stages.lap("receive")
        default = self._state.profiles.default.name
        request = job.Request(
            items=items,
            model=default if wanted.model is None else wanted.model,
            dtype=wanted.dtype,
            background=wanted.background,
            layout=wanted.layout,
            order=wanted.order,
            budget=wanted.budget,
        )
        return job.preprocess(request, self._state.ready_tools(), permit, stages)

    async def _under(
        self, permit: Permit, ticket: Ticket, receive: Receive, work: Callable[[], Frame]
    ) -> Frame:
        """The frame, unless the time is over or the client leaves before it is there."""
        gone = asyncio.create_task(_until_gone(receive))
        ticket.keep()
        try:
            return await self._state.executor.answer(permit, gone, ticket.leave, work)
        except ClientLeft:
            self._state.metrics.left(Phase.WORK)
            raise
        finally:
            gone.cancel()


async def _until_gone(receive: Receive) -> None:
    """Returns when the client has left. Nothing else is to come: the body is here."""
    while (await receive())["type"] != "http.disconnect":
        pass
