"""What an answer is worth, and that posts and the service agree on it."""

import json
import random
from collections.abc import Iterator
from pathlib import Path

import msgpack
import pytest

from tests.service.running import Running, running
from traffic import bodies, corpus, making
from traffic.bodies import Deck
from traffic.judge import Outcome, Patches, Refusal, Tokens
from traffic.kinds import WEIGHTS, Kind
from traffic.tally import Count, Tally

SHED = Outcome(shed=True)
REFUSAL = Refusal(422, "corrupt_image")
DIGEST = "2689367b205c16ce32ed4200942b8b8b1e262dfc70d9bc9fbc77c49699a4f1df"  # of b"ok"

STATUSES = [
    (Patches(()), 200, b"", Outcome()),
    (Patches(()), 429, b"", SHED),
    (Patches(()), 500, b"", Outcome(wrong="status 500, not 200")),
    (Patches(()), 0, b"", Outcome(wrong="status 0, not 200")),
    (Tokens(()), 200, b"", Outcome()),
    (Tokens(()), 429, b"", SHED),
    (REFUSAL, 422, b'{"code": "corrupt_image"}', Outcome()),
    (REFUSAL, 422, b'{"code": "empty_body"}', Outcome(wrong="empty_body, not corrupt_image")),
    (REFUSAL, 422, b"<html>", Outcome(wrong="no problem document, not corrupt_image")),
    (REFUSAL, 422, b"[]", Outcome(wrong="no problem document, not corrupt_image")),
    (REFUSAL, 200, b"", Outcome(wrong="status 200, not 422")),
    (REFUSAL, 500, b"", Outcome(wrong="status 500, not 422")),
    (REFUSAL, 429, b"", SHED),
]


@pytest.mark.parametrize(("wanted", "status", "body", "outcome"), STATUSES)
def test_a_status_is_right_shed_or_wrong(
    wanted: Patches | Tokens | Refusal, status: int, body: bytes, outcome: Outcome
) -> None:
    assert wanted.judged(status, body) == outcome


@pytest.mark.parametrize(
    ("data", "lengths", "wrong"),
    [
        (b"okok", [2, 2], None),
        (b"okoK", [2, 2], "elements differ"),
        (b"okok!", [2, 2], "elements differ"),
        (b"ok", [2], "elements differ"),
    ],
)
def test_one_other_byte_one_more_or_an_item_less_is_unequal(
    data: bytes, lengths: list[int], wrong: str | None
) -> None:
    items = [{"offset_bytes": 2 * n, "length_bytes": each} for n, each in enumerate(lengths)]
    body = msgpack.packb({"items": items, "pixel_values": {"data": data}})
    assert Patches((DIGEST, DIGEST)).compared(body) == Outcome(wrong=wrong)


@pytest.mark.parametrize("body", [b"", b"\xc1", b"{}", b"[]", b"\x80", b"{"])
def test_an_answer_that_cannot_be_read_is_wrong_and_nothing_breaks(body: bytes) -> None:
    assert Patches(()).compared(body).wrong
    assert Tokens(()).compared(body).wrong


def test_other_tokens_are_unequal() -> None:
    body = json.dumps({"items": [{"num_tokens": 4}]}).encode()
    assert Tokens((4,)).compared(body) == Outcome()
    assert Tokens((5,)).compared(body).wrong


@pytest.fixture(scope="module")
def decks(tmp_path_factory: pytest.TempPathFactory) -> dict[Kind, Deck]:
    """Of a corpus without its large pictures."""
    folder: Path = tmp_path_factory.mktemp("corpus")
    with pytest.MonkeyPatch.context() as patch:
        few = [row for row in making.PICTURES if row.height <= 640]
        patch.setattr(making, "PICTURES", few)
        making.make(folder)
    return dict(bodies.decks(corpus.load(folder), seed=1))


@pytest.fixture(scope="module")
def service() -> Iterator[Running]:
    with running() as found:
        yield found


@pytest.mark.parametrize("kind", Kind)
def test_the_service_answers_every_post_as_it_should(
    service: Running, decks: dict[Kind, Deck], kind: Kind
) -> None:
    for post in decks[kind].posts:
        headers = {"Content-Type": post.content_type}
        answer = service.client.post(post.path, content=post.body, headers=headers)
        assert post.wanted.judged(answer.status_code, answer.content) == Outcome(), answer.text
        assert post.wanted.compared(answer.content) == Outcome()


def test_the_same_seed_draws_the_same_posts(decks: dict[Kind, Deck]) -> None:
    deck = decks[Kind.SINGLE]
    draws = [[deck.draw(rng) for _ in range(20)] for rng in (random.Random(1), random.Random(1))]
    assert draws[0] == draws[1]
    assert len({post.path for post in draws[0]}) > 1


def test_every_kind_has_a_weight_and_posts(decks: dict[Kind, Deck]) -> None:
    assert set(WEIGHTS) == set(Kind) == set(decks)
    assert all(deck.posts for deck in decks.values())


def test_workers_counts_add_up_on_the_master() -> None:
    master, worker = Tally(), Tally()
    for _ in range(2):
        worker.add(Kind.PLAN, Count.DUE)
        worker.add(Kind.PLAN, Count.SHED)
        master.merge(worker.taken())
    assert [master.of(Kind.PLAN, what) for what in (Count.DUE, Count.SHED)] == [2, 2]
    assert worker.of(Kind.PLAN, Count.DUE) == 0
