"""`POST /preprocess`: pictures in, patches out."""

from collections.abc import Callable
from functools import partial

from starlette.types import Receive, Scope, Send

from service import job
from service.http import answer, parameters
from service.http.intake import PARSERS, Unpack
from service.http.posted import Posted, Query
from service.http.problems import EXCHANGE
from service.pool.permit import Permit
from service.telemetry.stages import Stages
from service.types import Frame


class Preprocess(Posted):
    """Answers every request on /preprocess."""

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        stages: Stages = scope[EXCHANGE].stages
        start = partial(self._start, stages)
        async with self._worked(scope, receive, PARSERS, start) as frame:
            stages.lap("pack")
            await answer.send(frame, stages.spent_s(), send)
        model, formats = frame.model, frame.formats
        del frame  # while the client reads, the answer is the connection's alone
        await answer.finish(send)
        stages.lap("send")
        self._state.metrics.answered(model, formats, stages.spent_s())

    def _start(self, stages: Stages, query: Query, permit: Permit) -> Callable[[Unpack], Frame]:
        wanted = parameters.parse(query)

        def work(unpack: Unpack) -> Frame:
            stages.lap("queue")
            items, pairs = unpack()
            asked = parameters.parse((*query, *pairs)) if pairs else wanted
            stages.lap("receive")
            request = job.Request(items, asked)
            return job.preprocess(request, self._state.ready_tools(), permit, stages)

        return work
