"""The engine's answers as OpenAI's: a completion, or the chunks of a stream.

In come answers that were read, out come dicts for JSON.
"""

import json
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any

from frontend.engine import Answer, Choice, Event


def completion(answer: Answer, model: str, made_at: int, name: str) -> dict[str, Any]:
    """The `chat.completion` of a whole answer."""
    return {
        "id": name,
        "object": "chat.completion",
        "created": made_at,
        "model": model,
        "choices": [
            {
                "message": {"role": "assistant", "content": choice.text},
                **_beside_text(choice),
            }
            for choice in answer.choices
        ],
        "usage": answer.usage.model_dump(),
    }


async def chunks(
    events: AsyncGenerator[Event], model: str, made_at: int, name: str
) -> AsyncGenerator[dict[str, Any]]:
    """A `chat.completion.chunk` for the role, each event and the usage, if the engine tells it.

    The role waits for the first event, so that an error before it is raised before any chunk.
    """
    head = {"id": name, "object": "chat.completion.chunk", "created": made_at, "model": model}
    opening = {"role": "assistant", "content": ""}
    opened = False
    async with aclosing(events):
        async for event in events:
            if not opened:
                yield {**head, "choices": [{"index": 0, "delta": opening, "finish_reason": None}]}
                opened = True
            for choice in event.choices:
                told = {"delta": {"content": choice.text}, **_beside_text(choice)}
                yield {**head, "choices": [told]}
            if event.usage:
                yield {**head, "choices": [], "usage": event.usage.model_dump()}


def sse(document: dict[str, Any]) -> str:
    """One server-sent event."""
    return f"data: {json.dumps(document, ensure_ascii=False)}\n\n"


def _beside_text(choice: Choice) -> dict[str, Any]:
    return choice.model_dump(include={"index", "logprobs", "finish_reason"})
