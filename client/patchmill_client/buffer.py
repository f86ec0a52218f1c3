"""One aligned buffer for one body.

In come the pieces of a body as the connection hands them out, out comes the
checked head and the body in one 64-byte-aligned buffer. Until the head is whole
and believed, only the pieces themselves are kept; the buffer is then allocated
once, in its final size, and every further piece is copied to its place in it.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from patchmill_client.cursor import MoreNeeded
from patchmill_client.errors import AnswerOverLimit, LyingAnswer, TruncatedAnswer
from patchmill_client.values import Expected, Head
from patchmill_client.wire import ALIGNMENT_BYTES, max_head_bytes, read_head

STEP_BYTES = 64 * 1024
"""How much of one piece is looked at for the head at a time."""


@dataclass(frozen=True, slots=True)
class Body:
    """A whole answer: its head, and its data as (data_bytes,) uint8, 64-byte aligned."""

    head: Head
    data: NDArray[np.uint8]


class BodyReader:
    """Takes a body piece by piece.

    `length_bytes` is the answer's Content-Length, None where it has none; then
    the head alone says how long the body is.
    """

    def __init__(
        self, expected: Expected | None, max_answer_bytes: int, length_bytes: int | None
    ) -> None:
        self._expected = expected
        self._max_answer_bytes = max_answer_bytes
        self._length_bytes = length_bytes
        self._start = bytearray()
        self._next_try_bytes = 1
        self._head: Head | None = None
        self._body = memoryview(b"")
        self._array: NDArray[np.uint8] = np.empty(0, np.uint8)
        self._filled = 0
        most = max_head_bytes(expected) + max_answer_bytes
        if length_bytes is not None and length_bytes > most:
            raise AnswerOverLimit(
                f"the answer has {length_bytes} bytes, at most {most} are taken", most, length_bytes
            )

    def feed(self, piece: bytes | bytearray | memoryview) -> None:
        """Take the next piece; raises LyingAnswer, AnswerOverLimit."""
        rest = memoryview(piece)
        while self._head is None and rest:
            self._start += rest[:STEP_BYTES]
            rest = rest[STEP_BYTES:]
            # Trying only when the start has doubled keeps a body that comes in
            # single bytes from being parsed once a byte.
            if len(self._start) >= self._next_try_bytes:
                self._next_try_bytes = 2 * len(self._start)
                self._try_head()
        if rest:
            self._place(rest)

    def finish(self) -> Body:
        """The whole answer; raises TruncatedAnswer when pieces are missing."""
        if self._head is None:
            self._try_head()
        if self._head is None:
            raise TruncatedAnswer("body", f"ends inside its head, after {len(self._start)} bytes")
        if self._filled < self._head.body_bytes:
            raise TruncatedAnswer(
                "body", f"ends after {self._filled} of {self._head.body_bytes} bytes"
            )
        return Body(self._head, self._array[self._head.head_bytes :])

    def _try_head(self) -> None:
        try:
            head = read_head(memoryview(self._start), self._expected, self._max_answer_bytes)
        except MoreNeeded:
            return
        if self._length_bytes not in (None, head.body_bytes):
            raise LyingAnswer(
                "body", f"{head.body_bytes} bytes by its head, {self._length_bytes} by its length"
            )
        start = self._start
        self._head = head
        self._array = aligned(head.body_bytes)
        self._body = self._array.data
        self._start = bytearray()
        self._place(memoryview(start))

    def _place(self, piece: memoryview) -> None:
        end = self._filled + len(piece)
        if end > len(self._body):
            raise LyingAnswer("body", f"goes on after its {len(self._body)} bytes")
        self._body[self._filled : end] = piece
        self._filled = end


def aligned(length_bytes: int) -> NDArray[np.uint8]:
    """(length_bytes,) uint8, not initialised, whose address is a multiple of 64."""
    room = np.empty(length_bytes + ALIGNMENT_BYTES - 1, np.uint8)
    offset = -room.ctypes.data % ALIGNMENT_BYTES
    return room[offset : offset + length_bytes]
