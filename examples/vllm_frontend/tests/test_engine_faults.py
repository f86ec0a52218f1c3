"""An engine that refuses, breaks off or talks nonsense: the caller is told, in OpenAI's form."""

import json
from typing import Any

import pytest

from tests.conftest import Connect
from tests.stand_in import Engine
from tests.test_frontend import ask, body, stream

STREAMED: list[dict[str, Any]] = [{}, {"stream": True}]
WORD = b'data: {"choices": [{"index": 0, "text": "a"}]}\n\n'
LAST = b'data: {"choices": [{"index": 0, "text": "b", "finish_reason": "stop"}]}\n\n'
DONE = b"data: [DONE]\n\n"
DIED = b'data: {"error": {"message": "EngineCore died"}}\n\n'


@pytest.mark.parametrize("streamed", STREAMED)
@pytest.mark.parametrize(
    ("say", "status", "message"),
    [
        ((400, b'{"error": {"message": "too long"}}'), 400, "engine, 400: too long"),
        ((403, b"{}"), 502, "--enable-scale-out"),
        ((429, b'{"error": "full"}'), 503, "engine, 429: full"),
        ((500, b"oops"), 502, "engine, 500"),
        ((503, b""), 503, "engine, 503"),
    ],
)
def test_what_the_engine_refuses_is_told(
    connect: Connect,
    engine: Engine,
    say: tuple[int, bytes],
    status: int,
    message: str,
    streamed: dict[str, Any],
) -> None:
    engine.say = say
    assert message in ask(connect(), body(**streamed), status)["error"]["message"]


@pytest.mark.parametrize(
    ("retry_after", "passed"), [("7", "7"), (None, None), ("Wed, 21 Oct 2026 07:28:00 GMT", None)]
)
def test_an_engine_that_is_full_says_when_to_come_back(
    connect: Connect, engine: Engine, retry_after: str | None, passed: str | None
) -> None:
    engine.say, engine.retry_after = (503, b"{}"), retry_after
    response = connect().post("/v1/chat/completions", json=body())
    assert response.status_code == 503
    assert response.headers.get("retry-after") == passed


WHOLE = {"choices": [{"index": 0, "text": "a", "finish_reason": "stop"}]}


@pytest.mark.parametrize(
    "said",
    [
        *(b"", b"{", b"[]", b"null", b"<html>", b"\xff", b"{}", b'{"choices": []}'),
        json.dumps(WHOLE).encode(),
        json.dumps({**WHOLE, "usage": {}}).encode(),
        json.dumps({"choices": [{}], "usage": {}}).encode(),
    ],
)
def test_a_whole_answer_that_cannot_be_read_is_a_502(
    connect: Connect, engine: Engine, said: bytes
) -> None:
    engine.say = (200, said)
    error = ask(connect(), body(), 502)["error"]
    assert error == {
        "message": "the engine's answer cannot be read",
        "type": "server_error",
        "code": 502,
    }


@pytest.mark.parametrize(
    ("said", "message"),
    [
        (b"", "ended before"),
        (DONE, "ended before"),
        (b"no events", "ended before"),
        (b"data: {\n\n", "cannot be read"),
        (b"data: []\n\n" + DONE, "cannot be read"),
        (b"data: {}\n\n" + WORD + DONE, "cannot be read"),
        (DIED + DONE, "engine: EngineCore died"),
    ],
)
def test_a_stream_that_is_bad_from_its_first_event_is_a_502(
    connect: Connect, engine: Engine, said: bytes, message: str
) -> None:
    engine.say = (200, said)
    error = ask(connect(), body(stream=True), 502)["error"]
    assert message in error["message"]
    assert error["type"] == "server_error"


@pytest.mark.parametrize(
    ("broken", "message"),
    [
        (b"", "ended before"),
        (DONE, "ended before"),
        (LAST, "ended before"),
        (b"data: {\n\n" + LAST + DONE, "cannot be read"),
        (b"data: []\n\n" + LAST + DONE, "cannot be read"),
        (DIED + DONE, "engine: EngineCore died"),
    ],
)
def test_a_stream_that_breaks_later_ends_with_an_error_event(
    connect: Connect, engine: Engine, broken: bytes, message: str
) -> None:
    engine.break_stream = broken
    role, first, second, *_, error = stream(connect(), body())
    assert role["choices"][0]["delta"]["role"] == "assistant"
    assert all(each["choices"][0]["delta"]["content"] for each in (first, second))
    assert message in error["error"]["message"]
    assert error["error"]["code"] == 502
