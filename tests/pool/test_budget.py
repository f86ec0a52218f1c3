"""Shares of pixels and answer bytes: first in, first out, and given back whatever happens."""

import threading
from collections.abc import Callable

import pytest

from service.errors import ClientLeft, DeadlineExceeded, OverBudget
from service.pool.budget import Budget
from service.pool.permit import Permit
from service.types import Budgets

BUDGETS = Budgets(queue_length=1, body_bytes=1, pixels=100, answer_bytes=1000)


def no_check() -> None:
    pass


@pytest.mark.parametrize(
    ("pixels", "answer_bytes", "setting", "limit", "actual"),
    [(101, 1, "pixel_budget", 100, 101), (1, 1001, "answer_budget_bytes", 1000, 1001)],
)
def test_more_than_there_is_in_all_is_refused_at_once(
    pixels: int, answer_bytes: int, setting: str, limit: int, actual: int
) -> None:
    with pytest.raises(OverBudget) as refused:
        Budget(BUDGETS).reserve(pixels, answer_bytes, no_check)
    assert refused.value.setting == setting
    assert (refused.value.limit, refused.value.actual) == (limit, actual)


def reserving(
    budget: Budget, pixels: int, answer_bytes: int, then: Callable[[], None]
) -> threading.Thread:
    """A thread that waits in line, and is in it already."""
    waiting = threading.Event()

    def wait_and_go() -> None:
        budget.reserve(pixels, answer_bytes, waiting.set)
        then()

    thread = threading.Thread(target=wait_and_go)
    thread.start()
    assert waiting.wait(60)
    return thread


def test_whoever_waits_goes_on_in_order_also_when_a_later_one_would_fit() -> None:
    budget, order = Budget(BUDGETS), list[str]()
    budget.reserve(90, 10, no_check)
    large = reserving(budget, 50, 10, lambda: order.append("large"))
    small = reserving(budget, 5, 10, lambda: order.append("small"))
    assert order == []
    assert budget.pixels == 90
    budget.decoded(90)
    large.join(60)
    small.join(60)
    assert order == ["large", "small"]
    assert budget.pixels == 55


def test_an_answer_that_is_gone_makes_room_for_the_next() -> None:
    budget = Budget(BUDGETS)
    budget.reserve(1, 900, no_check)
    next_one = reserving(budget, 1, 200, lambda: None)
    budget.answer_gone(900)
    next_one.join(60)
    assert budget.answer_bytes == 200


def test_a_permit_stops_waiting_when_its_time_is_over_or_nobody_waits() -> None:
    budget = Budget(BUDGETS)
    budget.reserve(100, 1, no_check)
    with pytest.raises(DeadlineExceeded) as late:
        Permit(budget, 0.05).reserve(1, 1)
    assert late.value.setting == "deadline_s"
    abandoned = Permit(budget, 60)
    abandoned.abandoned = True
    with pytest.raises(ClientLeft):
        abandoned.reserve(1, 1)
    budget.decoded(100)
    assert (budget.pixels, budget.answer_bytes) == (0, 1)
    Permit(budget, 60).reserve(100, 999)


def test_a_permit_gives_its_pixels_back_once() -> None:
    budget = Budget(BUDGETS)
    permit = Permit(budget, 60)
    permit.decoded()
    gone = permit.reserve(40, 500)
    permit.decoded()
    permit.decoded()
    assert (budget.pixels, budget.answer_bytes) == (0, 500)
    gone()
    assert budget.answer_bytes == 0


def test_many_threads_never_hold_more_than_there_is() -> None:
    budget, faults = Budget(BUDGETS), list[tuple[int, int]]()

    def work() -> None:
        for size in range(1, 60):
            budget.reserve(size, 10 * size, no_check)
            if budget.pixels > 100 or budget.answer_bytes > 1000:
                faults.append((budget.pixels, budget.answer_bytes))
            budget.decoded(size)
            budget.answer_gone(10 * size)

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert faults == []
    assert (budget.pixels, budget.answer_bytes) == (0, 0)
