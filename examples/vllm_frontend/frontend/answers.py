"""The engine's answers as OpenAI's: a completion, or the chunks of a stream.

In come dicts of `POST /inference/v1/generate` with output_mode text, out come
dicts for JSON. Log-probabilities have OpenAI's form already.
"""

import json
from collections.abc import AsyncIterator
from typing import Any


def completion(answer: dict[str, Any], model: str, made_at: int, name: str) -> dict[str, Any]:
    """The `chat.completion` of a whole answer."""
    return {
        "id": name,
        "object": "chat.completion",
        "created": made_at,
        "model": model,
        "choices": [
            {
                "index": choice["index"],
                "message": {"role": "assistant", "content": choice["text"]},
                "logprobs": choice["logprobs"],
                "finish_reason": choice["finish_reason"],
            }
            for choice in answer["choices"]
        ],
        "usage": _usage(answer["usage"]),
    }


async def chunks(
    events: AsyncIterator[dict[str, Any]], model: str, made_at: int, name: str
) -> AsyncIterator[dict[str, Any]]:
    """A `chat.completion.chunk` for the role, each event and the usage, if the engine tells it."""
    head = {"id": name, "object": "chat.completion.chunk", "created": made_at, "model": model}
    opening = {"role": "assistant", "content": ""}
    yield {**head, "choices": [{"index": 0, "delta": opening, "finish_reason": None}]}
    async for event in events:
        for choice in event["choices"]:
            told = {
                "index": choice["index"],
                "delta": {"content": choice["text"]},
                "logprobs": choice["logprobs"],
                "finish_reason": choice["finish_reason"],
            }
            yield {**head, "choices": [told]}
        if event.get("usage"):
            yield {**head, "choices": [], "usage": _usage(event["usage"])}


def sse(document: dict[str, Any]) -> str:
    """One server-sent event."""
    return f"data: {json.dumps(document, ensure_ascii=False)}\n\n"


def _usage(told: dict[str, Any]) -> dict[str, int]:
    return {name: told[name] for name in ("prompt_tokens", "completion_tokens", "total_tokens")}
