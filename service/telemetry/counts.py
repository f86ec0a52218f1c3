"""What happened to requests since the worker started, as plain numbers.

Counted on the event loop only, so there are no locks.
"""

from collections import Counter
from enum import StrEnum


class Phase(StrEnum):
    """How far a request had come when its client left."""

    UPLOAD = "upload"
    WORK = "work"
    ANSWER = "answer"


class Counts:
    """`refused` is by code, `left` by phase; what is answered or left is not refused."""

    def __init__(self) -> None:
        self.answered = 0
        self.refused: Counter[str] = Counter()
        self.left: Counter[Phase] = Counter()

    def facts(self) -> dict[str, object]:
        return {"answered": self.answered, "refused": self.refused, "left": self.left}
