"""Chats end to end: real pictures, the real service, an engine that takes no mistake."""

import base64
import io
import json
from typing import Any

import httpx
import msgpack
import PIL.Image
import pytest
from patchmill_client.vllm import Family, NormalizedBy

from tests.conftest import Connect
from tests.stand_in import ROOT, Engine, words_for

IMAGES = ROOT / "tests" / "golden" / "images"
GOLDEN = json.loads((ROOT / "client/tests/golden/vllm/kimi_items.json").read_text())
NAMES = list(GOLDEN)


def part(name: str) -> dict[str, Any]:
    return part_of((IMAGES / name).read_bytes())


def part_of(picture: bytes) -> dict[str, Any]:
    data = base64.b64encode(picture).decode()
    return {"type": "image_url", "image_url": {"url": f"data:image/x;base64,{data}"}}


def body(*names: str, text: str = "What?", **more: Any) -> dict[str, Any]:
    content = [*map(part, names), {"type": "text", "text": text}]
    return {
        "model": "m",
        "messages": [{"role": "user", "content": content}],
        "max_tokens": 5,
        **more,
    }


def ask(client: httpx.Client, asked: Any, status: int = 200) -> dict[str, Any]:
    response = client.post("/v1/chat/completions", json=asked)
    assert response.status_code == status, response.text
    answer: dict[str, Any] = response.json()
    return answer


def stream(client: httpx.Client, asked: dict[str, Any]) -> list[Any]:
    response = client.post("/v1/chat/completions", json={**asked, "stream": True})
    assert response.status_code == 200, response.text
    assert response.headers["content-type"].startswith("text/event-stream")
    *events, done, end = response.text.split("\n\n")
    assert (done, end) == ("data: [DONE]", "")
    return [json.loads(event.removeprefix("data: ")) for event in events]


def items(seen: dict[str, Any], modality: str = "vision_chunk") -> list[Any]:
    return [
        msgpack.unpackb(base64.b64decode(text))
        for text in seen["features"]["kwargs_data"][modality]
    ]


@pytest.mark.parametrize("dtype", ["uint8", "bfloat16"])
@pytest.mark.parametrize("names", [*[[name] for name in NAMES], NAMES])
def test_the_engine_gets_the_items_that_it_would_make_itself(
    connect: Connect, engine: Engine, names: list[str], dtype: str
) -> None:
    engine.dtype = dtype
    by = NormalizedBy.ENGINE if dtype == "uint8" else NormalizedBy.SENDER
    answer = ask(connect(normalized_by=by), body(*names))
    [seen] = engine.seen
    assert items(seen) == [
        msgpack.unpackb(base64.b64decode(GOLDEN[name]["kwargs_data"][dtype])) for name in names
    ]
    [choice] = answer["choices"]
    assert choice["message"] == {"role": "assistant", "content": "".join(words_for(seen))}
    assert choice["finish_reason"] == "length"
    assert answer["usage"]["prompt_tokens"] == len(seen["token_ids"])
    assert answer["usage"]["completion_tokens"] == 5


def test_a_nemotron_engine_gets_whole_pictures_and_ranges_within_the_marks(
    connect: Connect, engine: Engine
) -> None:
    engine.dtype = "bfloat16"
    client = connect(family=Family.NEMOTRON, profile="nemotron-nano-vl", max_model_len=8192)
    ask(client, body("37x19.png", "rgba.png"))
    [seen] = engine.seen
    assert [item["imgs_sizes"]["data"] for item in items(seen, "image")] == [[448, 640]] * 2
    spans = seen["features"]["mm_placeholders"]["image"]
    assert [span["length"] for span in spans] == [280, 280]
    for span in spans:
        ids = seen["token_ids"][span["offset"] - 1 : span["offset"] + span["length"] + 1]
        assert len(set(ids)) == 3
        assert len(set(ids[1:-1])) == 1


def test_nemotron_pictures_are_sized_as_if_there_were_no_text(
    connect: Connect, engine: Engine
) -> None:
    """897 is what an engine's own chat endpoint makes of these; with text_len=67 it is 880."""
    engine.dtype = "bfloat16"
    client = connect(family=Family.NEMOTRON, profile="nemotron-nano-vl", max_model_len=8192)
    picture = io.BytesIO()
    PIL.Image.new("RGB", (1280, 720)).save(picture, "PNG")
    content = [part_of(picture.getvalue())] * 9 + [{"type": "text", "text": "x" * 67}]
    ask(client, {"model": "m", "messages": [{"role": "user", "content": content}]})
    spans = engine.seen[0]["features"]["mm_placeholders"]["image"]
    assert [span["length"] for span in spans] == [897] * 9


def test_a_stream_says_what_the_whole_answer_says(connect: Connect, engine: Engine) -> None:
    asked = body(*NAMES, logprobs=True)
    client = connect()
    [whole] = ask(client, asked)["choices"]
    first, *events, usage = stream(client, {**asked, "stream_options": {"include_usage": True}})
    assert first["choices"][0]["delta"] == {"role": "assistant", "content": ""}
    choices = [event["choices"][0] for event in events]
    assert "".join(each["delta"]["content"] for each in choices) == whole["message"]["content"]
    told = [entry for each in choices for entry in each["logprobs"]["content"]]
    assert told == whole["logprobs"]["content"]
    assert [each["finish_reason"] for each in choices] == [None] * 4 + ["length"]
    assert usage["choices"] == []
    assert usage["usage"]["completion_tokens"] == 5
    assert engine.seen[0]["token_ids"] == engine.seen[1]["token_ids"]


def test_usage_is_streamed_only_where_asked_for(connect: Connect) -> None:
    assert all("usage" not in event for event in stream(connect(), body()))


def test_text_alone_needs_no_patchmill(connect: Connect, engine: Engine) -> None:
    client = connect(patchmill_url="http://127.0.0.1:1")
    ask(client, {"model": "m", "messages": [{"role": "user", "content": "Hi"}]})
    assert "features" not in engine.seen[0]
    assert engine.seen[0]["sampling_params"] == {}


def test_sampling_parameters_go_to_the_engine_as_they_were_given(
    connect: Connect, engine: Engine
) -> None:
    given: dict[str, Any] = {
        "temperature": 0,
        "top_p": 0.5,
        "seed": 7,
        "stop": ["x"],
        "ignore_eos": True,
    }
    ask(connect(), body(**given, logprobs=True, top_logprobs=3))
    assert engine.seen[0]["sampling_params"] == {**given, "max_tokens": 5, "logprobs": 3}


def test_every_role_reaches_the_template(connect: Connect, engine: Engine) -> None:
    turns = [("system", "S"), ("user", "U"), ("assistant", "A"), ("user", "V")]
    messages = [{"role": role, "content": text} for role, text in turns]
    ask(connect(), {"model": "m", "messages": messages, "max_completion_tokens": 1})
    assert engine.seen[0]["sampling_params"] == {"max_tokens": 1}
    # A mark for each side, "<|im_middle|>" and "<|im_end|>", and the letters of roles and texts.
    letters = sum(len(role + text) for role, text in turns) + len("assistant")
    assert len(engine.seen[0]["token_ids"]) == letters + 3 * len(turns) + 2


REMOTE = {"type": "image_url", "image_url": {"url": "https://example.invalid/cat.png"}}
BAD_BASE64 = {"type": "image_url", "image_url": {"url": "data:image/png;base64,a*b"}}
GARBAGE = {"type": "image_url", "image_url": {"url": "data:image/png;base64,aGVsbG8="}}


def of_part(one: Any) -> dict[str, Any]:
    return {"model": "m", "messages": [{"role": "user", "content": [one]}]}


@pytest.mark.parametrize(
    ("asked", "status", "message"),
    [
        ([], 400, "object"),
        ({"model": "m", "messages": []}, 400, "messages"),
        (body(tools=[]), 400, "tools: Extra inputs"),
        (body(n=2), 400, "n: "),
        (body(stream_options={}), 400, "stream_options are of a stream"),
        (body(stream=False, stream_options={}), 400, "stream_options are of a stream"),
        (body(top_logprobs=1), 400, "top_logprobs are of logprobs"),
        (body(model="x"), 404, "x is not served here"),
        (of_part({"type": "video_url", "video_url": {}}), 400, "messages.0.content"),
        (of_part(REMOTE), 400, "nothing is fetched"),
        (of_part(BAD_BASE64), 400, "image_url.url"),
        (of_part(GARBAGE), 400, "pictures: 415"),
        (of_part(part_of(b"")), 400, "pictures: item 0: the picture has no bytes"),
        (body(*["1x1.png"] * 3), 400, "3 pictures, at most 2"),
        (body("37x19.png", text="<|media_pad|>"), 400, "2 placeholders for 1 pictures"),
        (body(text="<|media_pad|>"), 400, "1 placeholders for 0 pictures"),
        (body(text="x" * 10_000), 413, "more than 10000 bytes"),
    ],
)
def test_a_bad_request_is_refused_and_nothing_reaches_the_engine(
    connect: Connect, engine: Engine, asked: Any, status: int, message: str
) -> None:
    error = ask(connect(max_images=2, max_body_bytes=10_000), asked, status)["error"]
    assert message in error["message"]
    assert (error["type"], error["code"]) == ("invalid_request_error", status)
    assert engine.seen == []


@pytest.mark.parametrize("word", ["NaN", "Infinity", "-Infinity", "1e999"])
@pytest.mark.parametrize("name", ["temperature", "min_p", "repetition_penalty"])
def test_a_number_that_is_not_finite_is_refused(
    connect: Connect, engine: Engine, name: str, word: str
) -> None:
    number: dict[str, Any] = {name: 1.5}
    content = json.dumps(body(**number)).replace("1.5", word)
    response = connect().post("/v1/chat/completions", content=content)
    assert response.status_code == 400
    assert response.json()["error"]["message"].startswith(f"{name}: ")
    assert engine.seen == []


def test_a_template_that_refuses_is_the_caller_s_affair(connect: Connect) -> None:
    client = connect(family=Family.NEMOTRON)
    asked = {"model": "m", "messages": [{"role": "system", "content": "S"}]}
    assert "no system here" in ask(client, asked, 400)["error"]["message"]


def test_a_profile_that_does_not_fit_the_engine_is_the_operator_s_affair(
    connect: Connect, engine: Engine
) -> None:
    client = connect(profile="nemotron-nano-vl", normalized_by=NormalizedBy.SENDER)
    error = ask(client, body("37x19.png"), 500)["error"]
    assert "settings do not fit the engine" in error["message"]
    assert engine.seen == []


@pytest.mark.parametrize("url", ["engine_url", "patchmill_url"])
def test_a_server_behind_that_is_away_is_a_502_and_shows_in_health(
    connect: Connect, url: str
) -> None:
    client = connect(**{url: "http://127.0.0.1:1"})
    response = client.get("/health")
    assert response.status_code == 503
    assert response.json() == {"engine": url != "engine_url", "patchmill": url != "patchmill_url"}
    ask(client, body("1x1.png"), 502)


def test_health_is_that_of_both_servers_behind(connect: Connect) -> None:
    assert connect().get("/health").json() == {"engine": True, "patchmill": True}
