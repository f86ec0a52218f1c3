"""The real service: the reference vectors, every form of body, every refusal, every fault."""

import base64
import hashlib
import io
import itertools
import json
import random
import socket
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import msgpack
import numpy as np
import pytest

import patchmill_client as pc
from patchmill_client.batch import Batch
from patchmill_client.inputs import Source
from patchmill_client.orders import to_merge
from patchmill_client.values import Expected
from patchmill_client.vllm import KIMI, NEMOTRON, Engine, Range, features, validate
from tests import peer as peers
from tests import test_mutations as mutations
from tests.peer import peer
from tests.service_process import ROOT, Service, interpreter, running

pytestmark = [
    pytest.mark.service,
    pytest.mark.skipif(interpreter() is None, reason="no Python here can run the service"),
]

GOLDEN = ROOT / "tests" / "golden"
IMAGES = GOLDEN / "images"
VECTORS: dict[str, Any] = (
    json.loads((GOLDEN / "kimi" / "patches.json").read_text()) if GOLDEN.exists() else {}
)
MODELS = {"kimi_k25": "kimi-k2.5", "kimi_k3": "moonshotai/Kimi-K3"}
PICTURES = [(MODELS[family], name) for family in MODELS for name in VECTORS.get(family, {})]
FEW = ["37x19.png", "500x333.png", "exif6.jpg", "palette_trns.png", "1x1.png"]
Connect = Callable[..., Any]


@pytest.fixture(scope="module")
def service() -> Iterator[Service]:
    with running() as started:
        yield started
        assert "Traceback" not in "".join(started.log)


@pytest.fixture(scope="module")
def client(service: Service) -> Iterator[pc.Client]:
    with pc.Client(service.url) as made:
        yield made


def facts(model: str, name: str) -> dict[str, Any]:
    [family] = [family for family, named in MODELS.items() if named == model]
    found: dict[str, Any] = VECTORS[family][name]
    return found


def check(batch: Batch, wanted: dict[str, Any], dtype: str) -> None:
    """One item, equal to the reference bit by bit."""
    [item] = batch.items
    assert list(item.grid_thw) == wanted["grid_thw"]
    assert list(batch.shape) == wanted["shape"]
    assert item.num_tokens == wanted["tokens"]
    assert batch.dtype == dtype
    assert hashlib.sha256(batch.numpy().tobytes()).hexdigest() == wanted["sha256"][dtype]
    assert batch.numpy().ctypes.data == batch.data.ctypes.data


def sha256(values: Any) -> str:
    """Of the elements of an array or a tensor."""
    if not isinstance(values, np.ndarray):
        import torch

        values = values.contiguous().view(torch.uint8).numpy()
    return hashlib.sha256(values.tobytes()).hexdigest()


@pytest.mark.parametrize("dtype", pc.Dtype)
@pytest.mark.parametrize(("model", "name"), PICTURES)
def test_every_vector_in_every_dtype(
    client: pc.Client, model: str, name: str, dtype: pc.Dtype
) -> None:
    batch = client.preprocess(IMAGES / name, model=model, dtype=dtype)
    check(batch, facts(model, name), dtype)
    assert batch.data.ctypes.data % 64 == 0


@pytest.mark.parametrize(("model", "name"), PICTURES)
def test_every_vector_normalised_here(client: pc.Client, model: str, name: str) -> None:
    batch = client.preprocess(IMAGES / name, model=model, dtype="uint8")
    for dtype in ("float32", "float16", "bfloat16"):
        assert sha256(batch.normalize(dtype=dtype)) == facts(model, name)["sha256"][dtype]


@pytest.mark.parametrize("dtype", pc.Dtype)
@pytest.mark.parametrize("form", ["raw", "multipart", "msgpack", "json"])
def test_every_form_of_body_in_every_dtype(
    service: Service, connect: Connect, form: str, dtype: pc.Dtype
) -> None:
    client = connect(service.url)
    paths = [IMAGES / name for name in FEW]
    groups = [[path] for path in paths] if form == "raw" else [paths]
    batches = [client.preprocess(group, form=form, dtype=dtype) for group in groups]
    parts = [part for batch in batches for part in batch.split()]
    for part, name in zip(parts, FEW, strict=True):
        check(part, facts("kimi-k2.5", name), dtype)


@pytest.mark.parametrize("dtype", pc.Dtype)
def test_every_chunk_of_frames_in_every_dtype(client: pc.Client, dtype: pc.Dtype) -> None:
    for wanted in VECTORS["kimi_k25_video"].values():
        sources: list[Source] = [[IMAGES / frame for frame in wanted["frames"]], IMAGES / "1x1.png"]
        chunk, picture = client.preprocess(sources, dtype=dtype).split()
        assert chunk.items[0].type is pc.ItemType.VIDEO_CHUNK
        # The vectors have the chunk as uint8 alone; the other types are that, normalised.
        pixels = client.preprocess(sources, dtype="uint8").split()[0]
        hashes = {"uint8": wanted["sha256_uint8"]}
        if dtype is not pc.Dtype.UINT8:
            hashes[dtype] = sha256(pixels.normalize(dtype=dtype))
        check(chunk, {**wanted, "sha256": hashes}, dtype)
        check(pixels, {**wanted, "sha256": hashes}, "uint8")
        check(picture, facts("kimi-k2.5", "1x1.png"), dtype)


def test_an_image_of_pillow_and_its_file_are_the_same_picture(client: pc.Client) -> None:
    images = pytest.importorskip("PIL.Image", reason="Pillow is not installed")
    for name in ("37x19.png", "exif6.jpg", "exif6.png", "rgba.png", "la.png", "palette_trns.png"):
        with images.open(IMAGES / name) as image:
            check(client.preprocess(image), facts("kimi-k2.5", name), "float32")


def test_models_info_and_ready(service: Service, connect: Connect) -> None:
    client = connect(service.url)
    assert client.ready() is True
    assert client.models()["default"] == "kimi-k2.5"
    assert client.info()["wire_version"] == 1


# what the service refuses


@pytest.mark.parametrize(
    ("sources", "options", "kind", "code", "item"),
    [
        (b"no picture", {}, pc.Unsupported, "unsupported_format", 0),
        ([IMAGES / "1x1.png", b"no picture"], {}, pc.Unsupported, "unsupported_format", 1),
        (IMAGES / "1x1.png", {"model": "none"}, pc.Unprocessable, "unknown_model", None),
        (IMAGES / "1x1.png", {"background": "red"}, pc.Unprocessable, "bad_parameter", None),
        ([[IMAGES / "1x1.png", IMAGES / "37x19.png"]], {}, pc.Unprocessable, "frames_differ", 0),
        ([IMAGES / "1x1.png"] * 65, {}, pc.Unprocessable, "too_many_items", None),
        (bytes(65 << 20), {}, pc.BodyTooLarge, "body_too_large", None),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_refusals_become_errors_with_their_facts(
    service: Service,
    connect: Connect,
    sources: Any,
    options: dict[str, str],
    kind: type[pc.Refusal],
    code: str,
    item: int | None,
) -> None:
    with pytest.raises(kind) as refusal:
        connect(service.url).preprocess(sources, request_id="mine", **options)
    assert (refusal.value.code, refusal.value.item) == (code, item)
    assert refusal.value.request_id == "mine"
    assert refusal.value.attempts == 1
    if code.startswith("too_"):
        assert (refusal.value.limit, refusal.value.actual) == (64, 65)
        assert refusal.value.setting == "PATCHMILL_MAX_ITEMS"


def test_an_answer_over_this_client_s_limit_is_refused(service: Service, connect: Connect) -> None:
    client = connect(service.url, max_answer_bytes=1_000_000)
    with pytest.raises(pc.AnswerOverLimit) as refusal:
        client.preprocess(IMAGES / "500x333.png")
    assert refusal.value.limit < refusal.value.actual
    assert client.preprocess(IMAGES / "37x19.png").shape == (8, 3, 14, 14)


# damaged answers


class Kept:
    """An answer of the service as bytes, to be damaged."""

    def __init__(self, service: Service, items: list[bytes], dtype: str) -> None:
        import httpx
        import msgpack

        packed = msgpack.packb({"items": [{"type": "image", "data": each} for each in items]})
        answer = httpx.post(
            f"{service.url}/preprocess?dtype={dtype}",
            content=packed,
            headers={"Content-Type": "application/msgpack"},
            trust_env=False,
        )
        self.body = answer.content
        self.expected = Expected((pc.ItemType.IMAGE,) * len(items), pc.Dtype(dtype))


def test_damaged_answers_of_the_service_are_refused_or_sound(service: Service) -> None:
    chance = random.Random(7)
    pictures = [(IMAGES / name).read_bytes() for name in FEW[:1] + FEW[-1:]]
    for dtype in pc.Dtype:
        kept = Kept(service, pictures, dtype)
        honest = mutations.read(kept.body, kept.expected)
        assert honest is not None
        head_bytes = len(kept.body) - len(honest.data)
        for _ in range(400):
            damaged = bytearray(kept.body)
            for _ in range(chance.randint(1, 6)):
                damaged[chance.randrange(head_bytes)] = chance.randrange(256)
            mutations.check(bytes(damaged), kept.expected)
        for place in range(head_bytes):
            damaged = bytearray(kept.body)
            damaged[place] ^= 1 << chance.randrange(8)
            mutations.check(bytes(damaged), kept.expected)
            assert mutations.read(kept.body[:place], kept.expected) is None


# a service that is slow, restarts, and is too busy


def expected_hashes(count: int) -> tuple[list[Path], list[str]]:
    """Pictures in a mixed order, and what each must come back as."""
    names = [name for _, name in zip(range(count), itertools.cycle(FEW), strict=False)]
    hashes = [facts("kimi-k2.5", name)["sha256"]["uint8"] for name in names]
    return [IMAGES / name for name in names], hashes


def test_a_slow_service_loses_and_doubles_nothing(connect: Connect) -> None:
    sources, hashes = expected_hashes(20)
    slow = {"PATCHMILL_KERNEL": "numpy", "PATCHMILL_THREADS": "1"}
    with running(slow) as service:
        found = [
            sha256(outcome.result().numpy())
            for outcome in connect(service.url).map(sources, dtype="uint8", concurrency=8)
        ]
    assert found == hashes


@pytest.mark.parametrize("signal_name", ["terminate", "kill"])
def test_a_service_that_restarts_loses_and_doubles_nothing(signal_name: str) -> None:
    sources, hashes = expected_hashes(40)
    patient = pc.RetryPolicy(attempts=1000, base_s=0.05, cap_s=0.2, deadline_s=170)
    python = interpreter()
    assert python
    first = Service(python, {}, 0)
    first.wait_until_ready()
    replacement: list[Service] = []

    def restart() -> None:
        first.stop(signal_name)
        replacement.append(Service(python, {}, first.port))

    found: list[str] = []
    restarter = threading.Thread(target=restart)
    try:
        with pc.Client(first.url, retry=patient) as client:
            for outcome in client.map(sources, dtype="uint8", concurrency=4):
                found.append(sha256(outcome.result().numpy()))
                if outcome.index == 5:
                    restarter.start()
    finally:
        restarter.join()
        for service in replacement:
            service.stop()
    assert found == hashes


def test_a_busy_service_behind_a_bad_network_loses_and_doubles_nothing(
    service: Service, connect: Connect
) -> None:
    """Every other request is turned away or cut by what stands before the service."""
    sources, hashes = expected_hashes(60)
    busy = peers.problem(429, b'{"code": "queue_full", "retryable": true}', {"Retry-After": "1"})

    def relayed(connection: socket.socket, seen: peers.Seen, share: float = 1.0) -> bool:
        """The service's own answer, or the first part of it."""
        fixed = {name: seen.headers[name] for name in ("content-type", "x-request-id")}
        lines = [seen.line, "Host: service", "Connection: close"]
        lines += [f"{name}: {value}" for name, value in fixed.items()]
        lines.append(f"Content-Length: {len(seen.body)}")
        with socket.create_connection(("127.0.0.1", service.port)) as there:
            there.sendall("\r\n".join(lines).encode() + b"\r\n\r\n" + seen.body)
            received = io.BytesIO()
            while piece := there.recv(1 << 16):
                received.write(piece)
        answer = received.getvalue()
        connection.sendall(answer[: int(len(answer) * share)])
        return False

    def cut_in_the_middle(connection: socket.socket, seen: peers.Seen) -> bool:
        return relayed(connection, seen, share=0.5)

    faults = itertools.cycle([busy, peers.hang_up, cut_in_the_middle])
    count = itertools.count()
    lock = threading.Lock()

    def every_other(connection: socket.socket, seen: peers.Seen) -> bool:
        with lock:
            step = next(faults) if next(count) % 2 else relayed
        return step(connection, seen)

    patient = pc.RetryPolicy(attempts=100, deadline_s=10**6)
    with peer(every_other) as there:
        outcomes = list(connect(there.url, retry=patient).map(sources, dtype="uint8"))
        assert len(there.seen) > len(sources)
    assert [outcome.index for outcome in outcomes] == list(range(60))
    assert [sha256(outcome.result().numpy()) for outcome in outcomes] == hashes


@pytest.mark.parametrize("model", ["kimi-k2.5", "nemotron-nano-vl"])
def test_the_same_elements_come_token_by_token_or_not_cut(client: pc.Client, model: str) -> None:
    paths = [IMAGES / "photo.jpg", IMAGES / "37x19.png"]
    raster = client.preprocess(paths, model=model)
    merged = client.preprocess(paths, model=model, order="merge")
    assert np.array_equal(to_merge(raster.numpy(), raster.grid_thws, 2), merged.numpy())
    whole = client.preprocess(paths, model=model, layout="image")
    assert whole.imgs_sizes == raster.imgs_sizes
    for cut, picture in zip(raster.split(), whole.split(), strict=True):
        [(_, h, w)] = cut.grid_thws
        patches = cut.numpy().reshape(h, w, *cut.shape[1:]).transpose(2, 0, 3, 1, 4)
        assert np.array_equal(patches.reshape(picture.shape), picture.numpy())


def test_a_budget_is_the_request_s_own(client: pc.Client) -> None:
    small = client.preprocess(
        IMAGES / "photo.jpg",
        model="nemotron-nano-vl",
        max_model_len=4096,
        text_len=96,
        min_num_patches=64,
        max_num_patches=128,
    )
    assert 64 <= small.items[0].num_patches <= 128
    with pytest.raises(pc.Unprocessable) as refusal:
        client.preprocess(IMAGES / "photo.jpg", text_len=1)
    assert refusal.value.code == "bad_parameter"
    with pytest.raises(pc.InvalidInput):
        client.preprocess(IMAGES / "photo.jpg", layout="tiles")
    with pytest.raises(pc.InvalidInput):
        client.preprocess(IMAGES / "photo.jpg", order="spiral")


def test_tiles_are_one_item(client: pc.Client) -> None:
    batch = client.preprocess(
        IMAGES / "500x333.png", model="nemotron-nano-vl-tiles", layout="image", dtype="bfloat16"
    )
    assert batch.numpy().shape == (7, 3, 512, 512)
    assert batch.items[0].resized == (1024, 1536)
    assert batch.imgs_sizes == ((512, 512),)


@pytest.mark.parametrize("engine", [KIMI, NEMOTRON], ids=["kimi", "nemotron"])
def test_the_service_writes_the_features_that_the_client_builds(
    client: pc.Client, service: Service, engine: Engine
) -> None:
    model = "kimi-k2.5" if engine is KIMI else "nemotron-nano-vl"
    names = ["photo.jpg", "37x19.png", "rgba.png"]
    layout = engine.traits.layout
    paths = [IMAGES / name for name in names]
    batch = client.preprocess(paths, model=model, dtype=engine.dtype, layout=layout)
    made = features(batch, [Range(0, item.num_tokens) for item in batch.items], engine=engine)
    answer = httpx.post(
        f"{service.url}/preprocess",
        params={"format": "vllm", "model": model},
        files=[("images", path.read_bytes()) for path in paths],
    ).json()
    assert answer["mm_hashes"] == made["mm_hashes"]
    assert answer["num_tokens"] == [item.num_tokens for item in batch.items]
    for key in ("kwargs_data", "mm_metadata"):
        assert answer[key].keys() == made[key].keys() == {answer["modality"]}
        sides = (side[key][answer["modality"]] for side in (answer, made))
        for theirs, ours in zip(*sides, strict=True):
            assert decoded(theirs) == decoded(ours)
    spans, end = [], 0
    for tokens in answer["num_tokens"]:
        spans.append({"offset": end, "length": tokens})
        end += tokens
    told = {key: answer[key] for key in ("mm_hashes", "mm_metadata", "kwargs_data")}
    request = {
        "token_ids": [7] * end,
        "sampling_params": {},
        "features": told | {"mm_placeholders": {answer["modality"]: spans}},
    }
    validate(request, engine)


def test_digests_are_the_engine_s_own_hashes_when_its_model_is_named(
    service: Service, connect: Connect
) -> None:
    hashes = json.loads((GOLDEN / "vllm" / "hashes.json").read_text())
    names = ["photo.jpg", "rgba.png"]
    for model, form in (("kimi-k2.5", "vision_chunk"), ("nemotron-nano-vl", "image")):
        batch = connect(service.url).preprocess(
            [IMAGES / name for name in names], model=model, model_id=hashes["model_id"]
        )
        assert [item.digest for item in batch.items] == [hashes["hashes"][n][form] for n in names]


def decoded(text: str) -> Any:
    return msgpack.unpackb(base64.b64decode(text))


def test_a_service_with_keys_answers_those_who_have_one(connect: Connect) -> None:
    key = "a-key-for-the-client"
    with running({"PATCHMILL_API_KEYS": key}) as locked:
        stranger, caller = connect(locked.url), connect(locked.url, api_key=key)
        assert stranger.ready()
        with pytest.raises(pc.Unauthorized) as caught:
            stranger.preprocess(IMAGES / FEW[0])
        assert caught.value.code == "unauthorized"
        assert caller.preprocess(IMAGES / FEW[0]).model == "kimi-k2.5"
        assert key not in "".join(locked.log)
