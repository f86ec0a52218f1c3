"""Who may come in: a ticket for each request, given before a byte of its body is read.

A ticket takes one place of the queue and the bytes of its body, and gives both
back when its request has ended. There is no waiting here: what has no room is
refused at once, with the time after which trying again makes sense. All calls
come from the event loop, so there are no locks.

A sender that trickles holds its place for nothing. So when room is short, the
oldest upload that is slower than `SLOW_BYTES_PER_S` gives way to whoever asks.
"""

import math
import time
from collections.abc import Callable
from typing import TypeVar

from service.errors import BodiesFull, Draining, OverBudget, QueueFull, SlowRequest, TooMuchAtOnce
from service.types import Budgets

SLOW_BYTES_PER_S = 256 * 1024
PATIENCE_S = 1.0
"""No upload is called slow before; an honest one is mostly over by then."""
RATE_WINDOW_S = 5.0
"""How far back the drain rate looks."""
MAX_RETRY_AFTER_S = 60

Refusal = TypeVar("Refusal", bound=TooMuchAtOnce)


class Admission:
    """The door of one worker. `clock` is in seconds and never goes back."""

    def __init__(self, budgets: Budgets, clock: Callable[[], float] = time.monotonic) -> None:
        self._budgets = budgets
        self._clock = clock
        self._uploads: dict[Ticket, None] = {}
        self._drained = DrainRate(clock)
        self.tickets = 0
        self.body_bytes = 0
        self.closed = False

    def enter(self, cost_bytes: int | None) -> "Ticket":
        """A ticket for a body that will cost so many bytes; None is not known before it is read.

        Raises QueueFull and BodiesFull, Draining once the door is closed, and
        OverBudget for a body that could never come in.
        """
        if self.closed:
            raise Draining("send the request again: another worker takes it")
        if (full := self.full()) is not None:
            raise full
        ticket = Ticket(self, self._clock())
        self.charge(cost_bytes or 0)
        ticket.cost_bytes = cost_bytes or 0
        self.tickets += 1
        self._uploads[ticket] = None
        return ticket

    def full(self) -> QueueFull | None:
        """What refuses whoever comes now, where there is no place and nobody who gives way."""
        limit = self._budgets.queue_length
        if self.tickets < limit or self._make_way():
            return None
        return self._refusal(QueueFull, limit, self.tickets, "queue_length")

    def charge(self, more_bytes: int, ticket: "Ticket | None" = None) -> None:
        """Count further bytes of a body, of a new one or of a ticket's; raises as `enter`."""
        held_bytes = ticket.cost_bytes if ticket else 0
        limit = self._budgets.body_bytes
        if held_bytes + more_bytes > limit:
            raise OverBudget(
                f"the body takes {held_bytes + more_bytes} bytes of memory, all bodies together "
                f"may take {limit}; JSON takes four times its length, other forms twice",
                limit=limit,
                actual=held_bytes + more_bytes,
                setting="body_budget_bytes",
            )
        while self.body_bytes + more_bytes > limit:
            if not self._make_way(ticket):
                actual = self.body_bytes + more_bytes
                raise self._refusal(BodiesFull, limit, actual, "body_budget_bytes")
        self.body_bytes += more_bytes

    def uploaded(self, ticket: "Ticket") -> None:
        """The whole body is here: the ticket cannot be asked to give way any more."""
        self._uploads.pop(ticket, None)

    def left(self, ticket: "Ticket") -> None:
        """Take back what the ticket held."""
        self._uploads.pop(ticket, None)
        self.tickets -= 1
        self.body_bytes -= ticket.cost_bytes
        self._drained.count()

    def close(self) -> None:
        """Refuse every request from now on."""
        self.closed = True

    def _make_way(self, asking: "Ticket | None" = None) -> bool:
        """End the oldest slow upload but the one that asks; False when there is none."""
        now_s = self._clock()
        for ticket in self._uploads:  # in the order of entry
            age_s = now_s - ticket.entered_s
            if age_s < PATIENCE_S:
                return False
            if ticket is not asking and ticket.received_bytes < age_s * SLOW_BYTES_PER_S:
                ticket.give_way()
                return True
        return False

    def _refusal(self, kind: type[Refusal], limit: int, actual: int, setting: str) -> Refusal:
        after_s = self._drained.seconds_for(self.tickets)
        refusal = kind(f"try again in {after_s} s", limit=limit, actual=actual, setting=setting)
        refusal.retry_after_s = after_s
        return refusal


class Ticket:
    """The right of one request to be in progress; made by `Admission.enter` alone."""

    def __init__(self, admission: Admission, entered_s: float) -> None:
        self._admission = admission
        self._on_give_way: Callable[[], None] | None = None
        self._valid = True
        self._holders = 1
        self.entered_s = entered_s
        self.received_bytes = 0
        self.cost_bytes = 0

    def receive(self, length_bytes: int, cost_bytes: int) -> None:
        """Count bytes that arrived; `cost_bytes` is what of them was not known at entry.

        Raises as `check`, and as `Admission.charge`.
        """
        self.check()
        self.received_bytes += length_bytes
        if cost_bytes:
            self._admission.charge(cost_bytes, self)
            self.cost_bytes += cost_bytes

    def uploading(self, on_give_way: Callable[[], None]) -> None:
        """Call this when the upload has to end before it is whole."""
        self._on_give_way = on_give_way

    def uploaded(self) -> None:
        self._admission.uploaded(self)

    def give_way(self) -> None:
        """Leave at once, and end the upload."""
        self._end()
        if self._on_give_way:
            self._on_give_way()

    def check(self) -> None:
        """Raises SlowRequest when the ticket had to give way."""
        if not self._valid:
            raise SlowRequest(
                f"an upload slower than {SLOW_BYTES_PER_S} bytes/s gives way when room is short"
            )

    def keep(self) -> None:
        """One more has to leave before anything is given back: a thread, beside the handler."""
        self._holders += 1

    def leave(self) -> None:
        """Give everything back once all who hold the ticket have left."""
        self._holders -= 1
        if self._holders == 0:
            self._end()

    def _end(self) -> None:
        if self._valid:
            self._valid = False
            self._admission.left(self)


class DrainRate:
    """How many requests leave a second: a mean in which the past fades over RATE_WINDOW_S."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._start_s = self._last_s = clock()
        self._faded = 0.0

    def count(self) -> None:
        self._fade()
        self._faded += 1

    def seconds_for(self, requests: int) -> int:
        """Whole seconds until so many have left, 1 to MAX_RETRY_AFTER_S.

        1 while nothing can be known: a service that has just started is quick to try again.
        """
        self._fade()
        age = (self._last_s - self._start_s) / RATE_WINDOW_S
        if self._faded == 0 and age < 1:
            return 1
        rate = self._faded / (RATE_WINDOW_S * -math.expm1(-age)) if age else math.inf
        if rate * MAX_RETRY_AFTER_S <= requests:
            return MAX_RETRY_AFTER_S
        return max(1, math.ceil(requests / rate))

    def _fade(self) -> None:
        now_s = self._clock()
        self._faded *= math.exp((self._last_s - now_s) / RATE_WINDOW_S)
        self._last_s = now_s
