"""When a call is sent again, and after how long.

Sending again is always safe: `POST /preprocess` is a pure function of its
request and keeps nothing. So the question is only whether it can help, which
each error says (`repeatable`), and whether there is time. Nothing here sleeps
or sends; clocks and chance come from outside.
"""

import asyncio
import random
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass

from patchmill_client.errors import DeadlineExceeded, PatchmillError


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """How often and how patiently.

    A pause is drawn evenly from 0 to `base_s * 2 ** repetitions`, at most
    `cap_s` (full jitter), so that callers who failed together do not return
    together. A `Retry-After` is a lower bound: the drawn pause comes on top.
    """

    attempts: int = 6
    base_s: float = 0.2
    cap_s: float = 10.0
    deadline_s: float = 120.0

    def __post_init__(self) -> None:
        if self.attempts < 1:
            raise ValueError(f"attempts is {self.attempts}; 1 means no repetition")
        if not (self.base_s >= 0 and self.cap_s >= 0 and self.deadline_s > 0):
            raise ValueError("base_s and cap_s are not below zero, deadline_s is above it")


ONCE = RetryPolicy(attempts=1)
"""No repetition."""


@dataclass(frozen=True, slots=True)
class Pace:
    """Where time and chance come from; tests hand in their own."""

    clock: Callable[[], float] = time.monotonic
    chance: Callable[[], float] = random.random
    sleep: Callable[[float], None] = time.sleep
    sleep_async: Callable[[float], Awaitable[None]] = asyncio.sleep


class Attempts:
    """The attempts of one call."""

    def __init__(self, policy: RetryPolicy, pace: Pace) -> None:
        self._policy = policy
        self._pace = pace
        self._deadline = pace.clock() + policy.deadline_s
        self._failed = 0

    def remaining_s(self) -> float:
        """The time that is left; raises DeadlineExceeded when none is."""
        remaining_s = self._deadline - self._pace.clock()
        if remaining_s <= 0:
            raise DeadlineExceeded(f"the call took longer than {self._policy.deadline_s} s")
        return remaining_s

    @asynccontextmanager
    async def bounded(self) -> AsyncIterator[None]:
        """End the block with DeadlineExceeded when no time is left, whatever it waits for."""
        try:
            async with asyncio.timeout(self.remaining_s()):
                yield
        except TimeoutError as error:
            raise DeadlineExceeded(f"the call took longer than {self._policy.deadline_s} s") from (
                error
            )

    def pause_s(self, error: PatchmillError) -> float | None:
        """How long to wait before the next attempt; None when `error` is final."""
        self._failed += 1
        error.attempts = self._failed
        if not error.repeatable or self._failed >= self._policy.attempts:
            return None
        ceiling_s = min(self._policy.cap_s, self._policy.base_s * 2.0 ** (self._failed - 1))
        pause_s = self._pace.chance() * ceiling_s + (error.retry_after_s or 0.0)
        if self._pace.clock() + pause_s >= self._deadline:
            return None
        return pause_s
