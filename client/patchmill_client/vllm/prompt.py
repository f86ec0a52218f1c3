"""A prompt's placeholders: one token for each picture becomes as many as it has embeddings.

In come token ids with one placeholder for each item of a batch, out come the
expanded ids and where each item lies in them. Text is not tokenized here.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from patchmill_client.batch import Batch
from patchmill_client.errors import BadPlaceholder


class Range(NamedTuple):
    """The placeholder tokens of an item: `token_ids[offset : offset + length]`."""

    offset: int
    length: int


@dataclass(frozen=True, slots=True)
class Prompt:
    """Expanded token ids, and a range for each item in the batch's order."""

    token_ids: list[int]
    ranges: tuple[Range, ...]


def expand_placeholders(
    token_ids: Sequence[int],
    placeholder_id: int,
    batch: Batch,
    *,
    start_ids: Sequence[int] = (),
    end_ids: Sequence[int] = (),
) -> Prompt:
    """Each `placeholder_id` becomes `num_tokens` copies of itself, item by item.

    `start_ids` and `end_ids` are put around the copies and lie outside the
    ranges: Nemotron's `<img>` and `</img>`, which its chat template leaves out.
    Raises BadPlaceholder when there are more or fewer placeholders than items.
    """
    found = sum(token == placeholder_id for token in token_ids)
    if found != len(batch):
        raise BadPlaceholder(
            "token_ids", f"{found} placeholders {placeholder_id} for {len(batch)} items"
        )
    expanded: list[int] = []
    ranges: list[Range] = []
    items = iter(batch.items)
    for token in token_ids:
        if token != placeholder_id:
            expanded.append(token)
            continue
        count = next(items).num_tokens
        expanded += start_ids
        ranges.append(Range(len(expanded), count))
        expanded += [placeholder_id] * count
        expanded += end_ids
    return Prompt(expanded, tuple(ranges))
