"""The leave of one request to go on: its deadline, whether anybody still waits, and its share.

Made by the event loop when a request comes in, handed to the threads that work
on it, and asked between stages. It is the one thing that both sides touch.
"""

import time
from collections.abc import Callable
from math import ceil

from service.errors import ClientLeft, DeadlineExceeded
from service.pool.budget import Budget


class Permit:
    """`deadline_s` counts from now. Setting `abandoned` is safe from any thread."""

    def __init__(self, budget: Budget, deadline_s: float) -> None:
        self._budget = budget
        self._deadline_s = deadline_s
        self._ends_s = time.monotonic() + deadline_s
        self._pixels = 0
        self.abandoned = False

    @property
    def left_s(self) -> float:
        """Seconds until the deadline, below zero beyond it."""
        return self._ends_s - time.monotonic()

    def check(self) -> None:
        """Raises ClientLeft when nobody waits, DeadlineExceeded when the time is over."""
        if self.abandoned:
            raise ClientLeft
        if self.left_s <= 0:
            raise self.expired()

    def expired(self) -> DeadlineExceeded:
        return DeadlineExceeded(
            f"there was no answer within {self._deadline_s:g} s",
            limit=ceil(self._deadline_s),
            setting="deadline_s",
        )

    def reserve(self, pixels: int, answer_bytes: int) -> Callable[[], None]:
        """Wait for a share of the budget; the caller calls what is returned once, when the
        answer's memory is free, from wherever that happens.

        Raises OverBudget, and as `check`.
        """
        self._budget.reserve(pixels, answer_bytes, self.check)
        self._pixels = pixels
        return lambda: self._budget.answer_gone(answer_bytes)

    def decoded(self) -> None:
        """Give the pixels back; further calls change nothing."""
        pixels, self._pixels = self._pixels, 0
        if pixels:
            self._budget.decoded(pixels)
