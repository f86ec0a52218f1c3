"""The client for asyncio: pictures in, a `Batch` out."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterable, Iterable, Mapping
from types import TracebackType
from typing import Any

import httpx

from patchmill_client import calls, exchange, many
from patchmill_client.batch import Batch
from patchmill_client.calls import Call, Options, Result
from patchmill_client.defaults import (
    DEFAULT_CONCURRENCY,
    DEFAULT_CONNECTIONS,
    DEFAULT_MAX_ANSWER_BYTES,
    DEFAULT_URL,
)
from patchmill_client.errors import ConnectFailed, PatchmillError, Unavailable
from patchmill_client.exchange import RefusalReader, Timeouts
from patchmill_client.inputs import Source, Sources
from patchmill_client.many import OnProgress, Outcome
from patchmill_client.retry import ONCE, Attempts, Pace, RetryPolicy
from patchmill_client.values import Dtype, Layout, Order


class AsyncClient:
    """Speaks to one service over connections that it keeps open; for one event loop.

    `transport` is for what a URL cannot say, such as `httpx.AsyncHTTPTransport(uds=…)`
    for a Unix socket; `max_connections` is then the transport's own affair.
    `api_key` goes with every request as its bearer token, and so do `headers`.
    """

    def __init__(
        self,
        base_url: str = DEFAULT_URL,
        *,
        retry: RetryPolicy | None = None,
        timeouts: Timeouts | None = None,
        max_answer_bytes: int = DEFAULT_MAX_ANSWER_BYTES,
        max_connections: int = DEFAULT_CONNECTIONS,
        api_key: str | None = None,
        headers: Mapping[str, str] | None = None,
        transport: httpx.AsyncBaseTransport | None = None,
        pace: Pace | None = None,
    ) -> None:
        self._retry = retry or RetryPolicy()
        self._timeouts = timeouts or Timeouts()
        self._max_answer_bytes = max_answer_bytes
        self._max_connections = max_connections
        self._pace = pace or Pace()
        self._http = httpx.AsyncClient(
            base_url=exchange.checked_url(base_url),
            headers=exchange.fixed_headers(headers, api_key),
            limits=httpx.Limits(
                max_connections=max_connections, max_keepalive_connections=max_connections
            ),
            transport=transport,
            follow_redirects=False,
        )

    async def preprocess(
        self,
        sources: Sources,
        *,
        model: str | None = None,
        dtype: str = Dtype.FLOAT32,
        background: str | None = None,
        form: str | None = None,
        layout: str = Layout.PATCHES,
        order: str = Order.RASTER,
        max_model_len: int | None = None,
        text_len: int | None = None,
        min_num_patches: int | None = None,
        max_num_patches: int | None = None,
        model_id: str | None = None,
        request_id: str | None = None,
    ) -> Batch:
        """Patches for a picture, or for a sequence of pictures and video chunks (lists of frames).

        What is None is the service's or the profile's default, but for `form`:
        None sends one picture raw and anything else as msgpack. With `model_id`, an
        engine's `--model`, digests are vLLM's own hashes (docs/vllm.md). Raises
        PatchmillError: InvalidInput before anything is sent, a Refusal with the
        service's reason, a BadAnswer, or a TransportError.
        """
        options = Options(
            model=model,
            dtype=dtype,
            background=background,
            form=form,
            layout=layout,
            order=order,
            max_model_len=max_model_len,
            text_len=text_len,
            min_num_patches=min_num_patches,
            max_num_patches=max_num_patches,
            model_id=model_id,
        )
        call = await asyncio.to_thread(
            calls.preprocess, sources, options, request_id, self._max_answer_bytes
        )
        return await self._repeat(call, self._retry)

    def map(
        self,
        sources: Iterable[Source] | AsyncIterable[Source],
        *,
        concurrency: int = DEFAULT_CONCURRENCY,
        look_ahead: int | None = None,
        on_progress: OnProgress | None = None,
        model: str | None = None,
        dtype: str = Dtype.FLOAT32,
        background: str | None = None,
        form: str | None = None,
        layout: str = Layout.PATCHES,
        order: str = Order.RASTER,
        max_model_len: int | None = None,
        text_len: int | None = None,
        min_num_patches: int | None = None,
        max_num_patches: int | None = None,
        model_id: str | None = None,
    ) -> AsyncGenerator[Outcome, None]:
        """An outcome for each picture or chunk, in order, each by a request of its own.

        At most `concurrency` requests are under way, and at most `look_ahead`
        outcomes (None: twice the concurrency) wait to be taken, which bounds the
        memory. An item that fails stops no other: its outcome has the error.
        """
        options = Options(
            model=model,
            dtype=dtype,
            background=background,
            form=form,
            layout=layout,
            order=order,
            max_model_len=max_model_len,
            text_len=text_len,
            min_num_patches=min_num_patches,
            max_num_patches=max_num_patches,
            model_id=model_id,
        )
        bounds = many.window(concurrency, look_ahead, self._max_connections)

        async def one(source: Source) -> Batch:
            call = await asyncio.to_thread(
                calls.preprocess, [source], options, None, self._max_answer_bytes
            )
            return await self._repeat(call, self._retry)

        return many.in_order_async(one, sources, bounds, on_progress)

    async def models(self) -> dict[str, Any]:
        """`GET /models`: the profiles that the service knows."""
        return await self._repeat(calls.get("/models"), self._retry)

    async def info(self) -> dict[str, Any]:
        """`GET /info`: versions, settings in force, which kernel runs."""
        return await self._repeat(calls.get("/info"), self._retry)

    async def ready(self) -> bool:
        """Whether the service takes requests now; asked once. Raises what is neither yes nor no."""
        try:
            await self._repeat(calls.get("/health/ready"), ONCE)
        except (ConnectFailed, Unavailable):
            return False
        return True

    async def aclose(self) -> None:
        """Close the connections."""
        await self._http.aclose()

    async def __aenter__(self) -> "AsyncClient":
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.aclose()

    async def _repeat(self, call: Call[Result], policy: RetryPolicy) -> Result:
        attempts = Attempts(policy, self._pace)
        while True:
            try:
                return await self._send(call, attempts)
            except PatchmillError as error:
                pause_s = attempts.pause_s(error)
                if pause_s is None:
                    raise
            await self._pace.sleep_async(pause_s)

    async def _send(self, call: Call[Result], attempts: Attempts) -> Result:
        exchange.check_open(self._http.is_closed)
        with exchange.faults_as_ours(call.request_id):
            async with (
                attempts.bounded(),
                self._http.stream(
                    call.method,
                    call.path,
                    params=call.parameters,
                    headers=call.headers,
                    content=call.content,
                    timeout=self._timeouts.within(attempts.remaining_s()),
                ) as response,
            ):
                if response.status_code != 200:
                    raise await self._refusal(response, attempts)
                reader = call.reader(response.headers)
                async for piece in response.aiter_raw():
                    reader.feed(piece)
                    attempts.remaining_s()
                return reader.finish()

    async def _refusal(self, response: httpx.Response, attempts: Attempts) -> PatchmillError:
        """The error that a status other than 200 means; a body cut short changes nothing."""
        reader = RefusalReader(response.status_code, response.headers)
        try:
            async for piece in response.aiter_raw():
                reader.feed(piece)
                attempts.remaining_s()
                if not reader.wants_more:
                    break
        except httpx.TransportError:
            pass
        return reader.finish()
