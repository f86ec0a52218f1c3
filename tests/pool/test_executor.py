"""The executor: work leaves the event loop, comes back in order, and brings its faults along."""

import asyncio
import threading

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
