"""What the POST routes share: the life of a request from its ticket to a thread's result.

Plain ASGI and not routes of the framework, because nothing may be read before
the ticket is given, because a refusal under load has to cost next to nothing,
and because the framework's wrappers take time that a request does not have.
"""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import TypeVar

from starlette.datastructures import Headers, QueryParams
from starlette.types import Receive, Scope, Send

from service.errors import ClientLeft, MethodNotAllowed, PatchmillError
from service.http import intake
from service.http.intake import Form, Parsers, Unpack, Upload
from service.http.problems import EXCHANGE, problem
from service.http.state import State
from service.pool.admission import Ticket
from service.pool.permit import Permit
from service.telemetry.exchange import Phase
from service.telemetry.stages import Stages

METHOD = "POST"

Query = list[tuple[str, str]]
Result = TypeVar("Result")


class Posted(ABC):
    """Answers every request on one path; `Boundary` is around it."""

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

    @abstractmethod
    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None: ...

    @asynccontextmanager
    async def _worked(
        self,
        scope: Scope,
        receive: Receive,
        parsers: Parsers,
        start: Callable[[Query, Permit], Callable[[Unpack], Result]],
    ) -> AsyncIterator[Result]:
        """The result of a thread's work; the ticket is held until the block ends.

        `start` gets the query before the body is read, so a wrong one costs no
        upload, and gives what the thread does with the body.
        """
        stages: Stages = scope[EXCHANGE].stages
        self._state.ready_tools()
        permit = Permit(self._state.budget, self._state.timeouts.deadline_s)
        work = start(QueryParams(scope["query_string"]).multi_items(), permit)
        form = intake.form(Headers(scope=scope), self._state.limits)
        ticket = self._state.admission.enter(form.cost_bytes)
        try:
            unpack = await self._upload(form, receive, ticket, permit, parsers)
            stages.lap("receive")
            yield await self._under(permit, ticket, receive, lambda: work(unpack))
        finally:
            ticket.leave()

    async def _upload(
        self, form: Form, receive: Receive, ticket: Ticket, permit: Permit, parsers: Parsers
    ) -> Unpack:
        timeout_s, setting = min(
            (self._state.timeouts.body_timeout_s, "body_timeout_s"),
            (permit.left_s, "deadline_s"),
        )
        upload = Upload(receive, ticket, self._state.limits, timeout_s, setting)
        try:
            return await intake.take(form, upload, parsers)
        except ClientLeft:
            self._state.metrics.left(Phase.UPLOAD)
            raise

    async def _under(
        self, permit: Permit, ticket: Ticket, receive: Receive, work: Callable[[], Result]
    ) -> Result:
        """The result, unless the time is over or the client leaves before it is there."""
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
