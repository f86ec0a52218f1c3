"""Every way in which a request can be malformed is refused; mutated ones by the thousand."""

import base64
import copy
import json
import math
import random
import struct
from collections.abc import Callable
from typing import Any

import msgpack
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from patchmill_client import (
    BadFeatures,
    BadPlaceholder,
    BadTensor,
    NormalizedTwice,
    UnknownHash,
    UnsafeRequest,
    WrongElements,
)
from patchmill_client.vllm import KIMI, NEMOTRON, Engine, NormalizedBy, generate_request, validate
from tests import engine_rules
from tests.test_vllm import PAD, SAMPLING, kimi_batch, nemotron_batch, unpacked

Request = dict[str, Any]
Change = Callable[[Request], None]
CHUNK = "vision_chunk"
SENDER = Engine(normalized_by=NormalizedBy.SENDER)


def kimi_request(dtype: str = "uint8") -> Request:
    """Text, a picture of 2 tokens, text, a picture of 4."""
    return generate_request(
        [7, PAD, 8, 9, PAD, 10],
        kimi_batch((1, 2, 4), (1, 4, 4), dtype=dtype),
        SAMPLING,
        placeholder_id=PAD,
        engine=KIMI if dtype == "uint8" else SENDER,
    )


def nemotron_request() -> Request:
    return generate_request(
        [7, PAD, PAD],
        nemotron_batch((1, 2, 4), (1, 4, 4)),
        SAMPLING,
        placeholder_id=PAD,
        engine=NEMOTRON,
        start_ids=[1],
        end_ids=[2],
    )


def repack(item: Any) -> str:
    return base64.b64encode(msgpack.packb(item)).decode()


def in_item(change: Change, modality: str = CHUNK, index: int = 0) -> Change:
    """A change of the decoded item, and none of its metadata."""

    def apply(request: Request) -> None:
        items = request["features"]["kwargs_data"][modality]
        item = unpacked(items[index])
        change(item)
        items[index] = repack(item)
        request["features"]["mm_metadata"] = None

    return apply


def grid_of(*grid: int) -> Change:
    return in_item(
        lambda item: item["grid_thws"]["data"].__setitem__(
            2, msgpack.ExtType(3, struct.pack("<3q", *grid))
        )
    )


def pixels_of(*shape: int, dtype: str = "uint8") -> Change:
    """Pixels of another shape, with as many bytes as it needs, and slices to match."""

    def change(item: Any) -> None:
        size = math.prod(shape) * {"uint8": 1, "float32": 4, "int64": 8}.get(dtype, 2)
        item["pixel_values"]["data"] = [dtype, list(shape), msgpack.ExtType(3, bytes(size))]
        item["pixel_values"]["field"][1]["slices"] = [[[0, shape[0], None]]]

    return in_item(change)


def at(path: str, value: Any) -> Change:
    """A value put at a path of the request."""

    def change(request: Request) -> None:
        *steps, last = [int(step) if step.isdigit() else step for step in path.split("/")]
        place: Any = request
        for step in steps:
            place = place[step]
        place[last] = value

    return change


def in_pixels(path: str, value: Any) -> Change:
    return in_item(at(f"pixel_values/{path}", value))


def without(path: str) -> Change:
    def change(request: Request) -> None:
        *steps, last = [int(step) if step.isdigit() else step for step in path.split("/")]
        place: Any = request
        for step in steps:
            place = place[step]
        del place[last]

    return change


def shift(index: int, offset: int, length: int) -> Change:
    def change(request: Request) -> None:
        span = request["features"]["mm_placeholders"][CHUNK][index]
        span["offset"] += offset
        span["length"] += length

    return change


def rename(old: str, new: str) -> Change:
    """One modality's lists under another name."""

    def change(request: Request) -> None:
        for lists in request["features"].values():
            lists[new] = lists.pop(old)

    return change


def bad_text(text: Any) -> Change:
    return at(f"features/kwargs_data/{CHUNK}/0", text)


MALFORMED: dict[str, tuple[Change, type[UnsafeRequest], str]] = {
    "no tokens": (at("token_ids", []), BadFeatures, "at least one"),
    "token ids that are no list": (at("token_ids", "abc"), BadFeatures, "must be a list"),
    "a negative token": (at("token_ids/0", -1), BadFeatures, "-1 is no token id"),
    "a token that is true": (at("token_ids/0", True), BadFeatures, "no token id"),
    "no sampling parameters": (without("sampling_params"), BadFeatures, "must be an object"),
    "content parts beside features": (at("content_parts", [{}]), BadFeatures, "exclude features"),
    "features that are no object": (at("features", [1]), BadFeatures, "must be an object"),
    "no hashes": (without("features/mm_hashes"), BadFeatures, "has None"),
    "no placeholders": (without("features/mm_placeholders"), BadFeatures, "has None"),
    "an empty modality": (at(f"features/mm_hashes/{CHUNK}", []), BadFeatures, "at least one"),
    "another family's modality": (rename(CHUNK, "image"), BadFeatures, "vision_chunk alone"),
    "an unknown modality": (rename(CHUNK, "smell"), BadFeatures, "vision_chunk alone"),
    "a modality more": (at("features/kwargs_data/image", []), BadFeatures, "vision_chunk alone"),
    "a hash more": (at(f"features/mm_hashes/{CHUNK}", list("abc")), BadFeatures, "mm_hashes has 3"),
    "an item less": (at(f"features/kwargs_data/{CHUNK}", [None]), BadFeatures, "mm_hashes has 2"),
    "metadata less": (at(f"features/mm_metadata/{CHUNK}", [None]), BadFeatures, "mm_hashes has 2"),
    "an empty hash": (at(f"features/mm_hashes/{CHUNK}/0", ""), BadFeatures, "1 to 256"),
    "a hash that is a number": (at(f"features/mm_hashes/{CHUNK}/0", 5), BadFeatures, "1 to 256"),
    "one hash for two contents": (
        at(f"features/mm_hashes/{CHUNK}", ["same", "same"]),
        BadFeatures,
        "one hash same",
    ),
    "a range outside": (shift(1, 0, 9), BadPlaceholder, "token_ids has 10"),
    "a range before": (shift(0, -2, 0), BadPlaceholder, "are no range"),
    "ranges that overlap": (shift(0, 0, 4), BadPlaceholder, "overlap"),
    "a range of nothing": (shift(0, 0, -2), BadPlaceholder, "are no range"),
    "a range off by one": (shift(0, 1, 0), BadPlaceholder, "other than the placeholder"),
    "a range too short": (shift(0, 0, -1), BadPlaceholder, "lie outside all ranges"),
    "a range too long": (shift(0, 0, 1), BadPlaceholder, "other than the placeholder"),
    "an offset that is true": (
        at(f"features/mm_placeholders/{CHUNK}/0/offset", True),
        BadPlaceholder,
        "no range",
    ),
    "a range without length": (
        at(f"features/mm_placeholders/{CHUNK}/0", {"offset": 1}),
        BadPlaceholder,
        "offset and length",
    ),
    "a placeholder in the text": (at("token_ids/0", PAD), BadPlaceholder, "outside all ranges"),
    "ranges in each other's place": (
        at(
            f"features/mm_placeholders/{CHUNK}",
            [{"offset": 5, "length": 4}, {"offset": 1, "length": 2}],
        ),
        BadPlaceholder,
        "4 placeholders for 2 embeddings",
    ),
    "null for a hash that nobody knows": (bad_text(None), UnknownHash, "was not said to be known"),
    "no tensors at all": (without("features/kwargs_data"), UnknownHash, "was not said"),
    "an item that is no text": (bad_text(5), BadTensor, "base64 or null"),
    "bad base64": (bad_text("a"), BadTensor, "not base64"),
    "base64 with a stranger": (bad_text("AAAA\n"), BadTensor, "not base64"),
    "base64 of another alphabet": (bad_text("-_-_"), BadTensor, "not base64"),
    "no msgpack": (bad_text("wQ=="), BadTensor, "not the msgpack"),
    "msgpack that ends early": (bad_text("gg=="), BadTensor, "not the msgpack"),
    "two documents": (
        bad_text(base64.b64encode(msgpack.packb({}) * 2).decode()),
        BadTensor,
        "not the msgpack",
    ),
    "a key that stands twice": (
        bad_text(base64.b64encode(b"\x82\xa1a\xc0\xa1a\xc0").decode()),
        BadTensor,
        "stands twice",
    ),
    "msgpack of a list": (bad_text(repack([1])), BadTensor, "must be a map"),
    "a field whose name is a number": (bad_text(repack({b"a": 1})), BadTensor, "name of a field"),
    "no pixels": (in_item(without("pixel_values")), BadTensor, "pixel_values missing"),
    "no grid": (in_item(without("grid_thws")), BadTensor, "grid_thws missing"),
    "a field more": (in_item(at("more", {"data": 1, "field": ["batched", {}]})), BadTensor, "more"),
    "a field without data": (in_item(without("pixel_values/data")), BadTensor, "data and field"),
    "a null tensor": (in_pixels("data", None), BadTensor, "must be a tensor"),
    "a pickle": (in_pixels("data/2", msgpack.ExtType(1, b"cos")), BadTensor, "is a pickle"),
    "a cloudpickle": (in_pixels("data/2", msgpack.ExtType(2, b"cos")), BadTensor, "is a pickle"),
    "a pickle for a value": (in_pixels("data", msgpack.ExtType(2, b"c")), BadTensor, "a tensor"),
    "another extension": (in_pixels("data/2", msgpack.ExtType(4, b"")), BadTensor, "ext code 4"),
    "a buffer elsewhere": (in_pixels("data/2", 1), BadTensor, "raw view"),
    "plain bytes": (in_pixels("data/2", bytes(4704)), BadTensor, "raw view"),
    "a dtype typo": (in_pixels("data/0", "unit8"), BadTensor, "no element type"),
    "a dtype that is an attribute": (in_pixels("data/0", "load"), BadTensor, "no element type"),
    "pixels of int64": (pixels_of(8, 3, 14, 14, dtype="int64"), BadTensor, "no type of pixels"),
    "fewer bytes": (
        in_pixels("data/2", msgpack.ExtType(3, bytes(4703))),
        BadTensor,
        "4703 bytes",
    ),
    "a shape of text": (in_pixels("data/1", ["8"]), BadTensor, "whole numbers"),
    "a shape of floats": (in_pixels("data/1", [8.0, 3, 14, 14]), BadTensor, "whole numbers"),
    "an empty shape": (in_pixels("data/1", [0, 3, 14, 14]), BadTensor, "is empty"),
    "sides below zero": (in_pixels("data/1", [-8, -3, 14, 14]), BadTensor, "is empty"),
    "too few patches": (pixels_of(7, 3, 14, 14), BadTensor, r"must be \[8, 3, 14, 14\]"),
    "too many patches": (pixels_of(9, 3, 14, 14), BadTensor, r"must be \[8, 3, 14, 14\]"),
    "another rank": (pixels_of(8, 588), BadTensor, r"must be \[8, 3, 14, 14\]"),
    "another patch": (pixels_of(8, 3, 16, 16), BadTensor, r"must be \[8, 3, 14, 14\]"),
    "four channels": (pixels_of(8, 4, 14, 14), BadTensor, r"must be \[8, 3, 14, 14\]"),
    "a zero grid": (grid_of(1, 0, 0), BadTensor, "0 patches"),
    "no frames": (grid_of(0, 2, 4), BadTensor, "0 frames"),
    "five frames": (grid_of(5, 2, 4), BadTensor, "5 frames"),
    "a negative grid": (grid_of(1, -2, -4), BadTensor, "-2 patches"),
    "a grid with odd sides": (grid_of(1, 8, 1), BadTensor, "no multiple of the merge"),
    "a side beyond the encoder": (grid_of(1, 2, 514), BadTensor, "514 patches"),
    "a larger grid": (grid_of(1, 4, 4), BadTensor, "must be"),
    "a grid of two": (
        in_item(at("grid_thws/data", ["int64", [2], msgpack.ExtType(3, bytes(16))])),
        BadTensor,
        r"must be \[3\]",
    ),
    "a grid of another rank": (in_item(at("grid_thws/data/1", [1, 3])), BadTensor, "shape"),
    "a grid of floats": (
        in_item(at("grid_thws/data", ["float32", [3], msgpack.ExtType(3, bytes(12))])),
        BadTensor,
        "must be int64",
    ),
    "a grid in a list": (in_item(at("grid_thws/data", [1, 2, 4])), BadTensor, "must be a tensor"),
    "no kind of field": (in_pixels("field/0", "shared"), BadTensor, "must be flat"),
    "a kind that is a number": (in_pixels("field/0", 3), BadTensor, "no kind of field"),
    "no slices": (
        in_item(without("pixel_values/field/1/slices")),
        BadTensor,
        "dim, keep_on_cpu, slices",
    ),
    "empty slices": (in_pixels("field/1/slices", []), BadTensor, "slices"),
    "slices of text": (in_pixels("field/1/slices", [[["0", "8", None]]]), BadTensor, "slices"),
    "a bare slice": (in_pixels("field/1/slices", [[0, 8, None]]), BadTensor, "slices"),
    "a slice with a step": (in_pixels("field/1/slices", [[[0, 8, 2]]]), BadTensor, "slices"),
    "a slice of fewer": (in_pixels("field/1/slices", [[[0, 7, None]]]), BadTensor, "tell 7"),
    "slices with a gap": (
        in_pixels("field/1/slices", [[[0, 8, None]], [[9, 25, None]]]),
        BadTensor,
        "after 8",
    ),
    "another dim": (in_pixels("field/1/dim", 1), BadTensor, "dim 1"),
    "a dim that is false": (in_pixels("field/1/dim", False), BadTensor, "dim False"),
    "pixels kept on the CPU": (in_pixels("field/1/keep_on_cpu", True), BadTensor, "must be false"),
    "a grid on the device": (
        in_item(at("grid_thws/field/1/keep_on_cpu", False)),
        BadTensor,
        "must be true",
    ),
    "normalised twice": (
        pixels_of(8, 3, 14, 14, dtype="bfloat16"),
        NormalizedTwice,
        "normalised twice",
    ),
    "normalised twice, in float32": (
        pixels_of(8, 3, 14, 14, dtype="float32"),
        NormalizedTwice,
        "normalised twice",
    ),
    "metadata that says otherwise": (
        at(
            f"features/mm_metadata/{CHUNK}/0",
            repack(
                {
                    "grid_thws": {
                        "data": ["int64", [3], msgpack.ExtType(3, struct.pack("<3q", 1, 4, 2))],
                        "field": ["batched", {"keep_on_cpu": True}],
                    }
                }
            ),
        ),
        BadTensor,
        "differs from the item's own",
    ),
    "metadata that is garbage": (
        at(f"features/mm_metadata/{CHUNK}/0", "AAAA"),
        BadTensor,
        "mm_metadata",
    ),
}

NEMOTRON_MALFORMED: dict[str, tuple[Change, type[UnsafeRequest], str]] = {
    "another size": (at("imgs_sizes/data", [64, 64]), BadTensor, "num_tokens_per_image"),
    "a size of three": (at("imgs_sizes/data", [1, 32, 64]), BadTensor, "a height and a width"),
    "a zero size": (at("imgs_sizes/data", [0, 0]), BadTensor, "0 patches"),
    "an odd size": (at("imgs_sizes/data", [33, 64]), BadTensor, "no whole patches"),
    "other tokens": (at("num_tokens_per_image/data", 3), BadTensor, "must be 2"),
    "tokens in a list": (at("num_tokens_per_image/data", [2]), BadTensor, "must be 2"),
    "no tokens": (without("num_tokens_per_image"), BadTensor, "missing"),
    "the picture on its side": (
        at("pixel_values_flat/data/1", [3, 64, 32]),
        BadTensor,
        r"must be \[3, 32, 64\]",
    ),
    "patches": (at("pixel_values_flat/data/1", [8, 3, 16, 16]), BadTensor, "must be"),
    "flat pixels": (at("pixel_values_flat/field/0", "flat"), BadTensor, "must be batched"),
    "float16": (at("pixel_values_flat/data/0", "float16"), WrongElements, "takes bfloat16"),
}


def test_what_was_built_is_valid() -> None:
    validate(kimi_request(), placeholder_id=PAD)
    validate(kimi_request())
    validate(kimi_request("bfloat16"), SENDER)
    validate(nemotron_request(), NEMOTRON)
    for request, dtype in ((kimi_request(), "uint8"), (nemotron_request(), "bfloat16")):
        engine_rules.check(request, dtype)


@pytest.mark.parametrize("request_", [None, [], "x", 1])
def test_what_is_no_request_at_all_is_refused_too(request_: Any) -> None:
    with pytest.raises(BadFeatures, match="must be an object"):
        validate(request_)


def test_known_hashes_without_their_tokens_are_refused() -> None:
    with pytest.raises(BadFeatures, match="numbers of tokens"):
        validate(kimi_request(), known_hashes=["0" * 64])  # type: ignore[arg-type]


def test_a_placeholder_without_a_picture_is_refused() -> None:
    text = {"token_ids": [1, PAD, 2], "sampling_params": {}}
    with pytest.raises(BadPlaceholder, match="1 placeholders"):
        validate(text, placeholder_id=PAD)
    with pytest.raises(BadPlaceholder):
        generate_request([1, PAD], None, {}, placeholder_id=PAD)
    validate(text)  # nobody said what a placeholder is
    validate({**text, "token_ids": [1, 2]}, placeholder_id=PAD)


def test_a_refusal_quotes_no_more_than_a_line() -> None:
    request = kimi_request()
    request["token_ids"][3] = "A" * 400_000
    with pytest.raises(UnsafeRequest) as caught:
        validate(request)
    assert len(str(caught.value)) < 400


@pytest.mark.parametrize("name", MALFORMED)
def test_a_malformed_request_is_refused_with_the_reason(name: str) -> None:
    change, error, message = MALFORMED[name]
    request = kimi_request()
    change(request)
    with pytest.raises(error, match=message) as caught:
        validate(request)
    assert str(caught.value).startswith(caught.value.field)


@pytest.mark.parametrize("name", NEMOTRON_MALFORMED)
def test_a_malformed_nemotron_item_is_refused_with_the_reason(name: str) -> None:
    change, error, message = NEMOTRON_MALFORMED[name]
    request = nemotron_request()
    in_item(change, "image")(request)
    with pytest.raises(error, match=message):
        validate(request, NEMOTRON)


def test_placeholders_that_cover_the_tokens_around_a_picture_are_refused() -> None:
    request = nemotron_request()
    span = request["features"]["mm_placeholders"]["image"][0]
    span["offset"] -= 1
    span["length"] += 2
    with pytest.raises(BadPlaceholder, match="other than the placeholder"):
        validate(request, NEMOTRON, placeholder_id=PAD)


def test_raw_bytes_for_an_engine_that_does_not_normalise_are_refused() -> None:
    with pytest.raises(WrongElements, match="not normalised, and nobody would do it"):
        validate(kimi_request(), SENDER)


def test_the_slices_of_all_items_are_taken_as_the_engine_s_own_renderer_writes_them() -> None:
    request = kimi_request()
    both = [[[0, 8, None]], [[8, 24, None]]]
    for index in range(2):
        in_item(at("pixel_values/field/1/slices", both), index=index)(request)
    validate(request)
    in_item(at("pixel_values/field/1/slices", [[[0, 16, None]], [[16, 24, None]]]))(request)
    with pytest.raises(BadTensor, match="slices tell 16 patches, the grid 8"):
        validate(request)


def test_a_known_hash_must_have_as_many_tokens_as_its_range() -> None:
    request = kimi_request()
    request["features"]["kwargs_data"][CHUNK][0] = None
    request["features"]["mm_metadata"] = None
    name = request["features"]["mm_hashes"][CHUNK][0]
    validate(request, known_hashes={name: 2})
    with pytest.raises(BadPlaceholder, match="2 placeholders for 3 embeddings"):
        validate(request, known_hashes={name: 3})


def test_metadata_does_not_stand_for_tensors() -> None:
    request = kimi_request()
    request["features"]["kwargs_data"][CHUNK][0] = None
    name = request["features"]["mm_hashes"][CHUNK][0]
    with pytest.raises(BadFeatures, match="encoder elsewhere"):
        validate(request, known_hashes={name: 2})


ORIGINALS = {
    "kimi": (kimi_request(), KIMI, "uint8"),
    "kimi, normalised": (kimi_request("bfloat16"), SENDER, "bfloat16"),
    "nemotron": (nemotron_request(), NEMOTRON, "bfloat16"),
}
ODD_VALUES: list[Any] = [
    *(None, True, False, 0, 1, -1, 2, 3, 7, 2**31, 2**63 - 1, -(2**63), 0.5, "", "x", b"", b"x"),
    *([], {}, [0], [[0, 8, None]], "uint8", "bfloat16", "int64", "flat", "batched", "image"),
    *(msgpack.ExtType(1, b"x"), msgpack.ExtType(2, b"x"), msgpack.ExtType(3, b"")),
    msgpack.ExtType(3, struct.pack("<3q", 1, 4, 2)),
]


def mutate(value: Any, chance: random.Random) -> Any:
    """The value with something small changed, somewhere in it."""
    if isinstance(value, dict) and value and chance.random() < 0.9:
        key = chance.choice(list(value))
        what = chance.random()
        if what < 0.1:
            value.pop(key)
        elif what < 0.2:
            value[chance.choice(["image", "vision_chunk", "video", "x", "data"])] = value[key]
        else:
            value[key] = mutate(value[key], chance)
        return value
    if isinstance(value, list) and value and chance.random() < 0.9:
        place = chance.randrange(len(value))
        what = chance.random()
        if what < 0.1:
            value.pop(place)
        elif what < 0.2:
            value.insert(place, copy.deepcopy(chance.choice(value)))
        elif what < 0.3:
            other = chance.randrange(len(value))
            value[place], value[other] = value[other], value[place]
        else:
            value[place] = mutate(value[place], chance)
        return value
    if isinstance(value, msgpack.ExtType) and chance.random() < 0.7:
        data = bytearray(value.data)
        place = chance.randrange(len(data) or 1)
        if chance.random() < 0.5:
            data[place : place + 1] = chance.randbytes(chance.randrange(3))
        return msgpack.ExtType(chance.choice([1, 2, 3, 3, 3, 4]), bytes(data))
    if type(value) is int and chance.random() < 0.7:
        return value + chance.choice([-2, -1, 1, 2, value, -value])
    return copy.deepcopy(chance.choice(ODD_VALUES))


def texts_of(request: Request) -> list[tuple[list[Any], int]]:
    """Where serialized items stand, as far as the request still has the form of one."""
    features = request.get("features")
    found = []
    for name in ("kwargs_data", "mm_metadata"):
        lists = features.get(name) if isinstance(features, dict) else None
        for items in lists.values() if isinstance(lists, dict) else ():
            if isinstance(items, list):
                found += [(items, i) for i, text in enumerate(items) if isinstance(text, str)]
    return found


def mutated(request: Request, chance: random.Random) -> Request:
    """Changed as JSON, inside a decoded item, or in an item's bytes or characters."""
    request = copy.deepcopy(request)
    for _ in range(chance.choice([1, 1, 1, 2, 3])):
        places = texts_of(request)
        where = chance.random()
        if where < 0.3 or not places:
            request = mutate(request, chance)
            if not isinstance(request, dict):
                return {"token_ids": [1], "sampling_params": {}, "features": request}
            continue
        items, index = chance.choice(places)
        try:
            packed = base64.b64decode(items[index])
            if where < 0.8:
                item = mutate(msgpack.unpackb(packed), chance)
                items[index] = repack(item)
                continue
        except Exception:  # noqa: S112, BLE001 - mutated twice, or beyond what msgpack can write
            continue
        raw = bytearray(packed)
        if raw and where < 0.95:
            # Most of the bytes are pixels; the head is where it hurts.
            raw[chance.randrange(min(len(raw), 200))] ^= 1 << chance.randrange(8)
            items[index] = base64.b64encode(raw).decode()
        else:
            place = chance.randrange(len(items[index]) + 1)
            items[index] = items[index][:place] + chance.choice("A=-\n!") + items[index][place:]
    return request


@pytest.mark.parametrize("name", ORIGINALS)
def test_of_a_thousand_mutated_requests_none_reaches_the_engine_malformed(name: str) -> None:
    request, engine, dtype = ORIGINALS[name]
    chance = random.Random(name)
    refused = fatal = 0
    for _ in range(1000):
        changed = mutated(request, chance)
        try:
            validate(changed, engine)
        except UnsafeRequest:
            refused += 1
        else:
            engine_rules.check(changed, dtype)
        try:
            engine_rules.check(changed, dtype)
        except (engine_rules.Fatal, KeyError, TypeError, AttributeError, ValueError):
            fatal += 1
    assert fatal > 500
    assert refused >= fatal


@pytest.mark.parametrize("name", ORIGINALS)
@settings(max_examples=200, deadline=None)
@given(chance=st.randoms(use_true_random=False))
def test_mutated_requests_that_are_searched_for_are_refused(
    name: str, chance: random.Random
) -> None:
    request, engine, dtype = ORIGINALS[name]
    changed = mutated(request, chance)
    try:
        validate(changed, engine)
    except UnsafeRequest:
        return
    engine_rules.check(changed, dtype)


@settings(max_examples=200, deadline=None)
@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(max_size=4),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(
                st.sampled_from(["token_ids", "features", "mm_hashes", CHUNK, "x"]),
                inner,
                max_size=4,
            )
        ),
        max_leaves=20,
    )
)
def test_garbage_is_refused_and_raises_nothing_else(features: Any) -> None:
    if features is None:
        return
    request = {"token_ids": [1], "sampling_params": {}, "features": features}
    with pytest.raises(UnsafeRequest):
        validate(json.loads(json.dumps(request)))
