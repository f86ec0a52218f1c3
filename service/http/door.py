"""The refusal of a full queue, ready to be written: what most clients get under overload.

The same bytes that the application would answer with, made without it. Only what
is plain is refused here, a POST whose body is short enough to be dropped;
everything else goes the long way.
"""

import logging
import os
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from service.errors import QueueFull
from service.http.boundary import ACCEPTABLE_ID, CLOSE, MAX_DROPPED_BYTES, REQUEST_ID
from service.http.paths import PREPROCESS_PATH, Route
from service.http.posted import METHOD
from service.http.problems import problem
from service.http.security import secured
from service.pool.admission import Admission
from service.telemetry import logs
from service.telemetry.exchange import Exchange
from service.telemetry.metrics import Metrics


class Door:
    """Asked by the protocol for each request, when its headers are complete."""

    def __init__(self, admission: Admission, metrics: Metrics) -> None:
        self._admission = admission
        self._metrics = metrics

    def __call__(
        self, target: bytes, headers: Sequence[tuple[bytes, bytes]]
    ) -> tuple[bytes, bool] | None:
        """Where the queue is full, the whole answer and whether the connection goes on."""
        if target.partition(b"?")[0] != PREPROCESS_PATH.encode() or self._admission.closed:
            return None
        plain = _plain(headers)
        if plain is None or (full := self._admission.full()) is None:
            return None
        assert full.limit is not None
        assert full.actual is not None
        assert full.retry_after_s is not None
        template, body_bytes = _template(full.limit, full.actual, full.retry_after_s, plain.close)
        self._metrics.refused(Route.PREPROCESS, full.status, full.code, body_bytes)
        if logs.access.isEnabledFor(logging.INFO):
            _log(plain.request_id.decode(), full, body_bytes)
        return template % plain.request_id, not plain.close


def _log(request_id: str, full: QueueFull, body_bytes: int) -> None:
    exchange = Exchange(request_id, METHOD, Route.PREPROCESS)
    exchange.status, exchange.reason = full.status, full.code
    exchange.sent_bytes = body_bytes
    # Here is no context of the request's own: what follows must not carry its id.
    token = logs.request_id.set(request_id)
    try:
        logs.access.info("answered", extra={"facts": exchange.facts()})
    finally:
        logs.request_id.reset(token)


@dataclass(frozen=True, slots=True)
class _Plain:
    """What a refusal needs of its request. `close` where its body may or may not come."""

    request_id: bytes
    close: bool


def _plain(headers: Sequence[tuple[bytes, bytes]]) -> _Plain | None:
    """None for a request that goes the long way."""
    length = given = b""
    waits = False
    for name, value in headers:
        if name == b"content-length":
            length = value
        elif name == b"x-request-id":
            given = value
        elif name == b"expect":
            waits = True
        elif name in (b"transfer-encoding", b"connection", b"origin"):
            return None
    if not length.isdigit() or (int(length) > MAX_DROPPED_BYTES and not waits):
        return None
    known = ACCEPTABLE_ID.fullmatch(given.decode("latin-1"))
    return _Plain(given if known else os.urandom(16).hex().encode(), waits)


@lru_cache(maxsize=128)
def _template(
    limit: int,
    actual: int,
    retry_after_s: int,
    close: bool,  # noqa: FBT001
) -> tuple[bytes, int]:
    """The answer with a place for the request's id, and its body's length."""
    full = QueueFull(f"try again in {retry_after_s} s", limit=limit, actual=actual)
    full.setting, full.retry_after_s = "queue_length", retry_after_s
    answer = problem(full)
    lines = [b"HTTP/1.1 %d Too Many Requests" % answer.status_code]
    lines += [b"%s: %s" % pair for pair in secured(list(answer.raw_headers))]
    if close:
        lines.append(b"%s: %s" % CLOSE)
    fixed = b"\r\n".join(lines).replace(b"%", b"%%")
    body = bytes(answer.body).replace(b"%", b"%%")
    whole = fixed + b"\r\n" + REQUEST_ID.lower().encode() + b": %s\r\n\r\n" + body
    return whole, len(answer.body)
