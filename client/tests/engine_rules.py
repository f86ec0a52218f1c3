"""What kills or misleads a vLLM engine, checked the way the engine would run into it.

Written apart from `patchmill_client.vllm`, which it is there to judge: it decodes
a request as loosely as an engine does and then asserts everything that the
engine's model code relies on. It imports nothing of the client.
"""

import base64
import math
from typing import Any

import msgpack
import numpy as np

ITEMSIZES = {"uint8": 1, "bfloat16": 2, "int64": 8}


class Fatal(Exception):
    """An engine would die, refuse, or answer wrongly."""


def need(holds: object, what: str) -> None:
    if not holds:
        raise Fatal(what)


def check(
    request: dict[str, Any], dtype: str = "uint8", cached: dict[str, int] | None = None
) -> None:
    """Raise Fatal unless a Kimi (or with `dtype` bfloat16 and modality image, Nemotron) engine
    computes what was meant. `cached` maps hashes that the engine has to their tokens."""
    tokens = request["token_ids"]
    need(isinstance(tokens, list) and tokens, "no tokens")
    need(all(type(token) is int and token >= 0 for token in tokens), "token ids")
    features = request.get("features")
    if features is None:
        return
    need(not request.get("content_parts"), "content_parts with features")
    hashes, spans = features["mm_hashes"], features["mm_placeholders"]
    need(set(hashes) == set(spans) and len(hashes) == 1, "modalities differ")
    [modality] = hashes
    need(modality in ("vision_chunk", "image"), "unknown modality")
    count = len(hashes[modality])
    need(count > 0 and all(type(name) is str and name for name in hashes[modality]), "hashes")
    need(len(spans[modality]) == count, "placeholders and hashes")
    kwargs = lists(features, "kwargs_data", modality, count)
    metadata = lists(features, "mm_metadata", modality, count)
    covered: list[int] = []
    by_hash: dict[str, Any] = {}
    for index in range(count):
        offset, length = spans[modality][index]["offset"], spans[modality][index]["length"]
        need(type(offset) is int and type(length) is int, "range types")
        need(offset >= 0 and length > 0 and offset + length <= len(tokens), "outside token_ids")
        covered += range(offset, offset + length)
        name, text = hashes[modality][index], kwargs[index]
        need(by_hash.setdefault(name, text) == text, "one hash, two contents")
        if text is None:
            need(name in (cached or {}), "null for an unknown hash")
            need(length == (cached or {})[name], "placeholders and cached embeddings")
            need(metadata[index] is None, "metadata alone")
            continue
        item = decode(text)
        if metadata[index] is not None:
            item = {**item, **decode(metadata[index])}
        embeddings = (kimi if modality == "vision_chunk" else nemotron)(item, dtype)
        need(length == embeddings, "placeholders and embeddings")
    need(len(covered) == len(set(covered)), "ranges overlap")
    kinds = {tokens[place] for place in covered}
    need(len(kinds) == 1, "a range covers text")
    rest = set(range(len(tokens))) - set(covered)
    need(not any(tokens[place] in kinds for place in rest), "placeholders without an item")


def lists(features: dict[str, Any], name: str, modality: str, count: int) -> list[Any]:
    found = features.get(name)
    if found is None:
        return [None] * count
    need(set(found) == {modality} and len(found[modality]) == count, name)
    return list(found[modality])


def decode(text: Any) -> dict[str, Any]:
    need(type(text) is str, "an item is text")
    try:
        item = msgpack.unpackb(base64.b64decode(text))
    except Exception as error:
        raise Fatal(f"undecodable: {error}") from error
    need(type(item) is dict, "an item is a map")
    return {name: value(element) for name, element in item.items()}


def value(element: Any) -> tuple[Any, Any, Any]:
    """(data, kind, options), a tensor as (dtype, array of its bytes by shape)."""
    need(type(element) is dict and set(element) == {"data", "field"}, "element")
    data = element["data"]
    need(type(element["field"]) is list and len(element["field"]) == 2, "field")
    kind, options = element["field"]
    need(kind in ("flat", "batched") and type(options) is dict, "kind of field")
    need(type(options.get("keep_on_cpu")) is bool, "keep_on_cpu")
    if type(data) is list and data and type(data[0]) is str:
        need(len(data) == 3, "a tensor has three parts")
        dtype, shape, raw = data
        need(dtype in ITEMSIZES, "dtype")
        need(isinstance(raw, msgpack.ExtType) and raw.code == 3, "raw view")
        need(type(shape) is list and all(type(side) is int for side in shape), "shape")
        need(all(side > 0 for side in shape), "empty")
        need(math.prod(shape) * ITEMSIZES[dtype] == len(raw.data), "bytes")
        array = np.frombuffer(raw.data, np.uint8).reshape(*shape, ITEMSIZES[dtype])
        data = (dtype, array)
    return data, kind, options


def kimi(item: dict[str, Any], wanted: str) -> int:
    need(set(item) == {"grid_thws", "pixel_values"}, "fields")
    (dtype, raw), kind, options = tensor(item["grid_thws"])
    need(dtype == "int64" and raw.shape == (3, 8), "grid's type")
    need(kind == "batched" and set(options) == {"keep_on_cpu"}, "grid's field")
    t, h, w = (int(each) for each in raw.copy().view("<i8").reshape(3))
    need(1 <= t <= 4 and 1 <= h <= 512 and 1 <= w <= 512, "grid's range")
    need(h % 2 == 0 and w % 2 == 0, "grid and merge")
    (dtype, raw), kind, options = tensor(item["pixel_values"])
    need(dtype == wanted, "normalised twice or never")
    need(raw.shape[:-1] == (t * h * w, 3, 14, 14), "patches and grid")
    need(kind == "flat" and set(options) == {"keep_on_cpu", "slices", "dim"}, "flat")
    need(type(options["dim"]) is int and options["dim"] == 0, "dim")
    need(options["keep_on_cpu"] is False and item["grid_thws"][2]["keep_on_cpu"], "place")
    slices = options["slices"]
    need(type(slices) is list and slices, "slices")
    for each in slices:
        need(type(each) is list and len(each) == 1, "a slice for each dim")
        need(type(each[0]) is list and len(each[0]) == 3, "a slice has three parts")
        start, stop, step = each[0]
        need(type(start) is int and type(stop) is int and step is None, "a slice's types")
    need(any(each[0][1] - each[0][0] == t * h * w for each in slices), "slices and grid")
    return (h // 2) * (w // 2)


def nemotron(item: dict[str, Any], wanted: str) -> int:
    need(set(item) == {"imgs_sizes", "num_tokens_per_image", "pixel_values_flat"}, "fields")
    for _, kind, options in item.values():
        need(kind == "batched" and set(options) == {"keep_on_cpu"}, "batched")
    size = item["imgs_sizes"][0]
    need(type(size) is list and len(size) == 2, "size")
    need(all(type(side) is int and side > 0 and side % 32 == 0 for side in size), "size's sides")
    tokens = (size[0] // 32) * (size[1] // 32)
    told = item["num_tokens_per_image"][0]
    need(type(told) is int and told == tokens, "tokens and size")
    (dtype, raw), _, options = tensor(item["pixel_values_flat"])
    need(dtype == wanted == "bfloat16", "pixels' type")
    need(raw.shape[:-1] == (3, *size), "pixels and size")
    need(options["keep_on_cpu"] is False, "place")
    need(item["imgs_sizes"][2]["keep_on_cpu"], "place")
    need(item["num_tokens_per_image"][2]["keep_on_cpu"], "place")
    return int(tokens)


def tensor(element: tuple[Any, Any, Any]) -> tuple[Any, Any, Any]:
    need(type(element[0]) is tuple, "a tensor")
    return element
