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
            raise _refused(response.status_code, response.content)
        answer: dict[str, Any] = response.json()
        return answer

    async def stream(self, request: Mapping[str, Any]) -> AsyncIterator[dict[str, Any]]:
        """Each event's answer; leaving early closes the connection, so the engine stops."""
        whole = {**request, "output_mode": "text", "stream": True}
        async with self._http.stream("POST", PATH, json=whole) as response:
            if response.status_code != 200:
                raise _refused(response.status_code, await response.aread())
            async for line in response.aiter_lines():
                data = line.removeprefix("data:").strip()
                if not line.startswith("data:") or data == "[DONE]":
                    continue
                event = json.loads(data)
                if "error" in event:
                    raise Fault(502, f"engine: {_message(event)}")
                yield event

    async def healthy(self) -> bool:
        """Whether the engine says so."""
        try:
            return (await self._http.get("/health")).status_code == 200
        except httpx.HTTPError:
            return False

    async def aclose(self) -> None:
        await self._http.aclose()


def _refused(status: int, body: bytes) -> Fault:
    try:
        message = _message(json.loads(body))
    except ValueError:
        message = "no JSON"
    if status == 403:
        return Fault(502, "the engine was started without --enable-scale-out")
    return Fault(status if status in (400, 404, 422) else 502, f"engine, {status}: {message}")


def _message(document: Any) -> str:
    error = document.get("error", document) if isinstance(document, dict) else document
    message = error.get("message", error) if isinstance(error, dict) else error
    return str(message)[:MAX_MESSAGE_CHARS]
