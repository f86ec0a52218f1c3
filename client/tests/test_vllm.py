"""Requests to an engine: built equal to the engine's own, and without a way to be wrong."""

import base64
import itertools
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import msgpack
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from patchmill_client import (
    BadFeatures,
    BadPlaceholder,
    Batch,
    Dtype,
    NormalizedTwice,
    WrongElements,
)
from patchmill_client.vllm import (
    KIMI,
    NEMOTRON,
    Engine,
    NormalizedBy,
    Range,
    expand_placeholders,
    features,
    generate_request,
)
from tests import engine_rules
from tests.packer import fields, pack, uncut

GOLDEN: dict[str, Any] = json.loads(
    (Path(__file__).parent / "golden" / "vllm" / "kimi_items.json").read_text()
)
ENGINES = {"uint8": KIMI, "bfloat16": Engine(normalized_by=NormalizedBy.SENDER)}
PAD = 163605
SAMPLING = {"temperature": 0, "max_tokens": 4}
CASES = [(name, dtype) for name in GOLDEN for dtype in ENGINES]


def unpacked(text: str) -> Any:
    return msgpack.unpackb(base64.b64decode(text))


def golden_batch(name: str, dtype: str) -> tuple[Batch, Any]:
    """The batch whose elements are those of a golden item, and that item."""
    item = unpacked(GOLDEN[name]["kwargs_data"][dtype])
    t, h, w = memoryview(item["grid_thws"]["data"][2].data).cast("q").tolist()
    answer = fields([(t, h, w)], dtype)
    answer["pixel_values"]["data"] = item["pixel_values"]["data"][2].data
    return Batch.from_bytes(pack(answer)), item


def kimi_batch(*grids: tuple[int, int, int], dtype: str = "uint8") -> Batch:
    return Batch.from_bytes(pack(fields(grids or ((1, 2, 4),), dtype)))


def nemotron_batch(*grids: tuple[int, int, int], dtype: str = "bfloat16") -> Batch:
    patch_px = [16] * len(grids)
    return Batch.from_bytes(pack(uncut(fields(grids, dtype, patch_px))))


@pytest.mark.parametrize(("name", "dtype"), CASES)
def test_an_item_is_the_engine_s_own(name: str, dtype: str) -> None:
    batch, item = golden_batch(name, dtype)
    ranges = [Range(0, batch.items[0].num_tokens)]
    made = features(batch, ranges, engine=ENGINES[dtype])
    assert unpacked(made["kwargs_data"]["vision_chunk"][0]) == item
    metadata = unpacked(made["mm_metadata"]["vision_chunk"][0])
    assert metadata == {"grid_thws": item["grid_thws"]}


def test_a_nemotron_item_has_the_fields_of_the_engine_s_own() -> None:
    batch = nemotron_batch((1, 2, 4), (1, 4, 4))
    made = features(batch, [Range(0, 2), Range(2, 4)], engine=NEMOTRON)
    second = unpacked(made["kwargs_data"]["image"][1])
    pixels = batch.split()[1].data.tobytes()
    cpu = ["batched", {"keep_on_cpu": True}]
    sizes = {"data": [64, 64], "field": cpu}
    tokens = {"data": 4, "field": cpu}
    assert second == {
        "imgs_sizes": sizes,
        "num_tokens_per_image": tokens,
        "pixel_values_flat": {
            "data": ["bfloat16", [3, 64, 64], msgpack.ExtType(3, pixels)],
            "field": ["batched", {"keep_on_cpu": False}],
        },
    }
    assert unpacked(made["mm_metadata"]["image"][1]) == {
        "imgs_sizes": sizes,
        "num_tokens_per_image": tokens,
    }


def test_hashes_are_digests_unless_given() -> None:
    batch = kimi_batch((1, 2, 4), (1, 2, 2))
    ranges = [Range(0, 2), Range(2, 1)]
    made = features(batch, ranges)
    assert made["mm_hashes"] == {"vision_chunk": [item.digest for item in batch.items]}
    assert features(batch, ranges, hashes=["a", "b"])["mm_hashes"] == {"vision_chunk": ["a", "b"]}
    with pytest.raises(BadFeatures, match="1 for 2 items"):
        features(batch, ranges, hashes=["a"])


@pytest.mark.parametrize(
    ("engine", "dtype"),
    [(KIMI, "uint8"), (ENGINES["bfloat16"], "bfloat16"), (NEMOTRON, "bfloat16")],
)
def test_an_engine_tells_what_to_ask_the_service_for(engine: Engine, dtype: str) -> None:
    assert engine.dtype == Dtype(dtype)
    assert Engine(engine.family, NormalizedBy.SENDER, Dtype.FLOAT32).dtype is Dtype.FLOAT32


@pytest.mark.parametrize("dtype", ["bfloat16", "float32", "float16"])
def test_normalised_elements_for_an_engine_that_normalises_are_refused(dtype: str) -> None:
    with pytest.raises(NormalizedTwice, match=r"normalised twice.*no-mm-device-do-normalize"):
        features(kimi_batch(dtype=dtype), [Range(0, 2)])


@pytest.mark.parametrize(
    ("batch", "engine", "message"),
    [
        (kimi_batch(), ENGINES["bfloat16"], "not normalised, and nobody would do it"),
        (kimi_batch(dtype="float32"), ENGINES["bfloat16"], "takes bfloat16"),
        (nemotron_batch((1, 2, 2), dtype="uint8"), NEMOTRON, "not normalised"),
        (kimi_batch(dtype="bfloat16"), NEMOTRON, "needs layout=image"),
        (nemotron_batch((1, 2, 2), dtype="uint8"), KIMI, "needs layout=patches"),
        (nemotron_batch((3, 2, 2)), NEMOTRON, "3 frames or tiles"),
        (kimi_batch((5, 2, 2)), KIMI, "5 frames or tiles"),
        (Batch.from_bytes(pack(fields([(1, 2, 2)], "uint8", [16]))), KIMI, "patches of 16"),
        (
            Batch.from_bytes(pack({**fields([(1, 2, 2)], "uint8"), "order": "merge"})),
            KIMI,
            "expects raster",
        ),
    ],
)
def test_a_batch_that_the_engine_would_misread_is_refused(
    batch: Batch, engine: Engine, message: str
) -> None:
    with pytest.raises(WrongElements, match=message):
        features(batch, [Range(0, item.num_tokens) for item in batch.items], engine=engine)


def test_placeholders_become_as_many_as_there_are_embeddings() -> None:
    batch = kimi_batch((1, 2, 4), (1, 4, 4))
    prompt = expand_placeholders([7, PAD, 8, PAD, 9], PAD, batch)
    assert prompt.token_ids == [7, PAD, PAD, 8, PAD, PAD, PAD, PAD, 9]
    assert prompt.ranges == (Range(1, 2), Range(4, 4))


def test_ids_around_the_copies_lie_outside_the_ranges() -> None:
    prompt = expand_placeholders(
        [7, PAD, 8], PAD, nemotron_batch((1, 2, 4)), start_ids=[1, 2], end_ids=[3]
    )
    assert prompt.token_ids == [7, 1, 2, PAD, PAD, 3, 8]
    assert prompt.ranges == (Range(3, 2),)


@pytest.mark.parametrize("token_ids", [[], [7], [PAD, PAD]])
def test_more_or_fewer_placeholders_than_items_are_refused(token_ids: list[int]) -> None:
    with pytest.raises(BadPlaceholder, match="for 1 items"):
        expand_placeholders(token_ids, PAD, kimi_batch())


@settings(max_examples=100, deadline=None)
@given(
    texts=st.lists(st.lists(st.integers(0, PAD - 1), max_size=5), min_size=2, max_size=4),
    sides=st.lists(st.tuples(st.integers(1, 3), st.integers(1, 3)), min_size=3, max_size=3),
)
def test_any_prompt_with_any_pictures_is_what_an_engine_takes(
    texts: list[list[int]], sides: list[tuple[int, int]]
) -> None:
    batch = kimi_batch(*[(1, 2 * h, 2 * w) for h, w in sides[: len(texts) - 1]])
    token_ids = list(texts[0])
    for text in texts[1:]:
        token_ids += [PAD, *text]
    request = generate_request(token_ids, batch, SAMPLING, placeholder_id=PAD)
    engine_rules.check(json.loads(json.dumps(request)))
    assert [token for token in request["token_ids"] if token != PAD] == [*itertools.chain(*texts)]


@pytest.mark.parametrize("dtype", ENGINES)
def test_a_request_with_frames_and_pictures_is_what_an_engine_takes(dtype: str) -> None:
    batch = kimi_batch((4, 2, 4), (1, 2, 2), dtype=dtype)
    request = generate_request(
        [PAD, 5, PAD], batch, SAMPLING, placeholder_id=PAD, engine=ENGINES[dtype]
    )
    engine_rules.check(request, dtype)


def test_a_nemotron_request_is_what_an_engine_takes() -> None:
    request = generate_request(
        [PAD, 5, PAD],
        nemotron_batch((1, 2, 4), (1, 4, 4)),
        SAMPLING,
        placeholder_id=PAD,
        engine=NEMOTRON,
        start_ids=[1],
        end_ids=[2],
    )
    engine_rules.check(request, "bfloat16")
    assert request["token_ids"][:4] == [1, PAD, PAD, 2]


def test_a_prompt_without_pictures_has_no_features() -> None:
    request = generate_request([1, 2], None, SAMPLING, placeholder_id=PAD)
    assert request == {"token_ids": [1, 2], "sampling_params": SAMPLING}


def test_known_hashes_go_without_tensors() -> None:
    batch = kimi_batch((1, 2, 4), (1, 2, 2))
    known = batch.items[0].digest
    request = generate_request(
        [PAD, PAD], batch, SAMPLING, placeholder_id=PAD, known_hashes=[known]
    )
    for name in ("kwargs_data", "mm_metadata"):
        first, second = request["features"][name]["vision_chunk"]
        assert first is None
        assert second is not None
    engine_rules.check(request, cached={known: 2})


def test_a_prompt_that_brings_placeholders_of_its_own_is_refused() -> None:
    with pytest.raises(BadPlaceholder):
        generate_request([PAD, 1, PAD], kimi_batch(), SAMPLING, placeholder_id=PAD)


def test_without_pybase64_the_request_is_the_same() -> None:
    script = (
        "import sys, json\n"
        "if sys.argv[1] == 'without': sys.modules['pybase64'] = None\n"
        "from tests.test_vllm import kimi_batch, generate_request, PAD, SAMPLING\n"
        "print(json.dumps(generate_request([PAD], kimi_batch(), SAMPLING, placeholder_id=PAD)))\n"
    )
    told = [
        subprocess.run(
            [sys.executable, "-c", script, which],
            cwd=Path(__file__).parents[1],
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for which in ("with", "without")
    ]
    assert told[0] == told[1]
    assert len(told[0]) > 1000
