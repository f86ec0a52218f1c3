"""A batch as the JSON that vLLM's `POST /inference/v1/generate` takes.

In come token ids and a binary batch, out comes a dict for `json`. Base64 is
written here, in the last hop to the engine, and nowhere before.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from patchmill_client.batch import Batch
from patchmill_client.errors import BadFeatures
from patchmill_client.vllm.engine import KIMI, Engine
from patchmill_client.vllm.items import fitting, kwargs_item, metadata_item
from patchmill_client.vllm.prompt import Range, expand_placeholders
from patchmill_client.vllm.text import to_base64
from patchmill_client.vllm.validate import validate


def features(
    batch: Batch,
    ranges: Sequence[Range],
    *,
    engine: Engine = KIMI,
    hashes: Sequence[str] | None = None,
    known_hashes: Collection[str] = (),
) -> dict[str, Any]:
    """mm_hashes, mm_placeholders, kwargs_data and mm_metadata of a batch.

    `hashes` None takes the items' digests; an engine takes equal hashes for
    equal pixels and does not look again. An item whose hash is in `known_hashes`
    goes without tensors. Raises WrongElements for a batch that the engine would
    misread, BadFeatures for lists of another length.
    """
    fitting(batch, engine)
    names = [item.digest for item in batch.items] if hashes is None else list(hashes)
    for field, given in (("hashes", names), ("ranges", ranges)):
        if len(given) != len(batch):
            raise BadFeatures(field, f"{len(given)} for {len(batch)} items")
    data: list[str | None] = []
    metadata: list[str | None] = []
    for name, part in zip(names, batch.split(), strict=True):
        known = name in known_hashes
        data.append(None if known else to_base64(kwargs_item(part, engine)))
        metadata.append(None if known else to_base64(metadata_item(part, engine)))
    modality = engine.traits.modality
    return {
        "mm_hashes": {modality: names},
        "mm_placeholders": {modality: [each._asdict() for each in ranges]},
        "kwargs_data": {modality: data},
        "mm_metadata": {modality: metadata},
    }


def generate_request(
    token_ids: Sequence[int],
    batch: Batch | None,
    sampling_params: Mapping[str, Any],
    *,
    placeholder_id: int,
    engine: Engine = KIMI,
    start_ids: Sequence[int] = (),
    end_ids: Sequence[int] = (),
    hashes: Sequence[str] | None = None,
    known_hashes: Collection[str] = (),
) -> dict[str, Any]:
    """A whole, validated request: `token_ids` has one placeholder for each item of the batch.

    `batch` None is a prompt without pictures. Name `max_tokens` in
    `sampling_params`. Add `stream`, `output_mode` and the like to what is
    returned. Raises UnsafeRequest.
    """
    request: dict[str, Any] = {
        "token_ids": list(token_ids),
        "sampling_params": dict(sampling_params),
    }
    known_tokens: dict[str, int] = {}
    if batch is not None:
        prompt = expand_placeholders(
            token_ids, placeholder_id, batch, start_ids=start_ids, end_ids=end_ids
        )
        request["token_ids"] = prompt.token_ids
        made = features(
            batch, prompt.ranges, engine=engine, hashes=hashes, known_hashes=known_hashes
        )
        [names] = made["mm_hashes"].values()
        known_tokens = {
            name: item.num_tokens
            for name, item in zip(names, batch.items, strict=True)
            if name in known_hashes
        }
        request["features"] = made
    validate(request, engine, known_hashes=known_tokens, placeholder_id=placeholder_id)
    return request
