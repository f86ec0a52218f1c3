"""The client for threads and scripts: pictures in, a `Batch` out."""

from collections.abc import Generator, Iterable, Mapping
from types import TracebackType
from typing import Any

import httpx

from patchmill_client import calls, deadline, exchange, many
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


class Client:
    """Speaks to one service over connections that it keeps open; safe to share between threads.

    `transport` is for what a URL cannot say, such as `httpx.HTTPTransport(uds=…)`
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
        transport: httpx.BaseTransport | None = None,
        pace: Pace | None = None,
    ) -> None:
        self._retry = retry or RetryPolicy()
        self._timeouts = timeouts or Timeouts()
        self._max_answer_bytes = max_answer_bytes
        self._max_connections = max_connections
        self._pace = pace or Pace()
        self._http = httpx.Client(
            base_url=exchange.checked_url(base_url),
            headers=exchange.fixed_headers(headers, api_key),
            transport=transport
            or deadline.transport(
                httpx.Limits(
                    max_connections=max_connections, max_keepalive_connections=max_connections
                )
            ),
            follow_redirects=False,
        )

    def preprocess(
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
        return self._repeat(
            calls.preprocess(sources, options, request_id, self._max_answer_bytes), self._retry
        )

    def map(
        self,
        sources: Iterable[Source],
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
    ) -> Generator[Outcome, None, None]:
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

        def one(source: Source) -> Batch:
            call = calls.preprocess([source], options, None, self._max_answer_bytes)
            return self._repeat(call, self._retry)

        return many.in_order(one, sources, bounds, on_progress)

    def models(self) -> dict[str, Any]:
        """`GET /models`: the profiles that the service knows."""
        return self._repeat(calls.get("/models"), self._retry)

    def info(self) -> dict[str, Any]:
        """`GET /info`: versions, settings in force, which kernel runs."""
        return self._repeat(calls.get("/info"), self._retry)

    def ready(self) -> bool:
        """Whether the service takes requests now; asked once. Raises what is neither yes nor no."""
        try:
            self._repeat(calls.get("/health/ready"), ONCE)
        except (ConnectFailed, Unavailable):
            return False
        return True

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def __enter__(self) -> "Client":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _repeat(self, call: Call[Result], policy: RetryPolicy) -> Result:
        attempts = Attempts(policy, self._pace)
        while True:
            try:
                return self._send(call, attempts)
            except PatchmillError as error:
                pause_s = attempts.pause_s(error)
                if pause_s is None:
                    raise
            self._pace.sleep(pause_s)

    def _send(self, call: Call[Result], attempts: Attempts) -> Result:
        exchange.check_open(self._http.is_closed)
        with (
            exchange.faults_as_ours(call.request_id),
            deadline.bounded(attempts.remaining_s),
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
                raise self._refusal(response, attempts)
            reader = call.reader(response.headers)
            for piece in response.iter_raw():
                reader.feed(piece)
                attempts.remaining_s()
            return reader.finish()

    def _refusal(self, response: httpx.Response, attempts: Attempts) -> PatchmillError:
        """The error that a status other than 200 means; a body cut short changes nothing."""
        reader = RefusalReader(response.status_code, response.headers)
        try:
            for piece in response.iter_raw():
                reader.feed(piece)
                attempts.remaining_s()
                if not reader.wants_more:
                    break
        except httpx.TransportError:
            pass
        return reader.finish()
