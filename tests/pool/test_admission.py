"""The door: who gets a ticket, who is refused with what, and who has to give way."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.errors import BodiesFull, Draining, OverBudget, QueueFull, SlowRequest
from service.pool.admission import SLOW_BYTES_PER_S, Admission, Ticket
from service.types import Budgets

BUDGETS = Budgets(queue_length=3, body_bytes=1000, pixels=1, answer_bytes=1)


class Clock:
    now_s = 100.0

    def __call__(self) -> float:
        return self.now_s


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def door(clock: Clock) -> Admission:
    return Admission(BUDGETS, clock)


def test_a_full_queue_is_refused_with_its_facts_until_somebody_leaves(door: Admission) -> None:
    tickets = [door.enter(1) for _ in range(3)]
    with pytest.raises(QueueFull) as refused:
        door.enter(1)
    assert (refused.value.limit, refused.value.actual) == (3, 3)
    assert refused.value.setting == "queue_length"
    assert refused.value.retry_after_s
    tickets[0].leave()
    door.enter(1)


def test_bodies_that_do_not_fit_together_are_refused_until_there_is_room(door: Admission) -> None:
    first = door.enter(600)
    with pytest.raises(BodiesFull) as refused:
        door.enter(401)
    assert (refused.value.limit, refused.value.actual) == (1000, 1001)
    assert refused.value.setting == "body_budget_bytes"
    assert (door.tickets, door.body_bytes) == (1, 600)
    door.enter(400)
    first.leave()
    assert (door.tickets, door.body_bytes) == (1, 400)


def test_a_body_that_could_never_fit_is_over_the_budget_and_not_worth_a_retry(
    door: Admission,
) -> None:
    with pytest.raises(OverBudget) as refused:
        door.enter(1001)
    assert not refused.value.retryable
    assert (refused.value.limit, refused.value.actual) == (1000, 1001)
    assert door.tickets == 0


def test_a_body_of_unknown_length_is_counted_as_it_comes(door: Admission) -> None:
    other, growing = door.enter(300), door.enter(None)
    growing.receive(500, 500)
    assert door.body_bytes == 800
    with pytest.raises(BodiesFull):
        growing.receive(250, 250)
    other.leave()
    growing.receive(500, 500)
    with pytest.raises(OverBudget):
        growing.receive(1, 1)
    growing.leave()
    assert (door.tickets, door.body_bytes) == (0, 0)


def test_a_slow_upload_gives_way_when_its_place_is_wanted_and_not_before(
    door: Admission, clock: Clock
) -> None:
    told: list[str] = []
    slow, quick, done = (door.enter(100) for _ in range(3))
    slow.uploading(lambda: told.append("slow"))
    quick.uploading(lambda: told.append("quick"))
    quick.receive(10 * SLOW_BYTES_PER_S, 0)
    done.uploaded()
    with pytest.raises(QueueFull):
        door.enter(1)
    clock.now_s += 5
    assert told == []
    slow.check()
    door.enter(1)
    assert told == ["slow"]
    with pytest.raises(SlowRequest):
        slow.check()
    with pytest.raises(SlowRequest):
        slow.receive(1, 1)
    slow.leave()
    with pytest.raises(QueueFull):
        door.enter(1)
    assert door.tickets == 3


def test_a_slow_upload_gives_way_for_the_bytes_that_it_blocks(
    door: Admission, clock: Clock
) -> None:
    door.enter(900)
    clock.now_s += 5
    door.enter(900)
    assert (door.tickets, door.body_bytes) == (1, 900)


def test_a_ticket_that_is_kept_by_a_thread_is_free_when_both_have_left(door: Admission) -> None:
    ticket = door.enter(10)
    ticket.keep()
    ticket.leave()
    assert (door.tickets, door.body_bytes) == (1, 10)
    ticket.leave()
    assert (door.tickets, door.body_bytes) == (0, 0)


def test_a_closed_door_refuses_everybody(door: Admission) -> None:
    door.close()
    with pytest.raises(Draining):
        door.enter(1)


@pytest.mark.parametrize(
    ("leaving", "over_s", "waiting", "expected"),
    [
        (0, 0, 3, range(1, 2)),
        (0, 1, 3, range(1, 2)),
        (0, 9, 3, range(60, 61)),
        (1, 0, 3, range(1, 2)),
        (30, 3, 3, range(1, 2)),
        (60, 60, 3, range(2, 5)),
        (60, 60, 30, range(25, 36)),
        (100, 10, 30, range(2, 5)),
        (1, 200, 30, range(60, 61)),
    ],
)
def test_retry_after_is_the_queue_over_the_measured_drain_rate(
    clock: Clock, leaving: int, over_s: float, waiting: int, expected: range
) -> None:
    door = Admission(replace(BUDGETS, queue_length=waiting), clock)
    for _ in range(leaving):
        clock.now_s += over_s / leaving
        door.enter(1).leave()
    if not leaving:
        clock.now_s += over_s
    for _ in range(waiting):
        door.enter(1)
    with pytest.raises(QueueFull) as refused:
        door.enter(1)
    assert refused.value.retry_after_s in expected


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 600)), max_size=60))
def test_whatever_comes_and_goes_the_budgets_hold_and_nothing_is_lost(
    steps: list[tuple[int, int]],
) -> None:
    door, inside = Admission(BUDGETS, Clock()), list[Ticket]()
    for what, size in steps:
        try:
            if what < 3:
                inside.append(door.enter(size if what else None))
            elif inside and what == 3:
                inside[0].receive(size, size)
            elif inside:
                inside.pop(0).leave()
        except (QueueFull, BodiesFull, OverBudget):
            pass
        assert door.tickets == len(inside) <= BUDGETS.queue_length
        assert door.body_bytes == sum(each.cost_bytes for each in inside) <= BUDGETS.body_bytes
    for ticket in inside:
        ticket.leave()
    assert (door.tickets, door.body_bytes) == (0, 0)


def test_an_upload_never_gives_way_to_itself_and_no_byte_is_lost(
    door: Admission, clock: Clock
) -> None:
    growing = door.enter(None)
    growing.receive(300, 300)
    clock.now_s += 5
    other = door.enter(700)
    with pytest.raises(BodiesFull):
        growing.receive(50, 50)
    growing.leave()
    other.leave()
    assert (door.tickets, door.body_bytes) == (0, 0)
