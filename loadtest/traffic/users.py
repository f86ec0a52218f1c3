"""The users: one class for each kind, each of which posts when its own schedule says so.

A user draws a post of its kind, sends it over a pool of connections that all share, as a frontend
would, and has the answer judged. It does not wait for one answer before it asks again: what is
late is late because the generator was. Latency counts from when the request was due.
"""

import itertools
import random
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import gevent
from gevent.pool import Group
from geventhttpclient.client import HTTPClientPool
from locust import FastHttpUser, task

from traffic.arrivals import LATE_S, Arrivals
from traffic.bodies import Deck, Post
from traffic.judge import Outcome
from traffic.kinds import WEIGHTS, Kind
from traffic.tally import Count, Tally

COMPARED_SHARE = 0.15
"""Of answers whose bytes are compared: hashing all would slow the generator."""

READ_BYTES = 1 << 18
"""At once from a socket; by 4 KiB, the client's own choice, an answer of 11 MB takes its time."""

CONNECTIONS = 2048

LAST_ANSWERS_S = 30.0
"""How long a user that leaves waits for its answers."""


@dataclass(frozen=True)
class Traffic:
    """What all users of a process share."""

    decks: Mapping[Kind, Deck]
    seed: int
    tally: Tally


class Frontend(FastHttpUser):
    """A user of the kind that a subclass names."""

    abstract = True
    kind: ClassVar[Kind]
    traffic: ClassVar[Traffic]
    client_pool = HTTPClientPool(
        block_size=READ_BYTES,
        concurrency=CONNECTIONS,
        connection_timeout=10,
        network_timeout=60,
    )
    _numbers = itertools.count()

    def on_start(self) -> None:
        self._flight = Group()
        # A worker counts its users from 0 as well: without its place all would send the same.
        worker = max(0, getattr(self.environment.runner, "worker_index", 0))
        number = worker * 100_003 + next(self._numbers)
        self._rng = random.Random(self.traffic.seed * 1_000_003 + number)
        self._arrivals = Arrivals(time.monotonic(), self._rng)
        gevent.sleep(self._pause_s())

    def wait_time(self) -> float:
        self._arrivals.advance()
        return self._pause_s()

    def _pause_s(self) -> float:
        return max(0.0, self._arrivals.due_s - time.monotonic())

    @task
    def post(self) -> None:
        late_s = time.monotonic() - self._arrivals.due_s
        self._count(Count.DUE)
        if late_s <= LATE_S:
            self._count(Count.ON_TIME)
        drawn = self.traffic.decks[self.kind].draw(self._rng)
        self._flight.spawn(self._ask, drawn, late_s, self._rng.random() < COMPARED_SHARE)

    def on_stop(self) -> None:
        """What was due and never began counts as well; what is in flight is waited for."""
        while self._arrivals.advance() < time.monotonic():
            self._count(Count.DUE)
        self._flight.join(LAST_ANSWERS_S)
        self._flight.kill()

    def _ask(self, post: Post, late_s: float, compare: bool) -> None:  # noqa: FBT001 - a draw
        with self.client.request(
            "POST",
            post.path,
            name=self.kind,
            data=post.body,
            headers={"Content-Type": post.content_type},
            catch_response=True,
        ) as answer:
            answer.request_meta["response_time"] += late_s * 1e3
            body = answer.content or b""
            outcome = post.wanted.judged(answer.status_code, body)
            if compare and outcome == Outcome():
                outcome = self._compared(post.wanted.compared(body))
            self._tell(answer, outcome)

    def _compared(self, outcome: Outcome) -> Outcome:
        self._count(Count.COMPARED)
        if outcome.wrong:
            self._count(Count.UNEQUAL)
        return outcome

    def _tell(self, answer: Any, outcome: Outcome) -> None:
        if outcome.shed:
            self._count(Count.SHED)
            answer.request_meta["name"] = f"{self.kind} refused"
        if outcome.wrong:
            answer.failure(outcome.wrong)
        else:
            answer.success()

    def _count(self, what: Count) -> None:
        self.traffic.tally.add(self.kind, what)


class Single(Frontend):
    kind = Kind.SINGLE
    weight = WEIGHTS[kind]


class Batch(Frontend):
    kind = Kind.BATCH
    weight = WEIGHTS[kind]


class Parts(Frontend):
    kind = Kind.PARTS
    weight = WEIGHTS[kind]


class Chunk(Frontend):
    kind = Kind.CHUNK
    weight = WEIGHTS[kind]


class Plan(Frontend):
    kind = Kind.PLAN
    weight = WEIGHTS[kind]


class Hostile(Frontend):
    kind = Kind.HOSTILE
    weight = WEIGHTS[kind]
