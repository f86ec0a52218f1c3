"""The body in one aligned buffer, whatever pieces it comes in; nothing large for a liar."""

import itertools
import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from patchmill_client import AnswerOverLimit, Dtype, ItemType, LyingAnswer, TruncatedAnswer
from patchmill_client import buffer as buffers
from patchmill_client.buffer import BodyReader, aligned
from patchmill_client.values import Expected, Head
from patchmill_client.wire import read_head
from tests.packer import HONEST, fields, pack

LIMIT = 1 << 30
ONE = Expected((ItemType.IMAGE,), Dtype.FLOAT32)


def reader(length_bytes: int | None = None, limit: int = LIMIT) -> BodyReader:
    return BodyReader(ONE, limit, length_bytes)


@pytest.mark.parametrize("length_bytes", [None, len(HONEST)], ids=["unmeasured", "measured"])
@pytest.mark.parametrize("piece_bytes", [1, 2, 63, 500, 575, 576, 577, 4096, 1 << 20])
def test_pieces_of_any_size_make_the_same_body(piece_bytes: int, length_bytes: int | None) -> None:
    taken = reader(length_bytes)
    for start in range(0, len(HONEST), piece_bytes):
        taken.feed(HONEST[start : start + piece_bytes])
    body = taken.finish()
    assert body.data.tobytes() == HONEST[body.head.head_bytes :]
    assert body.data.ctypes.data % 64 == 0


@given(st.lists(st.integers(0, len(HONEST)), max_size=8))
def test_cuts_at_any_places_make_the_same_body(cuts: list[int]) -> None:
    taken = reader()
    edges = [0, *sorted(cuts), len(HONEST)]
    for start, end in itertools.pairwise(edges):
        taken.feed(HONEST[start:end])
    assert taken.finish().data.tobytes() == HONEST[-len(taken.finish().data) :]


@pytest.mark.parametrize("length", [0, 1, 100, 575, 576, 577, len(HONEST) - 1])
def test_a_body_that_ends_early_is_truncated(length: int) -> None:
    taken = reader()
    taken.feed(HONEST[:length])
    with pytest.raises(TruncatedAnswer):
        taken.finish()


def test_a_body_that_goes_on_is_refused() -> None:
    taken = reader()
    with pytest.raises(LyingAnswer, match="goes on"):
        taken.feed(HONEST + b"\x00")


@pytest.mark.parametrize("claimed", [0, 1, len(HONEST) - 1, len(HONEST) + 1, 1 << 29])
def test_a_length_that_the_head_contradicts_is_refused(claimed: int) -> None:
    taken = reader(claimed)
    with pytest.raises(LyingAnswer, match="by its length"):
        taken.feed(HONEST)


def test_a_length_over_the_limit_is_refused_before_a_byte_is_read() -> None:
    with pytest.raises(AnswerOverLimit) as refusal:
        reader(1 << 40)
    assert refusal.value.actual == 1 << 40


def traced_peak_bytes(start: bytes, length_bytes: int | None, limit: int = LIMIT) -> int:
    """The most that was allocated until the start of a body was refused."""
    tracemalloc.start()
    try:
        with pytest.raises((LyingAnswer, AnswerOverLimit)):
            reader(length_bytes, limit).feed(start)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_a_head_that_lies_about_its_data_allocates_nothing_of_that_size() -> None:
    honest = pack(fields([(1, 2, 4)]))
    data_bytes = 8 * 3 * 14 * 14 * 4
    claim = honest[: len(honest) - data_bytes - 4] + (1 << 29).to_bytes(4, "big")
    assert traced_peak_bytes(claim, None) < 200_000
    assert traced_peak_bytes(claim, len(claim) + (1 << 29)) < 200_000


def test_a_head_whose_data_is_over_the_limit_allocates_nothing_of_that_size() -> None:
    large = pack(fields([(1, 128, 128)]))
    assert traced_peak_bytes(large[:2048], None, limit=1 << 20) < 200_000


def test_a_head_in_single_bytes_is_not_parsed_once_a_byte(monkeypatch: pytest.MonkeyPatch) -> None:
    tries: list[int] = []

    def counted(start: memoryview, expected: Expected | None, max_answer_bytes: int) -> Head:
        tries.append(len(start))
        return read_head(start, expected, max_answer_bytes)

    monkeypatch.setattr(buffers, "read_head", counted)
    taken = reader()
    for byte in HONEST:
        taken.feed(bytes([byte]))
    taken.finish()
    assert len(tries) < 15


@pytest.mark.parametrize("length_bytes", [1, 63, 64, 65, 100_000])
def test_a_buffer_is_aligned(length_bytes: int) -> None:
    buffer = aligned(length_bytes)
    assert buffer.shape == (length_bytes,)
    assert buffer.dtype == np.uint8
    assert buffer.ctypes.data % 64 == 0
