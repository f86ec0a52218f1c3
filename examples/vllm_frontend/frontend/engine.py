"""The engine behind: `POST /inference/v1/generate`, whole or as a stream of events.

In comes a request that `patchmill_client.vllm` has validated, out come the
engine's answers as dicts. `output_mode` is text, so the engine detokenizes and
this frontend never has to.
"""

import json
from collections.abc import AsyncIterator, Mapping
from typing import Any

import httpx

from frontend.faults import Fault

PATH = "/inference/v1/generate"
MAX_MESSAGE_CHARS = 500
CHOICE = {"index", "text", "logprobs", "finish_reason"}
ODD = "the engine's answer is not of the form that is read here"


class EngineClient:
    """Speaks to one engine over connections that it keeps open."""

    def __init__(self, url: str, timeout_s: float) -> None:
        self._http = httpx.AsyncClient(
            base_url=url, timeout=httpx.Timeout(timeout_s, connect=10), trust_env=False
        )

    async def generate(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """The whole answer; raises Fault with what the engine says, httpx.HTTPError."""
        response = await self._http.post(PATH, json={**request, "output_mode": "text"})
        if response.status_code != 200:
            raise _refused(response, response.content)
        answer = _checked(_loaded(response.content))
        if not isinstance(answer.get("usage"), dict):
            raise Fault(502, ODD)
        return answer

    async def stream(self, request: Mapping[str, Any]) -> AsyncIterator[dict[str, Any]]:
        """Each event's answer; leaving early closes the connection, so the engine stops."""
        whole = {**request, "output_mode": "text", "stream": True}
        async with self._http.stream("POST", PATH, json=whole) as response:
            if response.status_code != 200:
                raise _refused(response, await response.aread())
            told = False
            async for line in response.aiter_lines():
                data = line.removeprefix("data:").strip()
                if not line.startswith("data:"):
                    continue
                if data == "[DONE]" and told:
                    return
                event = _loaded(data)
                if isinstance(event, dict) and "error" in event:
                    raise Fault(502, f"engine: {_message(event)}")
                yield _checked(event)
                told = True
            raise Fault(502, "the engine's answer stops before its end")

    async def healthy(self) -> bool:
        """Whether the engine says so."""
        try:
            return (await self._http.get("/health")).status_code == 200
        except httpx.HTTPError:
            return False

    async def aclose(self) -> None:
        await self._http.aclose()


def _loaded(data: bytes | str) -> Any:
    try:
        return json.loads(data)
    except ValueError as error:
        raise Fault(502, ODD) from error


def _checked(answer: Any) -> dict[str, Any]:
    """An answer whose choices have what is read of them; raises Fault."""
    choices = answer.get("choices") if isinstance(answer, dict) else None
    if not isinstance(choices, list):
        raise Fault(502, ODD)
    for choice in choices:
        if not isinstance(choice, dict) or not choice.keys() >= CHOICE:
            raise Fault(502, ODD)
    checked: dict[str, Any] = answer
    return checked


def _refused(response: httpx.Response, body: bytes) -> Fault:
    status = response.status_code
    try:
        message = _message(json.loads(body))
    except ValueError:
        message = "no JSON"
    if status in (429, 503):
        wait = response.headers.get("retry-after", "")
        return Fault(503, f"engine, {status}: {message}", float(wait) if wait.isdigit() else None)
    if status == 403:
        return Fault(502, "the engine was started without --enable-scale-out")
    return Fault(status if status in (400, 404, 422) else 502, f"engine, {status}: {message}")


def _message(document: Any) -> str:
    error = document.get("error", document) if isinstance(document, dict) else document
    message = error.get("message", error) if isinstance(error, dict) else error
    return str(message)[:MAX_MESSAGE_CHARS]
