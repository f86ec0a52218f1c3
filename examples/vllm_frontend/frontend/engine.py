"""The engine behind: `POST /inference/v1/generate`, whole or as a stream of events.

In comes a request that `patchmill_client.vllm` has validated, out come the
engine's answers, read: one that cannot be is a Fault with status 502. `output_mode`
is text, so the engine detokenizes and this frontend never has to.
"""

import json
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from typing import Any, TypeVar

import httpx
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from frontend.faults import Fault

PATH = "/inference/v1/generate"
MAX_MESSAGE_CHARS = 500


class Told(BaseModel):
    """A part of an answer. A newer engine may say more than is read here."""

    model_config = ConfigDict(frozen=True)


class Choice(Told):
    index: int
    text: str
    logprobs: dict[str, Any] | None = None
    """In OpenAI's form already."""
    finish_reason: str | None = None


class Usage(Told):
    prompt_tokens: int
    completion_tokens: int
    total_tokens: int


class Answer(Told):
    """The whole of one."""

    choices: list[Choice] = Field(min_length=1)
    usage: Usage


class Event(Told):
    """A piece of a stream: what was made since the last, or the usage, or both."""

    choices: list[Choice]
    usage: Usage | None = None


T = TypeVar("T", bound=Told)


class EngineClient:
    """Speaks to one engine over connections that it keeps open."""

    def __init__(self, url: str, timeout_s: float) -> None:
        self._http = httpx.AsyncClient(
            base_url=url, timeout=httpx.Timeout(timeout_s, connect=10), trust_env=False
        )

    async def generate(self, request: Mapping[str, Any]) -> Answer:
        """The whole answer; raises Fault with what the engine says, httpx.HTTPError."""
        response = await self._http.post(PATH, json={**request, "output_mode": "text"})
        if response.status_code != 200:
            raise _refused(response)
        return _read(Answer, response.content)

    async def stream(self, request: Mapping[str, Any]) -> AsyncGenerator[Event]:
        """Each event up to the last; leaving early closes the connection, so the engine stops.

        Raises as `generate` does, and Fault for a stream that ends before its end.
        """
        whole = {**request, "output_mode": "text", "stream": True}
        finished = False
        async with self._http.stream("POST", PATH, json=whole) as response:
            if response.status_code != 200:
                await response.aread()
                raise _refused(response)
            async for data in _data(response):
                if data == b"[DONE]":
                    if finished:
                        return
                    break
                event = _read(Event, data)
                finished = finished or any(choice.finish_reason for choice in event.choices)
                yield event
        raise Fault(502, "the engine's stream ended before its answer did")

    async def healthy(self) -> bool:
        """Whether the engine says so."""
        try:
            return (await self._http.get("/health")).status_code == 200
        except httpx.HTTPError:
            return False

    async def aclose(self) -> None:
        await self._http.aclose()


async def _data(response: httpx.Response) -> AsyncIterator[bytes]:
    """The data of each event, one line as the engine writes it.

    Not by httpx's lines: those end at U+2028 too, which a JSON string may hold as it is.
    """
    rest = b""
    async for piece in response.aiter_bytes():
        *lines, rest = (rest + piece).split(b"\n")
        for line in lines:
            if line.startswith(b"data:"):
                yield line.removeprefix(b"data:").strip()


def _read(kind: type[T], data: bytes) -> T:
    try:
        return kind.model_validate_json(data)
    except ValidationError as error:
        said = _error(data)
        if said is not None:
            raise Fault(502, f"engine: {said}") from error
        raise Fault(502, "the engine's answer cannot be read") from error


def _refused(response: httpx.Response) -> Fault:
    status = response.status_code
    message = f"engine, {status}: {_error(response.content) or 'no reason given'}"
    match status:
        case 400 | 404 | 422:
            return Fault(status, message)
        case 403:
            return Fault(502, "the engine was started without --enable-scale-out")
        case 429 | 503:
            return Fault(503, message, _seconds(response.headers.get("retry-after", "")))
    return Fault(502, message)


def _error(data: bytes) -> str | None:
    """The engine's own word, where it has one."""
    try:
        document = json.loads(data)
    except ValueError:
        return None
    error = document.get("error") if isinstance(document, dict) else None
    message = error.get("message", error) if isinstance(error, dict) else error
    return None if message is None else str(message)[:MAX_MESSAGE_CHARS]


def _seconds(retry_after: str) -> float | None:
    """Of the header as a number; a date is not passed on."""
    return float(retry_after) if retry_after.isascii() and retry_after.isdigit() else None
