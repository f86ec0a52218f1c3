"""What all work at once may hold: pixels being decoded, and bytes of answers until they are sent.

A thread asks for its request's share once the headers are known, and waits in
line until there is room: first in, first out, so a large request is not
overtaken for ever. Waiting threads cost nothing else, because whoever is
behind has to wait as well.
"""

import threading
from collections import deque
from collections.abc import Callable

from service.errors import OverBudget
from service.types import Budgets

LOOK_AGAIN_S = 0.02
"""An answer's end is seen by looking: the finalizer of its buffer must not take locks."""


class Budget:
    """Pixels and answer bytes of one worker; any thread may ask."""

    def __init__(self, budgets: Budgets) -> None:
        self._limits = budgets
        self._changed = threading.Condition()
        self._line: deque[object] = deque()
        # Finalizers append here and do nothing else: one may run inside any allocation,
        # also while this thread holds the lock.
        self._gone: deque[int] = deque()
        self._pixels = 0
        self._answer_bytes = 0

    def reserve(self, pixels: int, answer_bytes: int, check: Callable[[], None]) -> None:
        """Take both, or wait for them; `check` is called while waiting and may raise.

        Raises OverBudget when one alone is more than there is in all.
        """
        _check_fits(pixels, self._limits.pixels, "pixels", "pixel_budget")
        _check_fits(
            answer_bytes, self._limits.answer_bytes, "bytes of answer", "answer_budget_bytes"
        )
        me = object()
        with self._changed:
            self._line.append(me)
            try:
                while self._line[0] is not me or not self._has_room(pixels, answer_bytes):
                    check()
                    self._changed.wait(LOOK_AGAIN_S)
                self._pixels += pixels
                self._answer_bytes += answer_bytes
            finally:
                self._line.remove(me)
                self._changed.notify_all()

    def decoded(self, pixels: int) -> None:
        """The pixels are patches now."""
        with self._changed:
            self._pixels -= pixels
            self._changed.notify_all()

    def answer_gone(self, answer_bytes: int) -> None:
        """The answer is sent or dropped. Takes no lock: safe in a finalizer."""
        self._gone.append(answer_bytes)

    @property
    def waiting(self) -> bool:
        """Whether somebody waits for a share just now."""
        return bool(self._line)

    @property
    def pixels(self) -> int:
        return self._pixels

    @property
    def answer_bytes(self) -> int:
        with self._changed:
            self._sort_in()
            return self._answer_bytes

    def _has_room(self, pixels: int, answer_bytes: int) -> bool:
        self._sort_in()
        return (
            self._pixels + pixels <= self._limits.pixels
            and self._answer_bytes + answer_bytes <= self._limits.answer_bytes
        )

    def _sort_in(self) -> None:
        while self._gone:
            self._answer_bytes -= self._gone.popleft()


def _check_fits(wanted: int, limit: int, what: str, setting: str) -> None:
    if wanted > limit:
        raise OverBudget(
            f"the request has {wanted} {what}, all requests together may have {limit}",
            limit=limit,
            actual=wanted,
            setting=setting,
        )
