"""A chat through the frontend and through the engine's own endpoint: the same to the last bit.

Needs an installed vLLM 0.32, named by FRONTEND_TEST_VLLM_PYTHON; takes about two minutes.
"""

import base64
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import msgpack
import pytest
from frontend.settings import Settings
from patchmill_client.vllm import NormalizedBy

from tests import real_engine
from tests.conftest import serving
from tests.test_frontend import IMAGES, body

pytestmark = [
    pytest.mark.skipif(
        real_engine.PYTHON is None, reason="FRONTEND_TEST_VLLM_PYTHON names no installed vLLM"
    ),
    pytest.mark.timeout(900),
]

CHATS = {
    "one picture": ["photo.jpg"],
    "a transparent picture": ["rgba.png"],
    "a turned picture": ["exif6.jpg"],
    "three pictures": ["photo.jpg", "37x19.png", "palette_trns.png"],
    "text": [],
}
TOKENS = 24
FLAGS = {"engine": [], "sender": ["--no-mm-device-do-normalize"]}


class Sides(NamedTuple):
    frontend: httpx.Client
    engine: httpx.Client
    settings: Settings


@pytest.fixture(scope="module", params=list(NormalizedBy))
def sides(
    request: pytest.FixtureRequest, service_url: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Sides]:
    model = real_engine.write_model(tmp_path_factory.mktemp("model"))
    plugin: Path = real_engine.write_plugin(tmp_path_factory.mktemp("plugin"))
    with real_engine.running(model, plugin, *FLAGS[request.param]) as url:
        settings = Settings(
            tokenizer=model,
            model="m",
            engine_url=url,
            patchmill_url=service_url,
            normalized_by=request.param,
        )
        with (
            serving(settings) as frontend,
            httpx.Client(base_url=url, timeout=300, trust_env=False) as engine,
        ):
            yield Sides(frontend, engine, settings)


def asked(names: list[str], **more: Any) -> dict[str, Any]:
    fixed = {"temperature": 0, "ignore_eos": True, "logprobs": True, "top_logprobs": 2}
    return {**body(*names), "max_tokens": TOKENS, **fixed, **more}


class Said(NamedTuple):
    text: str
    logprobs: list[tuple[str, float]]
    finish_reason: str
    usage: tuple[int, int]


def said(choices: list[dict[str, Any]], usage: dict[str, Any], texts: list[str]) -> Said:
    entries = [each for choice in choices for each in (choice.get("logprobs") or {})["content"]]
    ranked = [(top["token"], top["logprob"]) for each in entries for top in each["top_logprobs"]]
    own = [(each["token"], each["logprob"]) for each in entries]
    counts = (usage["prompt_tokens"], usage["completion_tokens"])
    return Said("".join(texts), own + ranked, choices[-1]["finish_reason"], counts)


def whole(client: httpx.Client, names: list[str]) -> Said:
    response = client.post("/v1/chat/completions", json=asked(names))
    assert response.status_code == 200, response.text
    answer = response.json()
    choices = answer["choices"]
    return said(choices, answer["usage"], [each["message"]["content"] for each in choices])


def streamed(client: httpx.Client, names: list[str]) -> Said:
    more = {"stream": True, "stream_options": {"include_usage": True}}
    response = client.post("/v1/chat/completions", json=asked(names, **more))
    assert response.status_code == 200, response.text
    lines = [line.removeprefix("data: ") for line in response.text.split("\n\n")]
    events = [json.loads(line) for line in lines if line.startswith("{")]
    choices = [each for event in events for each in event["choices"]]
    texts = [each["delta"].get("content") or "" for each in choices]
    return said([each for each in choices if each.get("logprobs")], events[-1]["usage"], texts)


@pytest.mark.parametrize("way", [whole, streamed])
@pytest.mark.parametrize("name", CHATS)
def test_tokens_and_log_probabilities_are_those_of_the_engine_s_own_endpoint(
    sides: Sides, name: str, way: Any
) -> None:
    ours = way(sides.frontend, CHATS[name])
    theirs = way(sides.engine, CHATS[name])
    assert ours == theirs
    assert len(ours.logprobs) >= TOKENS


def test_the_pixels_matter_to_this_model(sides: Sides) -> None:
    """Two pictures of one size and the same prompt: what differs is what was seen."""
    first, second = (whole(sides.frontend, [name]) for name in ("exif1.jpg", "exif2.jpg"))
    assert first.usage == second.usage
    assert first.logprobs != second.logprobs


@pytest.mark.parametrize("name", [name for name, pictures in CHATS.items() if pictures])
def test_the_service_s_own_features_are_those_that_the_engine_renders(
    sides: Sides, name: str
) -> None:
    """Hashes, items and lengths, without the frontend between."""
    rendered = sides.engine.post("/v1/chat/completions/render", json=asked(CHATS[name])).json()
    theirs = rendered["features"]
    dtype = "uint8" if sides.settings.normalized_by is NormalizedBy.ENGINE else "bfloat16"
    ours = httpx.post(
        f"{sides.settings.patchmill_url}/preprocess",
        params={
            "format": "vllm",
            "dtype": dtype,
            "hash": "vllm",
            "model_id": str(sides.settings.tokenizer),
        },
        files=[("images", (IMAGES / each).read_bytes()) for each in CHATS[name]],
        timeout=60,
    ).json()
    assert ours["mm_hashes"] == theirs["mm_hashes"]
    lengths = [each["length"] for each in theirs["mm_placeholders"]["vision_chunk"]]
    assert ours["num_tokens"] == lengths
    pairs = zip(*(side["kwargs_data"]["vision_chunk"] for side in (ours, theirs)), strict=True)
    for mine, engines in pairs:
        assert without_slices(mine) == without_slices(engines)


def without_slices(text: str) -> Any:
    """An item, but for the slices, in which the engine's renderer tells all items' places."""
    item = msgpack.unpackb(base64.b64decode(text))
    del item["pixel_values"]["field"][1]["slices"]
    return item
