"""Many items: in order, each once, bounded, whatever happens on the way."""

import asyncio
import hashlib
import itertools
import socket
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import pytest

import patchmill_client as pc
from tests import peer as peers
from tests.packer import HONEST, fields, pack
from tests.peer import Peer, Step, answer, cut, hang_up, peer, problem

Connect = Callable[..., Any]
BUSY = problem(429, b'{"code": "queue_full", "retryable": true}', {"Retry-After": "1"})
BAD = problem(422, b'{"code": "corrupt_image", "retryable": false, "item": 0, "detail": "no"}')


def pictures(count: int) -> list[bytes]:
    return [b"picture %d" % number for number in range(count)]


def digest(picture: bytes) -> str:
    return hashlib.sha256(picture).hexdigest()


def echo(connection: socket.socket, seen: peers.Seen) -> bool:
    """An answer whose digest says which picture it is for."""
    fact = fields()
    fact["items"][0]["digest"] = digest(seen.body)
    return answer(body=pack(fact))(connection, seen)


def digests(outcomes: Iterator[pc.Outcome]) -> list[str]:
    return [outcome.result().items[0].digest for outcome in outcomes]


def test_outcomes_come_in_order_and_each_once(connect: Connect) -> None:
    sources = pictures(40)
    with peer(echo) as there:
        outcomes = list(connect(there.url).map(sources))
        assert sorted(seen.body for seen in there.seen) == sorted(sources)
    assert [outcome.index for outcome in outcomes] == list(range(40))
    assert digests(iter(outcomes)) == [digest(source) for source in sources]


def test_what_the_progress_callback_raises_is_the_caller_s_own(connect: Connect) -> None:
    def stop(progress: pc.Progress) -> None:
        if progress.done == 2:
            raise pc.InvalidInput("mine")

    with peer(echo) as there:
        outcomes = connect(there.url).map(pictures(4), on_progress=stop)
        assert next(outcomes).index == 0
        with pytest.raises(pc.InvalidInput, match="mine"):
            next(outcomes)


def test_order_holds_when_answers_overtake_each_other(connect: Connect) -> None:
    first_may_go = threading.Event()

    def overtaken(connection: socket.socket, seen: peers.Seen) -> bool:
        if seen.body == b"picture 0":
            assert first_may_go.wait(60)
        elif seen.body == b"picture 3":
            first_may_go.set()
        return echo(connection, seen)

    sources = pictures(8)
    with peer(overtaken) as there:
        found = digests(connect(there.url).map(sources, concurrency=2, look_ahead=5))
    assert found == [digest(source) for source in sources]


def test_as_many_requests_run_at_a_time_as_are_allowed_and_no_more(connect: Connect) -> None:
    together = threading.Barrier(3)
    lock = threading.Lock()
    running = 0
    most = 0

    def counted(connection: socket.socket, seen: peers.Seen) -> bool:
        nonlocal running, most
        with lock:
            running += 1
            most = max(most, running)
        together.wait(60)  # passes only when three are here
        with lock:
            running -= 1
        return echo(connection, seen)

    with peer(counted) as there:
        assert len(list(connect(there.url).map(pictures(12), concurrency=3))) == 12
        assert there.connections <= 3
    assert most == 3


def test_items_are_taken_only_as_outcomes_are_taken(connect: Connect) -> None:
    taken = 0

    def supply() -> Iterator[bytes]:
        nonlocal taken
        for picture in pictures(30):
            taken += 1
            yield picture

    with peer(echo) as there:
        outcomes = connect(there.url).map(supply(), concurrency=2, look_ahead=5)
        assert taken == 0
        for outcome in outcomes:
            assert taken <= outcome.index + 5
    assert taken == 30


def test_an_endless_supply_can_be_left(connect: Connect) -> None:
    endless = (b"picture %d" % number for number in itertools.count())
    with peer(echo) as there:
        outcomes = connect(there.url).map(endless)
        assert [next(outcomes).index for _ in range(3)] == [0, 1, 2]
        outcomes.close()
        assert len(there.seen) <= 3 + 8


def test_one_that_fails_stops_no_other(connect: Connect) -> None:
    def some_bad(connection: socket.socket, seen: peers.Seen) -> bool:
        return (BAD if seen.body == b"picture 1" else echo)(connection, seen)

    with peer(some_bad) as there:
        outcomes = list(connect(there.url).map([*pictures(3), "/no/such/file"]))
    assert [outcome.batch is not None for outcome in outcomes] == [True, False, True, False]
    assert isinstance(outcomes[1].error, pc.Unprocessable)
    assert outcomes[1].error.code == "corrupt_image"
    with pytest.raises(pc.Unprocessable):
        outcomes[1].result()
    with pytest.raises(pc.InvalidInput, match="/no/such/file"):
        outcomes[3].result()


def test_progress_is_told_for_each_outcome(connect: Connect) -> None:
    told: list[pc.Progress] = []

    def some_bad(connection: socket.socket, seen: peers.Seen) -> bool:
        return (BAD if seen.body == b"picture 1" else echo)(connection, seen)

    with peer(some_bad) as there:
        client = connect(there.url)
        for outcome in client.map(pictures(3), on_progress=told.append):
            assert len(told) == outcome.index + 1
        assert told == [pc.Progress(1, 0, 3), pc.Progress(2, 1, 3), pc.Progress(3, 1, 3)]
        told.clear()
        list(client.map(iter(pictures(2)), on_progress=told.append))
    assert [progress.total for progress in told] == [None, None]


def faulty(every: int, faults: list[Step]) -> Step:
    """Each `every`-th request meets the next fault, the others an answer."""
    count = itertools.count(1)
    supply = itertools.cycle(faults)
    lock = threading.Lock()

    def step(connection: socket.socket, seen: peers.Seen) -> bool:
        with lock:
            chosen = next(supply) if next(count) % every == 0 else echo
        return chosen(connection, seen)

    return step


def test_no_result_is_lost_or_doubled_among_faults_of_all_kinds(connect: Connect) -> None:
    sources = pictures(60)
    faults = [hang_up, BUSY, cut(HONEST, 300), problem(503, b"{}"), cut(HONEST, 5000)]
    with peer(faulty(3, faults)) as there:
        client = connect(there.url, retry=pc.RetryPolicy(attempts=20, deadline_s=10**6))
        found = digests(client.map(sources))
        assert len(there.seen) > len(sources)
    assert found == [digest(source) for source in sources]


def test_a_supply_that_breaks_loses_no_outcome_before_it(connect: Connect) -> None:
    def supply() -> Iterator[bytes]:
        yield from pictures(3)
        raise KeyError("the caller's own fault")

    indexes: list[int] = []
    with peer(echo) as there:
        with pytest.raises(KeyError, match="own fault"):
            indexes.extend(outcome.index for outcome in connect(there.url).map(supply()))
        assert len(there.seen) == 3


def test_video_chunks_are_items_too(connect: Connect) -> None:
    with peer(answer(body=pack(fields([(2, 2, 4)])))) as there:
        [outcome] = connect(there.url).map([[b"frame", b"frame"]])
    assert outcome.result().items[0].type is pc.ItemType.VIDEO_CHUNK


def test_nothing_is_asked_for_nothing(connect: Connect) -> None:
    assert list(connect("http://127.0.0.1:9").map([])) == []


@pytest.mark.parametrize(
    ("sources", "options"),
    [
        ("picture.jpg", {}),
        (b"picture", {}),
        (7, {}),
        ([], {"concurrency": 0}),
        ([], {"concurrency": 17}),
        ([], {"concurrency": 4, "look_ahead": 3}),
        ([], {"dtype": "float64"}),
    ],
)
def test_what_makes_no_sense_is_refused(
    connect: Connect, sources: Any, options: dict[str, Any]
) -> None:
    with pytest.raises(pc.InvalidInput):
        list(connect("http://127.0.0.1:9").map(sources, **options))


def test_an_asynchronous_supply_is_taken_from() -> None:
    async def supply() -> AsyncIterator[bytes]:
        for picture in pictures(10):
            await asyncio.sleep(0)
            yield picture

    async def run(url: str) -> list[str]:
        async with pc.AsyncClient(url) as client:
            return [found.result().items[0].digest async for found in client.map(supply())]

    with peer(echo) as there:
        assert asyncio.run(run(there.url)) == [digest(picture) for picture in pictures(10)]


def test_a_cancelled_map_cancels_its_requests() -> None:
    async def run(there: Peer) -> None:
        async with pc.AsyncClient(there.url) as client:
            outcomes = client.map(pictures(4), concurrency=2)
            waiting = asyncio.ensure_future(anext(outcomes))
            while len(there.seen) < 2:
                await asyncio.sleep(0)
            waiting.cancel()
            with pytest.raises(asyncio.CancelledError):
                await waiting
            assert len(asyncio.all_tasks()) == 1
            await outcomes.aclose()

    steps: list[Step] = []

    def silent(connection: socket.socket, seen: peers.Seen) -> bool:
        return steps[0](connection, seen)

    with peer(silent) as there:
        steps.append(peers.wait_for(there.latch, hang_up))
        asyncio.run(run(there))
