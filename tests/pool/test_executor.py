"""The executor: work leaves the event loop, comes back in order, and brings its faults along."""

import asyncio
import threading
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from service.pool.executor import Executor


def test_work_runs_on_another_thread_and_its_result_comes_back() -> None:
    async def main() -> None:
        executor = Executor(2)
        try:
            assert await executor.run(threading.get_ident) != threading.get_ident()
            assert await executor.run(divmod, 7, 2) == (3, 1)
        finally:
            executor.close()

    asyncio.run(main())


def test_a_fault_of_the_work_is_raised_to_whoever_awaits_it() -> None:
    async def main() -> None:
        executor = Executor(1)
        try:
            await executor.run(divmod, 1, 0)
        finally:
            executor.close()

    with pytest.raises(ZeroDivisionError):
        asyncio.run(main())


def test_work_begins_in_the_order_it_came() -> None:
    async def main() -> list[int]:
        executor, begun = Executor(1), list[int]()
        await asyncio.gather(*(executor.run(begun.append, number) for number in range(50)))
        executor.close()
        return begun

    assert asyncio.run(main()) == list(range(50))


def test_the_event_loop_answers_while_every_thread_is_busy() -> None:
    async def main() -> bool:
        executor, done = Executor(1), threading.Event()
        busy = asyncio.ensure_future(executor.run(done.wait, 60.0))
        await asyncio.sleep(0)
        done.set()  # reached only if the loop is free
        result = await busy
        executor.close()
        return result

    assert asyncio.run(main())


def on_a_thread(threads: int, work: Callable[[Executor], Any]) -> Any:
    async def main() -> Any:
        executor = Executor(threads)
        try:
            return await executor.run(work, executor)
        finally:
            executor.close()

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
