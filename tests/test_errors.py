"""The error tree: one code a leaf, a status each, short details."""

import re
from collections.abc import Iterator

import pytest

from service.errors import MAX_DETAIL_CHARS, EmptyBody, PatchmillError, at_item


def leaves(root: type[PatchmillError] = PatchmillError) -> Iterator[type[PatchmillError]]:
    below = root.__subclasses__()
    if not below:
        yield root
    for each in below:
        yield from leaves(each)


def test_every_leaf_has_a_code_of_its_own_a_status_and_a_sentence() -> None:
    codes = [leaf.code for leaf in leaves()]
    assert len(set(codes)) == len(codes)
    for leaf in leaves():
        assert re.fullmatch("[a-z0-9_]+", leaf.code)
        assert 400 <= leaf.status < 600
        assert leaf.title.endswith(".")


def test_what_may_go_better_another_time_is_worth_a_retry_and_nothing_else() -> None:
    assert all(
        leaf.retryable is (leaf.status in (408, 429) or leaf.status >= 500) for leaf in leaves()
    )


def test_a_detail_is_cut_to_its_length() -> None:
    assert len(EmptyBody("x" * 1000).detail) == MAX_DETAIL_CHARS


def test_a_fault_inside_an_item_s_block_names_the_item() -> None:
    with pytest.raises(EmptyBody) as refusal, at_item(3):
        raise EmptyBody("")
    assert refusal.value.item == 3
