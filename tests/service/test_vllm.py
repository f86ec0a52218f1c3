"""`format=vllm` and `hash=vllm` over real HTTP: the engine's own items and hashes."""

import base64
import json
from typing import Any

import httpx
import msgpack
import pytest

from tests.golden_data import GOLDEN, IMAGES
from tests.service.running import Running, problem, running, unpack

ITEMS: dict[str, dict[str, Any]] = json.loads((GOLDEN / "vllm" / "kimi_items.json").read_text())
HASHES: dict[str, Any] = json.loads((GOLDEN / "vllm" / "hashes.json").read_text())
MODEL_ID = HASHES["model_id"]
VLLM = {"format": "vllm"}
HASHED = {"hash": "vllm", "model_id": MODEL_ID}
NEMOTRON = {"model": "nemotron-nano-vl"}
PHOTO = (IMAGES / "photo.jpg").read_bytes()
SMALL = (IMAGES / "37x19.png").read_bytes()
RAW_VIEW = 3

REFUSED: dict[str, tuple[dict[str, str], str]] = {
    "floats for an engine that normalises": ({**VLLM, "dtype": "float32"}, "would do it twice"),
    "half floats too": ({**VLLM, "dtype": "float16"}, "would do it twice"),
    "pictures that are not cut": ({**VLLM, "layout": "image"}, "layout=patches"),
    "another order": ({**VLLM, "order": "merge"}, "takes raster"),
    "bytes of Nemotron": ({**VLLM, **NEMOTRON, "dtype": "uint8"}, "takes bfloat16"),
    "patches of Nemotron": ({**VLLM, **NEMOTRON, "layout": "patches"}, "layout=image"),
    "tiles": ({**VLLM, "model": "nemotron-nano-vl-tiles"}, "no form is known"),
    "a model whose form is not known": ({**VLLM, "model": "kimi-k3"}, "no form is known"),
    "a hash without the model": ({"hash": "vllm"}, "model_id"),
    "a model without the hash": ({"model_id": MODEL_ID}, "hash=vllm alone"),
    "a model with spaces": ({"hash": "vllm", "model_id": "a b"}, "without spaces"),
    "no model at all": ({"hash": "vllm", "model_id": ""}, "1 to 256"),
    "a long model": ({"hash": "vllm", "model_id": "m" * 257}, "1 to 256"),
    "a hash of an unknown form": ({**HASHED, "model": "kimi-k3"}, "no form is known"),
    "a colour under a hash that says white": (
        {**HASHED, **NEMOTRON, "background": "drop"},
        "says white",
    ),
    "known hashes in msgpack": ({"known_hashes": "0" * 64}, "format=vllm"),
    "a short hash": ({**VLLM, "known_hashes": "0" * 63}, "64 hex digits"),
    "a hash in capitals": ({**VLLM, "known_hashes": "A" * 64}, "64 hex digits"),
    "an empty hash": ({**VLLM, "known_hashes": "0" * 64 + ","}, "64 hex digits"),
}


def features(response: httpx.Response) -> dict[str, Any]:
    assert response.status_code == 200, response.text
    assert response.headers["content-type"] == "application/json"
    assert int(response.headers["content-length"]) == len(response.content)
    answer: dict[str, Any] = response.json()
    return answer


def decoded(text: str) -> Any:
    return msgpack.unpackb(base64.b64decode(text, validate=True))


def posted(service: Running, pictures: list[bytes], **body: Any) -> dict[str, Any]:
    items = [{"type": "image", "data": picture} for picture in pictures]
    return features(
        service.post(
            msgpack.packb({"items": items, **VLLM, **body}),
            headers={"Content-Type": "application/msgpack"},
        )
    )


@pytest.mark.parametrize("dtype", ["uint8", "bfloat16"])
@pytest.mark.parametrize("name", ITEMS)
def test_an_item_is_the_engine_s_own(service: Running, name: str, dtype: str) -> None:
    asked = {**VLLM, "dtype": dtype}
    answer = features(service.post((IMAGES / name).read_bytes(), params=asked))
    wanted = decoded(ITEMS[name]["kwargs_data"][dtype])
    assert answer["modality"] == ITEMS[name]["modality"] == "vision_chunk"
    [text] = answer["kwargs_data"]["vision_chunk"]
    assert decoded(text) == wanted
    [metadata] = answer["mm_metadata"]["vision_chunk"]
    assert decoded(metadata) == {"grid_thws": wanted["grid_thws"]}


def test_the_type_is_that_of_an_engine_that_normalises(service: Running) -> None:
    answer = features(service.post(SMALL, params=VLLM))
    [text] = answer["kwargs_data"]["vision_chunk"]
    assert decoded(text)["pixel_values"]["data"][0] == "uint8"


@pytest.mark.parametrize("name", ITEMS)
def test_the_hash_of_a_chunk_is_the_engine_s_own(service: Running, name: str) -> None:
    data = (IMAGES / name).read_bytes()
    answer = features(service.post(data, params=VLLM | HASHED))
    assert answer["mm_hashes"] == {"vision_chunk": [ITEMS[name]["mm_hash_vision_chunk"]]}
    head, _ = unpack(service.post(data, params=HASHED).content)
    assert head["items"][0]["digest"] == ITEMS[name]["mm_hash_vision_chunk"]


@pytest.mark.parametrize("name", ITEMS)
def test_the_hash_of_an_image_is_the_engine_s_own(service: Running, name: str) -> None:
    asked = {**VLLM, **HASHED, **NEMOTRON}
    answer = features(service.post((IMAGES / name).read_bytes(), params=asked))
    assert answer["mm_hashes"] == {"image": [HASHES["hashes"][name]["image"]]}


def test_without_a_wish_the_hash_is_the_digest(service: Running) -> None:
    answer = features(service.post(SMALL, params=VLLM))
    head, _ = unpack(service.post(SMALL, params={"dtype": "uint8"}).content)
    assert answer["mm_hashes"]["vision_chunk"] == [head["items"][0]["digest"]]


def test_items_of_a_request_stand_in_its_order(service: Running) -> None:
    pictures = [PHOTO, SMALL, (IMAGES / "1280x720.jpg").read_bytes(), SMALL]
    together = posted(service, pictures)
    alone = [posted(service, [picture]) for picture in pictures]
    for name in ("mm_hashes", "kwargs_data", "mm_metadata"):
        assert together[name]["vision_chunk"] == [each[name]["vision_chunk"][0] for each in alone]
    assert together["num_tokens"] == [each["num_tokens"][0] for each in alone]


def test_a_video_chunk_is_one_item_of_several_frames(service: Running) -> None:
    frames = [(IMAGES / f"frame{number}.png").read_bytes() for number in range(4)]
    body = {"items": [{"type": "video_chunk", "frames": frames}], **VLLM}
    headers = {"Content-Type": "application/msgpack"}
    answer = features(service.post(msgpack.packb(body), headers=headers))
    binary = service.post(
        msgpack.packb(body | {"format": "msgpack", "dtype": "uint8"}), headers=headers
    )
    _, data = unpack(binary.content)
    [text] = answer["kwargs_data"]["vision_chunk"]
    assert decoded(text)["pixel_values"]["data"][2].data == data
    refused = service.post(msgpack.packb(body | HASHED), headers=headers)
    assert problem(refused) == (422, "bad_parameter", 0)


def test_a_nemotron_picture_is_whole_and_in_bfloat16(service: Running) -> None:
    answer = features(service.post(PHOTO, params=VLLM | NEMOTRON))
    asked = {**NEMOTRON, "dtype": "bfloat16", "layout": "image"}
    head, data = unpack(service.post(PHOTO, params=asked).content)
    [item] = head["items"]
    assert answer["num_tokens"] == [item["num_tokens"]]
    [text] = answer["kwargs_data"]["image"]
    cpu, device = {"keep_on_cpu": True}, {"keep_on_cpu": False}
    assert decoded(text) == {
        "pixel_values_flat": {
            "data": ["bfloat16", item["shape"], msgpack.ExtType(RAW_VIEW, data)],
            "field": ["batched", device],
        },
        "imgs_sizes": {"data": head["imgs_sizes"][0], "field": ["batched", cpu]},
        "num_tokens_per_image": {"data": item["num_tokens"], "field": ["batched", cpu]},
    }


@pytest.mark.parametrize("asked", [{}, HASHED], ids=["digest", "hash"])
def test_what_the_receiver_knows_is_left_out(service: Running, asked: dict[str, str]) -> None:
    pictures = [PHOTO, SMALL, PHOTO]
    whole = posted(service, pictures, **asked)
    known = whole["mm_hashes"]["vision_chunk"][0]
    rest = posted(service, pictures, **asked, known_hashes=[known, "0" * 64])
    wanted = dict(whole)
    for name in ("kwargs_data", "mm_metadata"):
        wanted[name] = {"vision_chunk": [None, whole[name]["vision_chunk"][1], None]}
    assert rest == wanted
    assert posted(service, pictures, **asked, known_hashes=known) == wanted


def test_what_is_known_is_not_decoded(service: Running) -> None:
    """A picture that only decoding would find damaged is answered once its digest is known."""
    damaged = PHOTO[: len(PHOTO) // 2]
    response = service.post(damaged, params=VLLM)
    assert problem(response) == (422, "truncated_image", 0)
    planned = service.client.post("/plan", content=damaged, params=VLLM).json()
    [item] = planned["items"]
    assert (planned["dtype"], planned["layout"]) == ("uint8", "patches")
    answer = features(service.post(damaged, params=VLLM | {"known_hashes": item["digest"]}))
    assert answer["kwargs_data"] == {"vision_chunk": [None]}
    assert answer["num_tokens"] == [item["num_tokens"]]


def test_what_is_known_takes_no_share_of_answer_or_budget() -> None:
    data = (IMAGES / "1280x720.jpg").read_bytes()
    small = {"PATCHMILL_MAX_ANSWER_BYTES": "4000000", "PATCHMILL_ANSWER_BUDGET_BYTES": "7000000"}
    with running(small) as service:
        first = posted(service, [data])
        known = first["mm_hashes"]["vision_chunk"][0]
        rest = posted(service, [data] * 8, known_hashes=known)
        assert rest["kwargs_data"] == {"vision_chunk": [None] * 8}
        one = posted(service, [data, SMALL], known_hashes=known)["kwargs_data"]["vision_chunk"]
        assert one == [None, posted(service, [SMALL])["kwargs_data"]["vision_chunk"][0]]
        hashed = {"hash": "vllm", "model_id": MODEL_ID, "known_hashes": known}
        told = posted(service, [data], **hashed)["kwargs_data"]["vision_chunk"]
        assert told == first["kwargs_data"]["vision_chunk"]  # a digest of ours is no hash of vLLM's


def test_many_known_hashes_come_in_a_form(service: Running) -> None:
    many = ",".join(f"{number:064x}" for number in range(1000))
    form = {"known_hashes": many, "format": "vllm"}
    response = service.client.post("/preprocess", files={"images": SMALL}, data=form)
    assert features(response)["num_tokens"] == [2]


def test_more_than_1024_known_hashes_are_refused(service: Running) -> None:
    body = {"items": [{"type": "image", "data": base64.b64encode(SMALL).decode()}], **VLLM}
    known = [f"{number:064x}" for number in range(1025)]
    assert problem(service.client.post("/preprocess", json=body | {"known_hashes": known}))[:2] == (
        422,
        "bad_parameter",
    )


@pytest.mark.parametrize(("asked", "told"), REFUSED.values(), ids=REFUSED)
def test_what_an_engine_would_misread_is_refused(
    service: Running, asked: dict[str, str], told: str
) -> None:
    refused = service.post(SMALL, params=asked)
    assert problem(refused)[:2] == (422, "bad_parameter")
    assert told in refused.json()["detail"]


@pytest.mark.parametrize("asked", [HASHED, {"known_hashes": "0" * 64}], ids=["hash", "known"])
def test_a_plan_has_no_pixels_to_hash_or_leave_out(service: Running, asked: dict[str, str]) -> None:
    refused = service.client.post("/plan", content=SMALL, params=asked)
    assert problem(refused)[:2] == (422, "bad_parameter")


def test_the_text_counts_in_the_budget_and_against_the_limit() -> None:
    """1280x720 is 2.8 MB as uint8 and 3.8 MB more as its base64."""
    data = (IMAGES / "1280x720.jpg").read_bytes()
    uint8 = {"dtype": "uint8"}
    with running({"PATCHMILL_MAX_ANSWER_BYTES": "3000000"}) as service:
        assert service.post(data, params=uint8).status_code == 200
        assert problem(service.post(data, params=VLLM))[:2] == (422, "answer_too_large")
    with running({"PATCHMILL_ANSWER_BUDGET_BYTES": "6000000"}) as service:
        assert service.post(data, params=uint8).status_code == 200
        assert problem(service.post(data, params=VLLM))[:2] == (422, "over_budget")
    with running({"PATCHMILL_ANSWER_BUDGET_BYTES": "7000000"}) as service:
        for _ in range(3):
            assert service.post(data, params=VLLM).status_code == 200
        assert service.client.get("/info").json()["in_use"]["answer_bytes"] == 0
