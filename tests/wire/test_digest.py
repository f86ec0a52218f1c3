"""The digest: equal for equal content under an equal policy, and for nothing else."""

import pytest

from service.types import Item, ItemType
from service.wire.digest import digest, policy_text

POLICY = policy_text({"dtype": "uint8", "versions": {"pillow": "13.0.0"}})


def chunk(*frames: bytes) -> Item:
    return Item(ItemType.VIDEO_CHUNK, frames)


DIFFERENT = {
    "other bytes": (POLICY, Item(ItemType.IMAGE, (b"b",))),
    "other policy": (policy_text({"dtype": "float32"}), Item(ItemType.IMAGE, (b"a",))),
    "one frame of a video": (POLICY, chunk(b"a")),
    "two frames": (POLICY, chunk(b"a", b"")),
}


def test_the_digest_does_not_depend_on_the_order_of_the_policy_or_the_kind_of_buffer() -> None:
    turned = policy_text({"versions": {"pillow": "13.0.0"}, "dtype": "uint8"})
    assert digest(POLICY, chunk(b"a", b"b")) == digest(turned, chunk(memoryview(b"a"), b"b"))


@pytest.mark.parametrize(("policy", "item"), DIFFERENT.values(), ids=DIFFERENT)
def test_whatever_changes_the_elements_changes_the_digest(policy: bytes, item: Item) -> None:
    assert digest(policy, item) != digest(POLICY, Item(ItemType.IMAGE, (b"a",)))


def test_bytes_cannot_move_from_one_frame_to_the_next() -> None:
    assert digest(POLICY, chunk(b"ab", b"c")) != digest(POLICY, chunk(b"a", b"bc"))


def test_a_digest_is_256_bits_in_hex() -> None:
    assert len(bytes.fromhex(digest(POLICY, chunk(b"a")))) == 32
