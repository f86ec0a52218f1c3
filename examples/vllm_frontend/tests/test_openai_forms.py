"""What OpenAI's own clients send, in the forms that they send it."""

import base64
from typing import Any

import pytest

from tests.conftest import Connect
from tests.stand_in import Engine
from tests.test_frontend import IMAGES, ask, body

NULLABLE = (
    *("n", "stream", "stream_options", "logprobs", "top_logprobs", "max_tokens", "stop", "user"),
    *("max_completion_tokens", "temperature", "top_p", "seed", "presence_penalty"),
)


def said(*messages: dict[str, Any]) -> dict[str, Any]:
    return {"model": "m", "messages": list(messages), "max_tokens": 1}


def token_ids(connect: Connect, engine: Engine, *asked: dict[str, Any]) -> list[list[int]]:
    client = connect()
    for each in asked:
        ask(client, each)
    return [each["token_ids"] for each in engine.seen]


def test_null_is_what_was_not_said(connect: Connect, engine: Engine) -> None:
    ask(connect(), {**body(), **dict.fromkeys(NULLABLE)})
    assert engine.seen[0]["sampling_params"] == {}


USER = {"role": "user", "content": "Hi"}
ANSWER = {"role": "assistant", "content": "Ho"}
DUMPED = {
    **ANSWER,
    "refusal": None,
    "annotations": None,
    "audio": None,
    "function_call": None,
    "tool_calls": None,
}
"""An answer of this frontend, as `message.model_dump()` of OpenAI's library gives it."""


@pytest.mark.parametrize(
    ("sent", "meant"),
    [
        (DUMPED, ANSWER),
        ({**DUMPED, "annotations": [], "tool_calls": []}, ANSWER),
        ({**DUMPED, "content": None}, {**ANSWER, "content": ""}),
        ({"role": "developer", "content": "Be"}, {"role": "system", "content": "Be"}),
        ({**USER, "name": None}, USER),
    ],
)
def test_a_message_in_another_form_means_the_same_to_the_template(
    connect: Connect, engine: Engine, sent: dict[str, Any], meant: dict[str, Any]
) -> None:
    first, second = token_ids(connect, engine, said(sent, USER), said(meant, USER))
    assert first == second


def test_a_name_reaches_the_template(connect: Connect, engine: Engine) -> None:
    named, plain = token_ids(connect, engine, said({**USER, "name": "Ann"}), said(USER))
    assert len(named) == len(plain) + len("Ann") - len("user")


@pytest.mark.parametrize(
    "message",
    [
        {**USER, "content": None},
        {"role": "developer", "content": None},
        {"role": "tool", "content": "4"},
        {**ANSWER, "tool_calls": [{"id": "1"}]},
        {**ANSWER, "refusal": "No."},
    ],
)
def test_a_message_that_no_template_here_could_tell_is_refused(
    connect: Connect, engine: Engine, message: dict[str, Any]
) -> None:
    error = ask(connect(), said(message), 400)["error"]
    assert error["message"].startswith("messages.0")
    assert engine.seen == []


def wrapped(picture: bytes) -> str:
    return base64.encodebytes(picture).decode()  # a line's end after each 76 characters


@pytest.mark.parametrize("head", ["data:image/png;base64,", "DATA:image/PNG;BASE64,"])
def test_a_data_url_may_be_wrapped_and_in_capitals(
    connect: Connect, engine: Engine, head: str
) -> None:
    url = head + wrapped((IMAGES / "37x19.png").read_bytes())
    part = {"type": "image_url", "image_url": {"url": url}}
    client = connect()
    ask(client, said({"role": "user", "content": [part]}))
    ask(client, body("37x19.png"))
    first, second = engine.seen
    assert first["features"]["kwargs_data"] == second["features"]["kwargs_data"]


@pytest.mark.parametrize("name", ["m", "moonshotai/Kimi-K2.5"])
def test_the_model_is_listed_and_found_by_its_name(connect: Connect, name: str) -> None:
    client = connect(model=name)
    listed = client.get("/v1/models").json()
    [model] = listed["data"]
    assert listed["object"] == "list"
    assert (model["id"], model["object"], type(model["created"])) == (name, "model", int)
    assert client.get(f"/v1/models/{name}").json() == model


@pytest.mark.parametrize(
    ("method", "path", "status", "message"),
    [
        ("GET", "/v1/models/x", 404, "the model x is not served here"),
        ("GET", "/v1/nothing", 404, "GET /v1/nothing: Not Found"),
        ("POST", "/v1/models", 405, "POST /v1/models: Method Not Allowed"),
        ("GET", "/v1/chat/completions", 405, "GET /v1/chat/completions: Method Not Allowed"),
    ],
)
def test_what_is_not_here_is_told_in_the_form_of_every_error(
    connect: Connect, method: str, path: str, status: int, message: str
) -> None:
    response = connect().request(method, path)
    assert response.status_code == status
    assert response.json() == {
        "error": {"message": message, "type": "invalid_request_error", "code": status}
    }
    assert ("allow" in response.headers) == (status == 405)
