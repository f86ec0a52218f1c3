"""Answers damaged at random: refused with our error, or a batch that is sound all the same.

Sound means: every view lies inside the body, every shape agrees with its view,
and no more was allocated than the body has.
"""

import tracemalloc
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from patchmill_client import Batch, Dtype, ItemType, LyingAnswer, PatchmillError
from patchmill_client.batch import received
from patchmill_client.buffer import BodyReader
from patchmill_client.values import Expected
from tests.packer import fields, pack, uncut

LIMIT = 1 << 29
ANSWERS = {
    "one": (pack(fields()), Expected((ItemType.IMAGE,), Dtype.FLOAT32)),
    "several": (
        pack(fields([(1, 2, 4), (3, 2, 2), (1, 1, 1)], "bfloat16")),
        Expected((ItemType.IMAGE, ItemType.VIDEO_CHUNK, ItemType.IMAGE), Dtype.BFLOAT16),
    ),
    "bytes": (pack(fields([(1, 4, 4)], "uint8")), Expected((ItemType.IMAGE,), Dtype.UINT8)),
    "not cut": (pack(uncut(fields([(1, 2, 4), (3, 2, 2)], "uint8"))), None),
    "mixed": (pack(fields([(1, 2, 2), (1, 2, 2)], "float16", [14, 16])), None),
}
OVERHEAD_BYTES = 128 * 1024
"""Of the parsed head, the pieces and the test itself."""


def read(body: bytes, expected: Expected | None, piece_bytes: int = 1 << 16) -> Batch | None:
    """The batch, None where the answer is refused; any other exception is a failure."""
    reader = BodyReader(expected, LIMIT, len(body))
    try:
        for start in range(0, len(body), piece_bytes):
            reader.feed(body[start : start + piece_bytes])
        return received(reader.finish(), None)
    except PatchmillError as error:
        assert isinstance(error, LyingAnswer), error
        return None


def check_sound(batch: Batch, body: bytes) -> None:
    """Every view lies in the one buffer, and what is said about it is true."""
    assert batch.data.size <= len(body)
    assert batch.data.tobytes() == body[len(body) - batch.data.size :]
    values = batch.numpy()
    assert np.shares_memory(values, batch.data)
    assert values.nbytes == batch.data.nbytes
    assert values.shape == batch.shape
    assert [grid.patches for grid in batch.grid_thws] == [item.num_patches for item in batch.items]
    end = 0
    for item, part in zip(batch.items, batch.split(), strict=True):
        assert item.offset_bytes == end
        end += item.length_bytes
        assert part.numpy().shape == item.shape
        assert part.data.tobytes() == batch.data[item.offset_bytes : end].tobytes()
    assert end == batch.data.size
    if batch.dtype is Dtype.UINT8:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            normalized = batch.normalize(dtype="float16")
        assert np.isfinite(np.asarray(normalized)).all()


def check(body: bytes, expected: Expected | None) -> None:
    tracemalloc.start()
    try:
        batch = read(body, expected)
        peak_bytes = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak_bytes <= len(body) + OVERHEAD_BYTES
    if batch is not None:
        check_sound(batch, body)


@pytest.mark.parametrize("name", ANSWERS)
def test_an_honest_answer_is_sound(name: str) -> None:
    body, expected = ANSWERS[name]
    batch = read(body, expected)
    assert batch is not None
    check_sound(batch, body)


@pytest.mark.parametrize("name", ANSWERS)
def test_any_byte_of_the_head_may_be_any_of_its_neighbours(name: str) -> None:
    body, expected = ANSWERS[name]
    head_bytes = len(body) - len(read(body, None).data)  # type: ignore[union-attr]
    for place in range(head_bytes):
        for flip in (0x01, 0x02, 0x04, 0x08, 0x10, 0x20, 0x40, 0x80, 0xFF):
            damaged = bytearray(body)
            damaged[place] ^= flip
            batch = read(bytes(damaged), expected)
            if batch is not None:
                check_sound(batch, bytes(damaged))


@pytest.mark.parametrize("name", ANSWERS)
@settings(max_examples=300, deadline=None)
@given(data=st.data())
def test_several_bytes_at_once(name: str, data: st.DataObject) -> None:
    body, expected = ANSWERS[name]
    damaged = bytearray(body)
    for place, value in data.draw(
        st.lists(st.tuples(st.integers(0, 1400), st.integers(0, 255)), min_size=1, max_size=12)
    ):
        damaged[place % len(damaged)] = value
    check(bytes(damaged), expected)


@pytest.mark.parametrize("name", ANSWERS)
@settings(max_examples=200, deadline=None)
@given(data=st.data())
def test_bytes_put_in_and_taken_out(name: str, data: st.DataObject) -> None:
    body, expected = ANSWERS[name]
    place = data.draw(st.integers(0, 1400))
    removed = data.draw(st.integers(0, 80))
    added = data.draw(st.binary(max_size=80))
    check(body[:place] + added + body[place + removed :], expected)


@pytest.mark.parametrize("name", ANSWERS)
def test_an_answer_that_ends_anywhere_is_refused(name: str) -> None:
    body, expected = ANSWERS[name]
    ends = [*range(0, 1400, 3), len(body) - 1, len(body) // 2]
    assert all(read(body[:end], expected) is None for end in ends)


@settings(max_examples=200, deadline=None)
@given(st.binary(max_size=2000))
def test_garbage_is_refused(body: bytes) -> None:
    assert read(body, None) is None


@pytest.mark.parametrize("lie", [b"\xff" * 4, b"\x7f\xff\xff\xff", b"\x20\x00\x00\x00"])
@pytest.mark.parametrize("name", ANSWERS)
def test_numbers_blown_up_anywhere_allocate_nothing(name: str, lie: bytes) -> None:
    body, expected = ANSWERS[name]
    head_bytes = len(body) - len(read(body, None).data)  # type: ignore[union-attr]
    for place in range(head_bytes - 3):
        check(body[:place] + lie + body[place + 4 :], expected)
