"""Every reference vector, over real HTTP: the bytes are the contract."""

import hashlib

import msgpack
import numpy as np
import pytest

from service.types import Dtype
from tests.golden_data import CHUNKS, IMAGES, PICTURES, Vector
from tests.service.running import Running, unpack


@pytest.mark.parametrize("dtype", Dtype)
@pytest.mark.parametrize("vector", PICTURES, ids=str)
def test_a_picture_becomes_the_bytes_of_the_reference(
    service: Running, vector: Vector, dtype: Dtype
) -> None:
    answer = service.post(vector.data, params={"model": vector.model, "dtype": dtype.value})
    assert answer.status_code == 200, answer.text
    head, data = unpack(answer.content)
    item = head["items"][0]
    assert item["grid_thw"] == vector.facts["grid_thw"]
    assert item["num_tokens"] == vector.facts["tokens"]
    assert head["pixel_values"]["shape"] == vector.facts["shape"] == item["shape"]
    assert [item["source"]["height"], item["source"]["width"]] == vector.facts["size_hw"]
    if dtype is Dtype.UINT8 and "first_patch_row_uint8" in vector.facts:
        patches = np.frombuffer(data, np.uint8).reshape(item["shape"])
        assert patches[0, :, 0].tolist() == vector.facts["first_patch_row_uint8"]
    assert hashlib.sha256(data).hexdigest() == vector.facts["sha256"][dtype.value]


def test_the_video_chunks_become_the_bytes_of_the_reference(service: Running) -> None:
    items = [
        {
            "type": "video_chunk",
            "frames": [(IMAGES / name).read_bytes() for name in chunk["frames"]],
        }
        for chunk in CHUNKS.values()
    ]
    body = msgpack.packb({"items": items, "dtype": "uint8"})
    answer = service.post(body, headers={"Content-Type": "application/msgpack"})
    assert answer.status_code == 200, answer.text
    head, data = unpack(answer.content)
    for item, chunk in zip(head["items"], CHUNKS.values(), strict=True):
        share = data[item["offset_bytes"] :][: item["length_bytes"]]
        assert item["grid_thw"] == chunk["grid_thw"]
        assert item["num_tokens"] == chunk["tokens"]
        assert item["shape"] == chunk["shape"]
        assert hashlib.sha256(share).hexdigest() == chunk["sha256_uint8"]


@pytest.mark.parametrize("dtype", Dtype)
@pytest.mark.parametrize("name", ["photo.jpg", "37x19.png", "1280x720.jpg"])
def test_the_same_bytes_can_come_token_by_token_or_not_cut(
    service: Running, name: str, dtype: Dtype
) -> None:
    [vector] = [each for each in PICTURES if (each.model, each.name) == ("kimi-k2.5", name)]
    [_, h, w] = vector.facts["grid_thw"]
    storage = np.uint16 if dtype.itemsize_bytes == 2 else np.dtype(dtype.value)
    asked = {"model": vector.model, "dtype": dtype.value}
    for wanted, restore in (
        ({"order": "merge"}, lambda data: data.reshape(h // 2, w // 2, 2, 2, 588)),
        ({"layout": "image"}, lambda data: data.reshape(3, h, 14, w, 14)),
    ):
        head, data = unpack(service.post(vector.data, params={**asked, **wanted}).content)
        elements = restore(np.frombuffer(data, storage))
        axes = (0, 2, 1, 3, 4) if "order" in wanted else (1, 3, 0, 2, 4)
        raster = elements.transpose(axes).tobytes()
        assert hashlib.sha256(raster).hexdigest() == vector.facts["sha256"][dtype.value]
        assert head["imgs_sizes"] == [[h * 14, w * 14]]
