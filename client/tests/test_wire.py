"""Every field of a head: read when it is honest, refused when it lies, before anything is made."""

import copy
import tracemalloc
from collections.abc import Callable
from typing import Any

import pytest

from patchmill_client import (
    AnswerOverLimit,
    Dtype,
    Grid,
    ItemType,
    Layout,
    LyingAnswer,
    Order,
    Size,
)
from patchmill_client.cursor import MoreNeeded
from patchmill_client.values import Expected
from patchmill_client.wire import BASE_BYTES, ITEM_BYTES, read_head
from tests.packer import HONEST, MEAN, STD, fields, pack, uncut

LIMIT = 1 << 30
ONE = Expected((ItemType.IMAGE,), Dtype.FLOAT32)


def head_of(body: bytes, expected: Expected | None = None) -> Any:
    return read_head(memoryview(body), expected, LIMIT)


def test_an_honest_head_is_read_field_by_field() -> None:
    answer = fields([(1, 2, 4), (3, 2, 2)], "bfloat16")
    head = head_of(pack(answer), Expected((ItemType.IMAGE, ItemType.VIDEO_CHUNK), Dtype.BFLOAT16))
    assert (head.model, head.layout, head.order) == ("kimi-k2.5", "patches", "raster")
    assert head.numerics == "pillow-u8"
    assert head.dtype is Dtype.BFLOAT16
    assert (head.normalization.applied, head.normalization.mean) == (True, MEAN)
    assert head.normalization.std == STD
    assert dict(head.timings_ms) == {"receive": 0.25, "queue": 0.125, "pack": 1.5}
    first, second = head.items
    assert first.type is ItemType.IMAGE
    assert second.type is ItemType.VIDEO_CHUNK
    assert second.grid_thw == Grid(3, 2, 2)
    assert second.num_patches == 12
    assert second.shape == (12, 3, 14, 14)
    assert second.patch_offset == 8
    assert second.offset_bytes == first.length_bytes == 8 * 3 * 14 * 14 * 2
    assert second.resized == Size(25, 28)
    assert second.source.size == Size(25, 28)
    assert second.notes == ("clipped_16_bit",)
    assert head.body_bytes == len(pack(answer))
    assert head.head_bytes % 64 == 0


def test_items_of_different_patch_sizes_are_read() -> None:
    head = head_of(pack(fields([(1, 2, 4), (1, 1, 1)], patch_px=[14, 16])))
    assert [item.shape[-1] for item in head.items] == [14, 16]


def test_a_head_that_is_not_whole_asks_for_more_at_every_length() -> None:
    head_bytes = head_of(HONEST).head_bytes
    for length in range(head_bytes):
        with pytest.raises(MoreNeeded):
            head_of(HONEST[:length], ONE)


def test_the_data_need_not_be_there() -> None:
    head_bytes = head_of(HONEST).head_bytes
    assert head_of(HONEST[:head_bytes]).body_bytes == len(HONEST)


def put(*path: Any, value: Any) -> Callable[[Any], None]:
    """A lie: another value at a place."""

    def lie(answer: Any) -> None:
        for step in path[:-1]:
            answer = answer[step]
        assert answer[path[-1]] != value or type(answer[path[-1]]) is not type(value)
        answer[path[-1]] = value

    return lie


def drop(*path: Any) -> Callable[[Any], None]:
    def lie(answer: Any) -> None:
        for step in path[:-1]:
            answer = answer[step]
        del answer[path[-1]]

    return lie


def swap(name: str) -> Callable[[Any], None]:
    """The field moves to the front."""

    def lie(answer: Any) -> None:
        rest = {key: answer.pop(key) for key in list(answer)}
        answer[name] = rest.pop(name)
        answer.update(rest)

    return lie


ITEM = ("items", 1)
VALUES = "pixel_values"
WRONG_KINDS: list[Any] = [None, -1, 1.5, "x", b"x", [], {}, True, 2**63]
LIES: list[tuple[str, Callable[[Any], None]]] = [
    ("version", put("version", value=2)),
    ("version", put("version", value=0)),
    ("layout", put("layout", value="tiles")),
    ("layout", put("layout", value="image")),
    ("order", put("order", value="spiral")),
    ("order", put("order", value="merge")),
    ("items", put("items", value=[])),
    ("items[1].index", put(*ITEM, "index", value=0)),
    ("items[1].index", put(*ITEM, "index", value=2)),
    ("items[1].type", put(*ITEM, "type", value="audio")),
    ("items[1].type", put(*ITEM, "type", value="image")),
    ("items[0].type", put("items", 0, "type", value="video_chunk")),
    ("imgs_sizes", put("imgs_sizes", value=[[28, 56]])),
    ("imgs_sizes[1]", put("imgs_sizes", 1, value=[28])),
    ("imgs_sizes[1]", put("imgs_sizes", 1, value=[28, 30])),
    ("imgs_sizes[1]", put("imgs_sizes", 1, value=[0, 28])),
    ("imgs_sizes[1]", put("imgs_sizes", 1, value=[1, 1])),
    ("items[1].shape", put("imgs_sizes", 1, value=[30, 30])),
    ("items[1].digest", put(*ITEM, "digest", value="ab")),
    ("items[1].digest", put(*ITEM, "digest", value="Z" * 64)),
    ("items[1].source.height", put(*ITEM, "source", "height", value=0)),
    ("items[1].source.width", put(*ITEM, "source", "width", value=2**32)),
    ("items[1].source.orientation", put(*ITEM, "source", "orientation", value=9)),
    ("items[1].source.orientation", put(*ITEM, "source", "orientation", value=0)),
    ("items[1].source.more_frames", put(*ITEM, "source", "more_frames", value=1)),
    ("items[1].resized", put(*ITEM, "resized", value=[25])),
    ("items[1].resized", put(*ITEM, "resized", value=[0, 28])),
    ("items[1].resized", put(*ITEM, "resized", value=[29, 28])),
    ("items[1].resized", put(*ITEM, "resized", value=[25, 29])),
    ("items[1].num_patches", put(*ITEM, "grid_thw", value=[3, 2, 3])),
    ("items[1].grid_thw", put(*ITEM, "grid_thw", value=[3, 2])),
    ("items[1].grid_thw", put(*ITEM, "grid_thw", value=[0, 2, 2])),
    ("items[1].num_patches", put(*ITEM, "num_patches", value=13)),
    ("items[1].num_tokens", put(*ITEM, "num_tokens", value=13)),
    ("items[1].num_tokens", put(*ITEM, "num_tokens", value=0)),
    ("items[1].patch_offset", put(*ITEM, "patch_offset", value=7)),
    ("items[1].patch_offset", put(*ITEM, "patch_offset", value=9)),
    ("items[1].shape", put(*ITEM, "shape", value=[11, 3, 14, 14])),
    ("items[1].shape", put(*ITEM, "shape", value=[12, 4, 14, 14])),
    ("items[1].shape", put(*ITEM, "shape", value=[12, 3, 14, 28])),
    ("items[1].shape", put(*ITEM, "shape", value=[12, 3, 2**32, 2**32])),
    ("items[1].shape", put(*ITEM, "shape", value=[12, 3, 2**31, 2**31])),
    ("items[1].shape", put(*ITEM, "shape", value=[12, 3, 14])),
    ("items[1].offset_bytes", put(*ITEM, "offset_bytes", value=0)),
    ("items[1].offset_bytes", put(*ITEM, "offset_bytes", value=4)),
    ("items[1].length_bytes", put(*ITEM, "length_bytes", value=4)),
    ("items[1].length_bytes", put(*ITEM, "length_bytes", value=2**32 - 1)),
    ("items[0].patch_offset", put("items", 0, "patch_offset", value=1)),
    ("items[0].offset_bytes", put("items", 0, "offset_bytes", value=64)),
    ("items[1].notes", put(*ITEM, "notes", value=["x"] * 65)),
    ("items[1].notes", put(*ITEM, "notes", value=["x" * 257])),
    ("grid_thws", put("grid_thws", value=[[1, 2, 4]])),
    ("grid_thws[1]", put("grid_thws", 1, value=[3, 2, 1])),
    ("normalization.applied", put("normalization", "applied", value=False)),
    ("normalization.mean", put("normalization", "mean", value=[0.5, 0.5])),
    ("normalization.mean", put("normalization", "mean", 0, value=float("nan"))),
    ("normalization.std", put("normalization", "std", 0, value=float("inf"))),
    ("normalization", put("normalization", "std", 0, value=0.0)),
    ("normalization", put("normalization", "std", 2, value=-0.5)),
    ("normalization", put("normalization", "std", 2, value=1e-300)),
    ("normalization", put("normalization", "mean", 1, value=1e300)),
    ("timings_ms", put("timings_ms", value={str(stage): 1.0 for stage in range(65)})),
    ("timings_ms", put("timings_ms", "pack", value=float("nan"))),
    ("pad", put("pad", value=bytes(64))),
    ("pad", put("pad", value=b"\x01")),
    ("pixel_values.data", put("pad", value=b"\x00")),
    ("pixel_values.dtype", put(VALUES, "dtype", value="float64")),
    ("pixel_values.dtype", put(VALUES, "dtype", value="float16")),
    ("pixel_values.dtype", put(VALUES, "dtype", value="uint8")),
    ("pixel_values.shape", put(VALUES, "shape", value=[19, 3, 14, 14])),
    ("pixel_values.shape", put(VALUES, "shape", value=[20, 14, 14, 3])),
    ("pixel_values.shape", put(VALUES, "shape", value=[20 * 3 * 14 * 14])),
    ("pixel_values.shape", put(VALUES, "shape", value=[])),
    ("pixel_values.data", put(VALUES, "data", value=b"")),
    ("pixel_values.data", put(VALUES, "data", value=bytes(20 * 3 * 14 * 14 * 4 - 4))),
    ("pixel_values.data", put(VALUES, "data", value=bytes(20 * 3 * 14 * 14 * 4 + 4))),
    ("version", swap("model")),
    ("version", swap("pixel_values")),
]
TWO = Expected((ItemType.IMAGE, ItemType.VIDEO_CHUNK), Dtype.FLOAT32)


@pytest.mark.parametrize(
    ("field", "lie"), LIES, ids=lambda value: getattr(value, "__name__", value)
)
def test_a_lie_in_one_field_is_refused_by_name(field: str, lie: Callable[[Any], None]) -> None:
    answer = fields([(1, 2, 4), (3, 2, 2)])
    lie(answer)
    with pytest.raises(LyingAnswer) as refusal:
        head_of(pack(answer), TWO)
    assert refusal.value.field == field


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The path to every value inside, containers too."""
    if isinstance(value, dict):
        inner = [place for key in value for place in places(value[key], (*path, key))]
    elif isinstance(value, list):
        inner = [place for key, each in enumerate(value) for place in places(each, (*path, key))]
    else:
        inner = []
    return [path, *inner] if path else inner


ALL_PLACES = [
    place
    for place in places(fields([(1, 2, 4), (3, 2, 2)]))
    if place not in (("pad",), ("pixel_values", "data"), ("pixel_values",))
]


@pytest.mark.parametrize("place", ALL_PLACES, ids=str)
def test_a_value_of_another_kind_is_refused_anywhere(place: tuple[Any, ...]) -> None:
    honest = fields([(1, 2, 4), (3, 2, 2)])
    for wrong in WRONG_KINDS:
        answer = copy.deepcopy(honest)
        container: Any = answer
        for step in place[:-1]:
            container = container[step]
        before = container[place[-1]]
        container[place[-1]] = wrong
        try:
            head = head_of(pack(answer), TWO)
        except LyingAnswer:
            continue
        # What passes must be of the kind that stands there, in a field that may hold it.
        assert isinstance(wrong, type(before)) or isinstance(before, float), (place, wrong)
        assert head.data_bytes == len(honest["pixel_values"]["data"])


@pytest.mark.parametrize("place", ALL_PLACES, ids=str)
def test_a_value_that_is_missing_is_refused_anywhere(place: tuple[Any, ...]) -> None:
    if place[0] == "timings_ms" and len(place) == 2:
        return  # an open map: any stages may be in it
    if "notes" in place and place[-1] != "notes":
        return  # likewise
    answer = fields([(1, 2, 4), (3, 2, 2)])
    drop(*place)(answer)
    with pytest.raises(LyingAnswer):
        head_of(pack(answer), TWO)


UNCUT = Expected((ItemType.IMAGE, ItemType.VIDEO_CHUNK), Dtype.FLOAT32, Layout.IMAGE)
UNCUT_LIES: list[tuple[str, Callable[[Any], None]]] = [
    ("layout", put("layout", value="patches")),
    ("order", put("order", value="merge")),
    ("items[0].shape", put("items", 0, "shape", value=[2, 3, 28, 28])),
    ("items[0].shape", put("items", 0, "shape", value=[3, 56, 28])),
    ("items[1].shape", put(*ITEM, "shape", value=[3, 28, 28])),
    ("items[1].shape", put(*ITEM, "shape", value=[12, 3, 14, 14])),
    ("items[0].resized", put("items", 0, "resized", value=[29, 56])),
    ("imgs_sizes[0]", put("imgs_sizes", 0, value=[28, 57])),
    ("pixel_values.shape", put(VALUES, "shape", value=[4, 3, 28, 28])),
]


@pytest.mark.parametrize(("field", "lie"), UNCUT_LIES)
def test_a_lie_about_pictures_that_are_not_cut_is_refused(
    field: str, lie: Callable[[Any], None]
) -> None:
    answer = uncut(fields([(1, 2, 4), (3, 2, 2)]))
    assert [item.shape for item in head_of(pack(answer), UNCUT).items] == [
        (3, 28, 56),
        (3, 3, 28, 28),
    ]
    lie(answer)
    with pytest.raises(LyingAnswer) as refusal:
        head_of(pack(answer), UNCUT)
    assert refusal.value.field == field


@pytest.mark.parametrize(
    ("resized", "sound"),
    [([28, 84], True), ([56, 28], True), ([28, 28], False), ([28, 83], False), ([140, 28], False)],
)
def test_the_tiles_of_a_picture_cover_it(resized: list[int], sound: bool) -> None:  # noqa: FBT001
    answer = fields([(3, 2, 2)])
    answer["items"][0]["type"] = "image"
    answer["items"][0]["resized"] = resized
    for body in (pack(answer), pack(uncut_tiles(answer))):
        if sound:
            assert head_of(body).items[0].grid_thw == Grid(3, 2, 2)
            continue
        with pytest.raises(LyingAnswer) as refusal:
            head_of(body)
        assert refusal.value.field == "items[0].resized"


def uncut_tiles(answer: Any) -> Any:
    answer["items"][0]["type"] = "video_chunk"
    uncut(answer)
    answer["items"][0]["type"] = "image"
    return answer


def test_an_order_that_was_asked_for_is_taken() -> None:
    answer = fields()
    answer["order"] = "merge"
    expected = Expected((ItemType.IMAGE,), Dtype.FLOAT32, order=Order.MERGE)
    assert head_of(pack(answer), expected).order is Order.MERGE
    assert head_of(pack(answer)).order is Order.MERGE
    with pytest.raises(LyingAnswer, match="though merge was asked for"):
        head_of(HONEST, expected)


def test_a_field_too_many_is_refused() -> None:
    answer = fields()
    answer["more"] = 1
    with pytest.raises(LyingAnswer, match="not a map of 12"):
        head_of(pack(answer))


def test_a_stage_that_is_timed_twice_is_refused() -> None:
    answer = fields()
    answer["timings_ms"] = {"a": 1.0, "b": 1.0}
    with pytest.raises(LyingAnswer, match="twice"):
        head_of(pack(answer).replace(b"\xa1b\xcb", b"\xa1a\xcb"))


@pytest.mark.parametrize(
    ("types", "dtype", "field"),
    [
        ((ItemType.IMAGE, ItemType.IMAGE), Dtype.FLOAT32, "items"),
        ((ItemType.VIDEO_CHUNK,), Dtype.FLOAT32, "items[0].type"),
        ((ItemType.IMAGE,), Dtype.UINT8, "pixel_values.dtype"),
    ],
)
def test_an_honest_answer_to_another_request_is_refused(
    types: tuple[ItemType, ...], dtype: Dtype, field: str
) -> None:
    with pytest.raises(LyingAnswer) as refusal:
        head_of(HONEST, Expected(types, dtype))
    assert refusal.value.field == field


def test_more_data_than_is_taken_is_refused_by_both_numbers() -> None:
    with pytest.raises(AnswerOverLimit) as refusal:
        read_head(memoryview(HONEST), ONE, 1000)
    assert (refusal.value.limit, refusal.value.actual) == (1000, 8 * 3 * 14 * 14 * 4)


@pytest.mark.parametrize(
    "start",
    [
        pytest.param(b"\x8c\xa7version\xdd\xff\xff\xff\xff", id="a list of 2**32 elements"),
        pytest.param(b"\x8c\xa7version\xdf\xff\xff\xff\xff", id="a map of 2**32 pairs"),
        pytest.param(b"\x8c\xa7version\xc6\xff\xff\xff\xff", id="4 GiB of binary data"),
        pytest.param(b"\x8c\xa7version\xdb\xff\xff\xff\xff", id="4 GiB of text"),
        pytest.param(b"\x8c\xa7version" + b"\x91" * 10_000, id="lists in lists"),
        pytest.param(b"\xdf\xff\xff\xff\xff", id="a body of 2**32 pairs"),
        pytest.param(b"<html>", id="a page"),
        pytest.param(b"\xc1", id="the byte that msgpack never uses"),
    ],
)
def test_a_bomb_is_refused_without_an_allocation(start: bytes) -> None:
    tracemalloc.start()
    try:
        with pytest.raises(LyingAnswer):
            head_of(start, ONE)
        peak_bytes = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak_bytes < 64 * 1024


def test_a_head_that_does_not_end_is_given_up() -> None:
    answer = fields()
    answer["items"][0]["notes"] = ["x" * 250] * 64
    answer["timings_ms"] = {f"{stage:02}" + "x" * 200: 1.0 for stage in range(64)}
    body = pack(answer)
    assert head_of(body).head_bytes > BASE_BYTES + ITEM_BYTES
    with pytest.raises(LyingAnswer, match="more than"):
        head_of(body, ONE)
    with pytest.raises(MoreNeeded):
        head_of(body[: BASE_BYTES + ITEM_BYTES - 1], ONE)
