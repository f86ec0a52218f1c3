"""One HTTP exchange, without I/O: both clients carry it out and decide nothing themselves.

In come a status, headers and pieces of a body, out comes a `Batch`, a JSON
object or the error that the answer means.
"""

import json
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Protocol, TypeVar

import httpx

from patchmill_client.batch import Batch, received
from patchmill_client.buffer import BodyReader
from patchmill_client.errors import (
    ConnectFailed,
    ConnectionLost,
    InvalidInput,
    LyingAnswer,
    PatchmillError,
    TimedOut,
    TransportError,
    UnexpectedAnswer,
)
from patchmill_client.problems import MAX_PROBLEM_BYTES, error_of, media_type
from patchmill_client.values import Expected

REQUEST_ID = "X-Request-ID"
BEARER_TOKEN = re.compile(r"[A-Za-z0-9._~+/-]+=*")
"""RFC 6750, section 2.1."""
ANSWER_TYPE = "application/msgpack"
JSON_TYPE = "application/json"
MAX_JSON_BYTES = 4 * 2**20
"""`/models` and `/info` have a few kilobytes."""

Result_co = TypeVar("Result_co", covariant=True)


class Reader(Protocol[Result_co]):
    """Takes the pieces of a 200's body and makes of them what the call is for."""

    def feed(self, piece: bytes) -> None: ...
    def finish(self) -> Result_co: ...


class BatchReader:
    """Reads the body of a 200 from `POST /preprocess`; raises UnexpectedAnswer, BadAnswer."""

    def __init__(
        self, headers: Mapping[str, str], expected: Expected, max_answer_bytes: int
    ) -> None:
        _check_type(headers, ANSWER_TYPE)
        self._request_id = headers.get(REQUEST_ID)
        self._body = BodyReader(expected, max_answer_bytes, _length_bytes(headers))

    def feed(self, piece: bytes) -> None:
        self._body.feed(piece)

    def finish(self) -> Batch:
        return received(self._body.finish(), self._request_id)


class JsonReader:
    """Reads the body of a 200 from `/models`, `/info` or a probe; raises UnexpectedAnswer."""

    def __init__(self, headers: Mapping[str, str]) -> None:
        _check_type(headers, JSON_TYPE)
        self._body = bytearray()

    def feed(self, piece: bytes) -> None:
        self._body += piece
        if len(self._body) > MAX_JSON_BYTES:
            raise UnexpectedAnswer(f"more than {MAX_JSON_BYTES} bytes of JSON", 200)

    def finish(self) -> dict[str, Any]:
        try:
            parsed = json.loads(self._body)
        except (ValueError, RecursionError) as error:
            raise UnexpectedAnswer("the answer is not JSON", 200) from error
        if not isinstance(parsed, dict):
            raise UnexpectedAnswer("the answer is not a JSON object", 200)
        return parsed


class RefusalReader:
    """Reads the start of the body of any other status; `finish` gives the error to raise."""

    def __init__(self, status: int, headers: Mapping[str, str]) -> None:
        self._status = status
        self._headers = headers
        self._body = bytearray()

    @property
    def wants_more(self) -> bool:
        return len(self._body) < MAX_PROBLEM_BYTES

    def feed(self, piece: bytes) -> None:
        self._body += piece[: MAX_PROBLEM_BYTES - len(self._body)]

    def finish(self) -> PatchmillError:
        error = error_of(self._status, self._headers, bytes(self._body), datetime.now(UTC))
        error.request_id = self._headers.get(REQUEST_ID)
        return error


@dataclass(frozen=True, slots=True)
class Timeouts:
    """How long one step of an attempt may stand still; the deadline bounds them all together.

    `read_s` is the longest silence before and between pieces of an answer, so
    it must exceed the time that the service waits and computes.
    """

    connect_s: float = 5.0
    read_s: float = 60.0
    write_s: float = 60.0
    pool_s: float = 60.0

    def within(self, remaining_s: float) -> httpx.Timeout:
        """These, and none longer than what is left."""
        return httpx.Timeout(
            connect=min(self.connect_s, remaining_s),
            read=min(self.read_s, remaining_s),
            write=min(self.write_s, remaining_s),
            pool=min(self.pool_s, remaining_s),
        )


def checked_url(base_url: str) -> httpx.URL:
    """An http or https address; raises InvalidInput."""
    try:
        url = httpx.URL(base_url)
    except (httpx.InvalidURL, TypeError) as error:
        raise InvalidInput(f"{base_url!r} is no URL: {error}") from error
    if url.scheme not in ("http", "https") or not url.host:
        raise InvalidInput(f"{base_url!r} is no URL that begins with http:// or https://")
    if url.port is not None and not 0 < url.port < 2**16:
        raise InvalidInput(f"{base_url!r} names no port")
    return url


def check_open(is_closed: bool) -> None:  # noqa: FBT001 - httpx's own word
    """Raise InvalidInput for a call of a client that was closed."""
    if is_closed:
        raise InvalidInput("the client is closed")


def fixed_headers(given: Mapping[str, str] | None, api_key: str | None) -> dict[str, str]:
    """Headers of every request; raises InvalidInput for what cannot be sent, without its value.

    Answers come as they are: decoding one would copy it.
    """
    for name, value in (given or {}).items():
        if not (name.isascii() and value.isascii()):
            raise InvalidInput(f"the header {name!a} is not ASCII")
    headers = {"User-Agent": "patchmill-client", **(given or {}), "Accept-Encoding": "identity"}
    if api_key is not None:
        if not BEARER_TOKEN.fullmatch(api_key):
            raise InvalidInput("the API key has characters that no bearer token has")
        if "authorization" in {name.lower() for name in headers}:
            raise InvalidInput("there are an API key and an Authorization header")
        headers["Authorization"] = f"Bearer {api_key}"
    return headers


@contextmanager
def faults_as_ours(request_id: str) -> Iterator[None]:
    """Turn httpx's errors into ours, and note the request id in every error."""
    try:
        yield
    except PatchmillError as error:
        error.request_id = error.request_id or request_id
        raise
    except httpx.TransportError as error:
        ours = _transport_error(error)
        ours.request_id = request_id
        raise ours from error


def _transport_error(error: httpx.TransportError) -> TransportError:
    detail = f"{type(error).__name__}: {error}"
    if isinstance(error, httpx.TimeoutException):
        return TimedOut(detail)
    if isinstance(error, httpx.ConnectError | httpx.ProxyError):
        return ConnectFailed(detail)
    if isinstance(error, httpx.LocalProtocolError | httpx.UnsupportedProtocol):
        return TransportError(detail)  # of our own making: the same again would fail again
    return ConnectionLost(detail)


def _check_type(headers: Mapping[str, str], wanted: str) -> None:
    if (found := media_type(headers)) != wanted:
        raise UnexpectedAnswer(f"a 200 of type {found[:100]!r}, not {wanted}", 200)
    encoding = headers.get("content-encoding", "identity").strip().lower()
    if encoding != "identity":
        raise UnexpectedAnswer(f"a 200 with the content encoding {encoding[:100]!r}", 200)


def _length_bytes(headers: Mapping[str, str]) -> int | None:
    given = headers.get("content-length")
    if given is None:
        return None
    if not (given.isascii() and given.isdigit() and len(given) < 20):
        raise LyingAnswer("Content-Length", f"{given[:40]!r} is not a number of bytes")
    return int(given)
