"""POST /plan: what pictures will come to, equal to what they come to, and no pixel decoded."""

import struct
from typing import Any

import httpx
import msgpack
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.codec import makers
from tests.golden_data import IMAGES
from tests.hostile.rows import Row, When, rows
from tests.service.running import Running, problem, unpack

PICTURES = sorted(path.name for path in IMAGES.iterdir())
MODELS = ("kimi-k2.5", "kimi-k3", "nemotron-nano-vl", "nemotron-nano-vl-tiles")
SAME = ("type", "resized", "grid_thw", "num_patches", "num_tokens")
JSON_ROWS = [row for row in rows() if row.when is When.HEADER and row.code != "empty_body"]


def plan(service: Running, content: Any = None, **options: Any) -> httpx.Response:
    return service.client.post("/plan", content=content, **options)


def planned(service: Running, content: Any = None, **options: Any) -> list[dict[str, Any]]:
    answer = plan(service, content, **options)
    assert answer.status_code == 200, answer.text
    items: list[dict[str, Any]] = answer.json()["items"]
    return items


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("name", PICTURES)
def test_a_whole_file_s_plan_is_what_it_comes_to(service: Running, name: str, model: str) -> None:
    data = (IMAGES / name).read_bytes()
    params = {"model": model, "dtype": "bfloat16"}
    [item] = planned(service, data, params=params)
    full, _ = unpack(service.post(data, params=params).content)
    [done] = full["items"]
    assert {key: item[key] for key in SAME} == {key: done[key] for key in SAME}
    assert item["digest"] == done["digest"]
    assert item["bytes"] == done["length_bytes"]
    assert item["reason"] is None
    assert item["source"] == done["source"]


@pytest.mark.parametrize("head_bytes", [1 << 16, 1 << 12, 200])
@pytest.mark.parametrize("name", PICTURES)
def test_a_head_s_plan_is_the_file_s_or_none_with_a_reason(
    service: Running, name: str, head_bytes: int
) -> None:
    data = (IMAGES / name).read_bytes()
    [whole] = planned(service, data)
    [head] = planned(service, data[:head_bytes], params={"head": "true"})
    assert head["digest"] is None
    if head["grid_thw"] is None:
        assert head["reason"]
        # A PNG may tell its orientation behind its pixels; all else is in the first 64 KiB.
        assert head_bytes < 1 << 16 or name.endswith(".png")
        assert head["num_tokens"] is head["bytes"] is None
    else:
        told = {key: head[key] for key in SAME if key != "resized" or head[key]}
        assert told == {key: whole[key] for key in told}
        assert head["reason"] is None


@settings(max_examples=60, deadline=None)
@given(st.tuples(st.integers(1, 5000), st.integers(1, 5000)))
def test_a_size_s_plan_is_that_of_a_file_of_this_size(
    service: Running, size: tuple[int, int]
) -> None:
    width, height = size
    body = {"model": "kimi-k3", "images": [{"width": width, "height": height}]}
    [by_size] = planned(service, None, json=body)
    file = makers.bmp(1, height=height, width=width, body=b"")
    [by_file] = planned(service, file, params={"model": "kimi-k3"})
    assert {key: by_size[key] for key in SAME} == {key: by_file[key] for key in SAME}
    assert by_size["source"] is by_size["digest"] is None


def test_pictures_of_one_request_share_their_model_s_budget(service: Running) -> None:
    images = [{"width": 3000, "height": 2000}] * 3
    alone = planned(service, None, json={"model": "nemotron-nano-vl", "images": images[:1]})
    body = {"model": "nemotron-nano-vl", "images": images, "max_model_len": 8192, "text_len": 100}
    together = planned(service, None, json=body)
    assert sum(item["num_tokens"] for item in together) <= 8192 - 100
    assert together[0]["num_tokens"] < alone[0]["num_tokens"]


def test_a_turned_head_is_not_guessed_unless_it_does_not_matter(service: Running) -> None:
    late = makers.png_with_late(makers.chunk(b"eXIf", makers.exif_block(6)))
    cut = late[: late.index(b"IDAT") + 8]
    [tall] = planned(service, cut, params={"head": "true"})
    assert tall["grid_thw"] == [1, 2, 2]  # 24x16 and 16x24 fill as many patches
    assert tall["resized"] is None
    wide = makers.png("RGB", 16, 300)
    [unknown] = planned(service, wide[: wide.index(b"IDAT") + 8], params={"head": "true"})
    assert unknown["grid_thw"] is None
    assert "orientation" in unknown["reason"]
    body = {"items": [{"type": "image", "data": each} for each in (late, wide[:60])]}
    several = planned(
        service,
        msgpack.packb({**body, "head": True}),
        headers={"Content-Type": "application/msgpack"},
    )
    assert [item["reason"] is None for item in several] == [True, False]


def test_a_chunk_of_frames_is_planned_by_its_size_and_count(service: Running) -> None:
    body = {"images": [{"width": 640, "height": 480, "frames": 4}]}
    [chunk] = planned(service, None, json=body)
    assert chunk["type"] == "video_chunk"
    assert chunk["grid_thw"][0] == 4
    too_many = {"images": [{"width": 640, "height": 480, "frames": 5}]}
    assert problem(plan(service, None, json=too_many)) == (422, "too_many_frames", 0)


@pytest.mark.parametrize("row", JSON_ROWS, ids=lambda row: row.name)
def test_what_cannot_be_preprocessed_cannot_be_planned(service: Running, row: Row) -> None:
    assert problem(plan(service, row.data)) == (row.status, row.code, 0)


WRONG: dict[str, tuple[dict[str, Any], int, str, int | None]] = {
    "no images": ({"json": {"images": []}}, 400, "empty_body", None),
    "both": ({"json": {"images": [{"width": 1, "height": 1}], "items": []}}, 400, "bad_json", None),
    "no list": ({"json": {"images": {}}}, 400, "bad_json", None),
    "zero": ({"json": {"images": [{"width": 0, "height": 1}]}}, 400, "bad_json", 0),
    "half": ({"json": {"images": [{"width": 1.5, "height": 1}]}}, 400, "bad_json", 0),
    "true": ({"json": {"images": [{"width": True, "height": 1}]}}, 400, "bad_json", 0),
    "one side": ({"json": {"images": [{"width": 1}]}}, 400, "bad_json", 0),
    "another field": (
        {"json": {"images": [{"width": 1, "height": 1, "depth": 1}]}},
        400,
        "bad_json",
        0,
    ),
    "too large": (
        {"json": {"images": [{"width": 9000, "height": 9000}]}},
        422,
        "too_many_pixels",
        0,
    ),
    "too long": ({"json": {"images": [{"width": 70000, "height": 1}]}}, 422, "side_too_long", 0),
    "65": ({"json": {"images": [{"width": 1, "height": 1}] * 65}}, 422, "too_many_items", None),
    "head": ({"content": b"x", "params": {"head": "perhaps"}}, 422, "bad_parameter", None),
    "unknown": ({"content": b"x", "params": {"tail": "1"}}, 422, "bad_parameter", None),
    "model": ({"json": {"images": [{"width": 1, "height": 1}], "model": "x"}}, 422,
              "unknown_model", None),
}  # fmt: skip


@pytest.mark.parametrize(("options", "status", "code", "item"), WRONG.values(), ids=WRONG)
def test_a_wrong_plan_is_refused_by_name(
    service: Running, options: dict[str, Any], status: int, code: str, item: int | None
) -> None:
    assert problem(plan(service, options.pop("content", None), **options)) == (status, code, item)


BIG = {"width": 7000, "height": 7000}
WIDE = {"width": 3000, "height": 1900}


@pytest.mark.parametrize(
    ("body", "code", "item"),
    [
        ({"images": [BIG] * 5}, "too_many_pixels", 4),
        ({"images": [{**BIG, "frames": 4}, BIG]}, "too_many_pixels", 1),
        ({"images": [WIDE] * 20, "dtype": "float32"}, "answer_too_large", 13),
        ({"images": [WIDE], "head": "TRUE"}, "bad_parameter", None),
        ({"images": [WIDE], "head": 1}, "bad_parameter", None),
    ],
)
def test_sizes_that_a_request_could_not_hold_are_refused_like_files(
    service: Running, body: dict[str, Any], code: str, item: int | None
) -> None:
    assert problem(service.client.post("/plan", json=body)) == (422, code, item)


def chunk(service: Running, *frames: bytes) -> httpx.Response:
    body = msgpack.packb({"items": [{"type": "video_chunk", "frames": list(frames)}]})
    headers = {"Content-Type": "application/msgpack"}
    return plan(service, body, params={"head": "true"}, headers=headers)


def test_every_frame_s_head_counts(service: Running) -> None:
    small, other = ((IMAGES / name).read_bytes() for name in ("frame0.png", "photo.jpg"))
    assert problem(chunk(service, small, other)) == (422, "frames_differ", 0)
    assert problem(chunk(service, small, b"garbage and more of it")) == (
        415,
        "unsupported_format",
        0,
    )
    assert problem(chunk(service, small, b"")) == (422, "empty_item", 0)
    assert chunk(service, small, small[:200]).json()["items"][0]["grid_thw"][0] == 2


def test_a_frame_that_is_upright_decides_for_one_that_may_be_turned(service: Running) -> None:
    late = makers.png(height=40, width=90)
    [alone] = planned(service, late[:60], params={"head": "true"})
    assert alone["grid_thw"] is None
    [item] = chunk(service, late[:60], late).json()["items"]
    assert item["grid_thw"][1:] == planned(service, late)[0]["grid_thw"][1:]


def test_heads_that_a_request_could_not_hold_are_refused_like_files(service: Running) -> None:
    header = makers.chunk(b"IHDR", struct.pack(">LLBBBBB", 7000, 7000, 8, 2, 0, 0, 0))
    head = b"\x89PNG\r\n\x1a\n" + header
    items = [{"type": "image", "data": head}] * 5
    body = msgpack.packb({"items": items})
    headers = {"Content-Type": "application/msgpack"}
    answer = plan(service, body, params={"head": "true"}, headers=headers)
    assert problem(answer) == (422, "too_many_pixels", 4)


def test_a_plan_holds_no_pixels_and_other_methods_are_refused(service: Running) -> None:
    answer = service.client.get("/plan")
    assert problem(answer) == (405, "method_not_allowed", None)
    assert answer.headers["allow"] == "POST"
