"""The executor: work leaves the event loop, comes back in order, and brings its faults along."""

import asyncio
import os
import threading
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from service.errors import ClientLeft, DeadlineExceeded, PatchmillError
from service.pool.budget import Budget
from service.pool.executor import NICENESS, Executor
from service.pool.permit import Permit
from service.types import Budgets


def test_work_runs_on_another_thread_and_its_result_comes_back() -> None:
    async def main() -> None:
        executor = Executor(2)
        try:
            assert await executor.run(threading.get_ident) != threading.get_ident()
            assert await executor.run(divmod, 7, 2) == (3, 1)
        finally:
            await executor.close(60)

    asyncio.run(main())


def test_a_fault_of_the_work_is_raised_to_whoever_awaits_it() -> None:
    async def main() -> None:
        executor = Executor(1)
        try:
            await executor.run(divmod, 1, 0)
        finally:
            await executor.close(60)

    with pytest.raises(ZeroDivisionError):
        asyncio.run(main())


def test_work_begins_in_the_order_it_came() -> None:
    async def main() -> list[int]:
        executor, begun = Executor(1), list[int]()
        await asyncio.gather(*(executor.run(begun.append, number) for number in range(50)))
        await executor.close(60)
        return begun

    assert asyncio.run(main()) == list(range(50))


def test_the_event_loop_answers_while_every_thread_is_busy() -> None:
    async def main() -> bool:
        executor, done = Executor(1), threading.Event()
        busy = asyncio.ensure_future(executor.run(done.wait, 60.0))
        await asyncio.sleep(0)
        done.set()  # reached only if the loop is free
        result = await busy
        await executor.close(60)
        return result

    assert asyncio.run(main())


def on_a_thread(threads: int, work: Callable[[Executor], Any]) -> Any:
    async def main() -> Any:
        executor = Executor(threads)
        try:
            return await executor.run(work, executor)
        finally:
            await executor.close(60)

    return asyncio.run(main())


@pytest.mark.parametrize("threads", [1, 2, 5])
@pytest.mark.parametrize("count", [0, 1, 2, 7])
def test_spread_tasks_give_their_results_in_order(threads: int, count: int) -> None:
    tasks = [partial(divmod, number, 2) for number in range(count)]
    seen = on_a_thread(threads, lambda executor: executor.spread(tasks))
    assert seen == [divmod(number, 2) for number in range(count)]


def test_two_spread_tasks_run_at_once_when_a_thread_is_idle() -> None:
    meet = threading.Barrier(2)  # passed by two threads together or not at all
    on_a_thread(2, lambda executor: executor.spread([lambda: meet.wait(60)] * 2))


def test_spreading_inside_a_spread_task_never_waits_for_ever() -> None:
    def nested(executor: Executor) -> list[list[int]]:
        inner = [lambda: 1] * 3
        return executor.spread([lambda: executor.spread(inner)] * 4)

    assert on_a_thread(2, nested) == [[1, 1, 1]] * 4


def test_every_task_runs_and_the_first_fault_in_order_is_raised() -> None:
    ran: list[int] = []

    def task(number: int) -> None:
        ran.append(number)
        if number in (2, 4):
            raise ValueError(str(number))

    tasks = [partial(task, number) for number in range(6)]
    with pytest.raises(ValueError, match="2"):
        on_a_thread(2, lambda executor: executor.spread(tasks))
    assert sorted(ran) == list(range(6))


def test_a_thread_that_works_is_not_idle() -> None:
    assert on_a_thread(3, lambda executor: executor.idle()) == 2


def answering(
    deadline_s: float, *, leaves: bool, work: Callable[[Permit], Any]
) -> tuple[Any, list[str]]:
    """What the caller of `answer` gets, and what else happened, in order."""

    async def main() -> tuple[Any, list[str]]:
        executor, told = Executor(1), list[str]()
        permit = Permit(Budget(Budgets(1, 1, 1, 1)), deadline_s)
        gone: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        if leaves:
            gone.set_result(None)
        try:
            got: Any = await executor.answer(
                permit, gone, lambda: told.append("ended"), lambda: work(permit)
            )
        except (PatchmillError, ClientLeft) as fault:
            got = type(fault)
        told.append("answered")
        await executor.close(60)
        await asyncio.sleep(0)
        return got, told

    return asyncio.run(main())


def wait_until_abandoned(permit: Permit) -> None:
    pause = threading.Event()
    while not permit.abandoned:
        pause.wait(0.001)


def test_an_answer_in_time_is_given_after_its_thread_has_ended() -> None:
    assert answering(60, leaves=False, work=lambda _: 7) == (7, ["ended", "answered"])


def test_an_expired_request_is_answered_at_once_and_its_thread_ends_later() -> None:
    got = answering(0.05, leaves=False, work=wait_until_abandoned)
    assert got == (DeadlineExceeded, ["answered", "ended"])


def test_a_client_that_left_is_known_at_once_and_its_thread_ends_later() -> None:
    assert answering(60, leaves=True, work=wait_until_abandoned) == (
        ClientLeft,
        ["answered", "ended"],
    )


def test_work_that_has_not_begun_is_dropped_when_its_client_leaves() -> None:
    async def main() -> list[str]:
        executor, told, done = Executor(1), list[str](), threading.Event()
        budget, loop = Budget(Budgets(1, 1, 1, 1)), asyncio.get_running_loop()
        stays, leaves = loop.create_future(), loop.create_future()
        first = asyncio.create_task(
            executor.answer(Permit(budget, 60), stays, lambda: None, lambda: done.wait(60))
        )
        second = asyncio.create_task(
            executor.answer(
                Permit(budget, 60), leaves, lambda: told.append("free"), lambda: told.append("ran")
            )
        )
        await asyncio.sleep(0)
        leaves.set_result(None)
        with pytest.raises(ClientLeft):
            await second
        while not told:
            await asyncio.sleep(0)
        done.set()
        assert await first
        await executor.close(60)
        return told

    assert asyncio.run(main()) == ["free"]


def test_a_thread_beyond_its_deadline_is_overdue() -> None:
    async def main() -> tuple[float, float, float]:
        executor, done = Executor(1), threading.Event()
        permit = Permit(Budget(Budgets(1, 1, 1, 1)), 0.02)
        before = executor.overdue_s()
        with pytest.raises(DeadlineExceeded):
            await executor.answer(
                permit,
                asyncio.get_running_loop().create_future(),
                lambda: None,
                lambda: done.wait(60),
            )
        amid = executor.overdue_s()
        done.set()
        await executor.close(60)
        return before, amid, executor.overdue_s()

    before, amid, after = asyncio.run(main())
    assert amid > 0
    assert before == after == 0


def test_closing_tells_whether_every_thread_is_done() -> None:
    async def main() -> tuple[bool, bool]:
        executor, done = Executor(1), threading.Event()
        busy = asyncio.ensure_future(executor.run(done.wait, 60.0))
        await asyncio.sleep(0)
        amid = await executor.close(0.05)
        done.set()
        await busy
        return amid, await executor.close(60)

    assert asyncio.run(main()) == (False, True)


def test_threads_give_way_to_the_event_loop() -> None:
    def niceness(_: Executor) -> int:
        return os.getpriority(os.PRIO_PROCESS, threading.get_native_id())

    own = os.getpriority(os.PRIO_PROCESS, threading.get_native_id())
    assert on_a_thread(1, niceness) == min(19, own + NICENESS)
    assert os.getpriority(os.PRIO_PROCESS, threading.get_native_id()) == own
