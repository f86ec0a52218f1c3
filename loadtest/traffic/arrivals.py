"""When one user's requests are due, whatever became of those before.

An open loop: users that ask again as soon as they are answered would ask less of a service
the slower it is. Here a user has one request in each period, at a random moment of it. Of many
users together that is as bunched as chance makes it, and still the rate that was asked for.
"""

import math
import random

PERIOD_S = 4.0
"""Seconds between a user's requests, in the mean."""

LATE_S = 0.25
"""A request that begins later than this shows a generator that cannot keep up."""


def users(per_second: float) -> int:
    """How many users ask at this rate."""
    return max(1, math.ceil(per_second * PERIOD_S))


class Arrivals:
    """The schedule of one user that came at `begins_s`."""

    def __init__(self, begins_s: float, rng: random.Random) -> None:
        self._rng = rng
        self._period_begins_s = begins_s
        self.due_s = self._drawn()

    def advance(self) -> float:
        """When the next one is due."""
        self._period_begins_s += PERIOD_S
        self.due_s = self._drawn()
        return self.due_s

    def _drawn(self) -> float:
        return self._period_begins_s + self._rng.random() * PERIOD_S
