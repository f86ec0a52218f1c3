"""The Nemotron family over real HTTP: the reference's floats within a tolerance, its sizes."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgpack
import numpy as np
import pytest

from kernels import float_reference
from kernels.dispatch import Choice, select
from service.buffers import Buffers
from service.codec import decode
from service.frames import Press
from service.job import Request, Tools, digests_of, terms
from service.plan import profiles
from service.plan.items import plan_items
from service.plan.profiles import BUILT_IN
from service.pool.executor import Executor
from service.types import Budget, Item, ItemType, SixteenBit, Size, Sized, Wanted
from tests.codec.makers import LIMITS
from tests.golden_data import GOLDEN, IMAGES
from tests.service.running import Running, problem, running, unpack

NEMOTRON = GOLDEN / "nemotron"
CASES: dict[str, dict[str, Any]] = json.loads((NEMOTRON / "cases.json").read_text())
DYNAMIC = {name: facts for name, facts in CASES.items() if not name.startswith("tiles:")}
TILED = {name.removeprefix("tiles:"): CASES[name] for name in CASES if name.startswith("tiles:")}
BUDGET = ("max_model_len", "text_len", "min_num_patches", "max_num_patches")
TOLERANCE = 1e-5
"""The aim is 1e-4."""
FLOATS = ("float16", "bfloat16", "float32")
MODEL = {"model": "nemotron-nano-vl"}
MSGPACK = {"Content-Type": "application/msgpack"}
PHOTO = (IMAGES / "photo.jpg").read_bytes()


def vectors(kind: str, picture: str) -> Any:
    return np.load(NEMOTRON / f"{kind}_{Path(picture).stem}.npz")


def floats(data: bytes, dtype: str) -> np.ndarray[Any, np.dtype[np.float32]]:
    if dtype == "bfloat16":
        return (np.frombuffer(data, np.uint16).astype(np.uint32) << 16).view(np.float32)
    return np.frombuffer(data, dtype).astype(np.float32)


def as_stored(values: Any, dtype: str) -> bytes:
    """The bits of float32 values in another type, rounded to nearest, ties to even."""
    if dtype == "bfloat16":
        bits = np.ascontiguousarray(values, np.float32).view(np.uint32)
        return ((bits + 0x7FFF + (bits >> 16 & 1)) >> 16).astype(np.uint16).tobytes()
    return np.asarray(values, dtype).tobytes()


def answer(service: Running, data: bytes, **parameters: Any) -> tuple[dict[str, Any], bytes]:
    response = service.post(data, params=parameters)
    assert response.status_code == 200, response.text
    return unpack(response.content)


@pytest.mark.parametrize("picture", DYNAMIC)
def test_a_picture_becomes_the_floats_of_the_reference(service: Running, picture: str) -> None:
    facts, vector = DYNAMIC[picture], vectors("dynamic", picture)
    asked = {name: facts[name] for name in BUDGET}
    head, data = answer(service, (IMAGES / picture).read_bytes(), **MODEL, **asked)
    [item] = head["items"]
    assert head["numerics"] == "float32"
    assert head["imgs_sizes"] == [facts["size_hw"]] == [item["resized"]]
    assert [item["num_tokens"]] == facts["tokens"]
    assert item["shape"] == [facts["patches_shape"][0], 3, 16, 16]
    got = np.frombuffer(data, np.float32).reshape(facts["patches_shape"])
    assert np.abs(got - vector["patches"]).max() < TOLERANCE


@pytest.mark.parametrize("dtype", FLOATS)
def test_the_other_types_are_the_float32_rounded(service: Running, dtype: str) -> None:
    _, data = answer(service, PHOTO, **MODEL)
    _, other = answer(service, PHOTO, **MODEL, dtype=dtype)
    assert other == as_stored(np.frombuffer(data, np.float32), dtype)


@pytest.mark.parametrize("dtype", FLOATS)
def test_a_picture_that_is_not_cut_has_the_same_values(service: Running, dtype: str) -> None:
    head, data = answer(service, PHOTO, **MODEL, dtype=dtype)
    [_, h, w] = head["grid_thws"][0]
    storage = np.uint16 if dtype == "bfloat16" else np.dtype(dtype)
    patches = np.frombuffer(data, storage).reshape(h, w, 3, 16, 16)
    whole, planes = answer(service, PHOTO, **MODEL, dtype=dtype, layout="image")
    assert whole["layout"] == "image"
    assert whole["pixel_values"]["shape"] == [3, *whole["imgs_sizes"][0]] == [3, h * 16, w * 16]
    assert planes == patches.transpose(2, 0, 3, 1, 4).tobytes()


@pytest.mark.parametrize("dtype", FLOATS)
def test_the_patches_of_a_token_lie_together_where_asked_for(service: Running, dtype: str) -> None:
    head, data = answer(service, PHOTO, **MODEL, dtype=dtype)
    [_, h, w] = head["grid_thws"][0]
    storage = np.uint16 if dtype == "bfloat16" else np.dtype(dtype)
    raster = np.frombuffer(data, storage).reshape(h // 2, 2, w // 2, 2, -1)
    merged, other = answer(service, PHOTO, **MODEL, dtype=dtype, order="merge")
    assert merged["order"] == "merge"
    assert merged["pixel_values"]["shape"] == head["pixel_values"]["shape"]
    assert other == raster.transpose(0, 2, 1, 3, 4).tobytes()


def test_pictures_of_one_request_share_its_budget(service: Running) -> None:
    pictures = [(IMAGES / name).read_bytes() for name in ("1280x720.jpg", "2048x2048.jpg")]
    items = [{"type": "image", "data": data} for data in pictures]
    sizes = []
    for length in (131072, 4096):
        body = msgpack.packb({"items": items, **MODEL, "max_model_len": length, "text_len": 96})
        response = service.post(body, headers=MSGPACK)
        assert response.status_code == 200, response.text
        head, _ = unpack(response.content)
        sizes.append(head["imgs_sizes"])
        assert head["pixel_values"]["shape"] == [
            sum(item["num_patches"] for item in head["items"]),
            3,
            16,
            16,
        ]
    assert sizes == [[[736, 1280], [1824, 1856]], [[704, 1248], [1792, 1760]]]
    assert sum(h * w // 256 for h, w in sizes[1]) <= (4096 - 96 - 4) * 4


def test_digests_tell_sizes_apart_that_the_rest_of_a_request_decides(service: Running) -> None:
    digests = {
        answer(service, PHOTO, **MODEL, **asked)[0]["items"][0]["digest"]
        for asked in ({}, {"min_num_patches": 64}, {"text_len": 7}, {"order": "merge"})
    }
    assert len(digests) == 3  # a text of seven tokens changes no size


@pytest.mark.parametrize(("model", "kept"), [("nemotron-nano-vl", 0), ("kimi-k2.5", 1)])
def test_a_new_revision_of_the_float_resize_changes_the_digests_of_floats_alone(
    monkeypatch: pytest.MonkeyPatch, model: str, kept: int
) -> None:
    loaded = profiles.load([BUILT_IN], model)
    press = Press(select(Choice.NUMPY), Buffers(0), Executor(1), SixteenBit.COMPAT)
    tools = Tools(LIMITS, loaded, press, decode.versions())
    request = Request((Item(ItemType.IMAGE, (PHOTO,)),), Wanted(model=model))
    profile, form = terms(request, tools)
    plans = plan_items([Sized(ItemType.IMAGE, Size(300, 400), 1)], profile, Budget())
    before = set(digests_of(request, profile, form, plans, tools))
    monkeypatch.setattr(float_reference, "REVISION", float_reference.REVISION + 1)
    assert len(before.intersection(digests_of(request, profile, form, plans, tools))) == kept


@pytest.fixture(scope="module")
def small_tiles(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """A service whose tiles are those of the vectors: of 64 pixels, at most six."""
    folder = tmp_path_factory.mktemp("profiles")
    text = (BUILT_IN / "nemotron-nano-vl-tiles.toml").read_text()
    text = text.replace('"nemotron-nano-vl-tiles"', '"small-tiles"')
    text = text.replace("= 512", "= 64").replace("= 12", "= 6")
    (folder / "small.toml").write_text(text)
    with running({"PATCHMILL_PROFILES_DIR": str(folder)}) as service:
        yield service


@pytest.mark.parametrize("picture", TILED)
def test_a_picture_becomes_the_tiles_of_the_reference(small_tiles: Running, picture: str) -> None:
    wanted = vectors("tiles", picture)["pixel_values"]
    data = (IMAGES / picture).read_bytes()
    head, elements = answer(small_tiles, data, model="small-tiles", layout="image")
    assert head["pixel_values"]["shape"] == list(wanted.shape) == TILED[picture]["shape"]
    got = np.frombuffer(elements, np.float32).reshape(wanted.shape)
    assert np.abs(got - wanted).max() < TOLERANCE
    cut, elements = answer(small_tiles, data, model="small-tiles")
    assert cut["grid_thws"] == [[7, 4, 4]]
    assert cut["imgs_sizes"] == [[64, 64]]
    patches = got.reshape(7, 3, 4, 16, 4, 16).transpose(0, 2, 4, 1, 3, 5)
    assert elements == patches.tobytes()


# The parameters, what else is sent, and the code and item of the refusal.
REFUSED: dict[str, tuple[dict[str, Any], str, int | None]] = {
    "bytes of floats": ({**MODEL, "dtype": "uint8"}, "bad_parameter", None),
    "a budget for tiles": (
        {"model": "nemotron-nano-vl-tiles", "text_len": 1},
        "bad_parameter",
        None,
    ),
    "a budget for kimi": ({"max_model_len": 4096}, "bad_parameter", None),
    "an order without patches": (
        {**MODEL, "layout": "image", "order": "merge"},
        "bad_parameter",
        None,
    ),
    "a huge minimum": (
        {**MODEL, "min_num_patches": 2**23, "max_num_patches": 0, "max_model_len": 2**24},
        "answer_too_large",
        0,
    ),
    "a number out of range": ({**MODEL, "min_num_patches": 2**24 + 1}, "bad_parameter", None),
    "an endless number": ({**MODEL, "text_len": "9" * 900}, "bad_parameter", None),
    "no room for a patch": (
        {**MODEL, "min_num_patches": 1, "max_num_patches": 1, "max_model_len": 5},
        "unplannable_size",
        0,
    ),
}


@pytest.mark.parametrize(("asked", "code", "item"), REFUSED.values(), ids=REFUSED)
def test_what_a_profile_cannot_serve_is_refused(
    service: Running, asked: dict[str, Any], code: str, item: int | None
) -> None:
    response = service.post(PHOTO, params=asked)
    assert problem(response) == (422, code, item)


def test_without_room_in_the_context_every_picture_has_its_minimum(service: Running) -> None:
    head, _ = answer(service, PHOTO, **MODEL, max_model_len=1, text_len=2**24)
    assert head["items"][0]["num_patches"] <= 1024


def test_video_chunks_are_refused_by_the_item(service: Running) -> None:
    items = [{"type": "image", "data": PHOTO}, {"type": "video_chunk", "frames": [PHOTO]}]
    response = service.post(msgpack.packb({"items": items, **MODEL}), headers=MSGPACK)
    assert problem(response) == (422, "too_many_frames", 1)
    told = response.json()
    assert told["limit"] == 0
    assert "no video chunks" in told["title"]
    assert "send each of the 1 frames as an image" in told["detail"]


@pytest.mark.parametrize(
    ("dtype", "advice"),
    [("float32", "dtype=float16 or bfloat16 is smaller"), ("float16", "send fewer at once")],
)
def test_a_too_large_answer_is_met_with_what_the_profile_has(
    service: Running, dtype: str, advice: str
) -> None:
    huge = {"min_num_patches": 2**23, "max_num_patches": 0, "max_model_len": 2**24}
    response = service.post(PHOTO, params={**MODEL, **huge, "dtype": dtype})
    assert problem(response) == (422, "answer_too_large", 0)
    assert response.json()["detail"].endswith(advice)
