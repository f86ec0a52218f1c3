"""What an answer is worth: right, shed, or wrong and why.

What a request wanted, a status and a body go in, an `Outcome` comes out. Bytes are compared
only where the caller asks for it (`compared`), as it costs the generator time.
"""

import hashlib
import json
from dataclasses import dataclass
from typing import Any

import msgpack

SHED_STATUS = 429
"""The service says "not now": load that was shed in good order, no failure."""

UNREADABLE = (ValueError, KeyError, TypeError, msgpack.UnpackException)
"""What reading something else than was expected can raise."""


@dataclass(frozen=True)
class Outcome:
    """`wrong` says what is wrong with an answer; None where nothing is."""

    shed: bool = False
    wrong: str | None = None


@dataclass(frozen=True)
class Patches:
    """200, and of each item the elements with this SHA-256, in hex."""

    digests: tuple[str, ...]

    def judged(self, status: int, _: bytes) -> Outcome:
        return _right_status(200, status)

    def compared(self, body: bytes) -> Outcome:
        """Of a 200: whether it is byte-equal to what was computed elsewhere."""
        try:
            answer = msgpack.unpackb(body)
            data = memoryview(answer["pixel_values"]["data"])
            ends = [(each["offset_bytes"], each["length_bytes"]) for each in answer["items"]]
        except UNREADABLE:
            return Outcome(wrong="no answer in the form of docs/wire.md")
        found = tuple(hashlib.sha256(data[at : at + length]).hexdigest() for at, length in ends)
        if found != self.digests or sum(length for _, length in ends) != len(data):
            return Outcome(wrong="elements differ")
        return Outcome()


@dataclass(frozen=True)
class Tokens:
    """200, and a plan of this many tokens for each picture."""

    counts: tuple[int, ...]

    def judged(self, status: int, _: bytes) -> Outcome:
        return _right_status(200, status)

    def compared(self, body: bytes) -> Outcome:
        try:
            found = tuple(each["num_tokens"] for each in json.loads(body)["items"])
        except UNREADABLE:
            return Outcome(wrong="no plan")
        return Outcome(wrong=None if found == self.counts else "tokens differ")


@dataclass(frozen=True)
class Refusal:
    """A problem document of this status and code."""

    status: int
    code: str

    def judged(self, status: int, body: bytes) -> Outcome:
        if status == SHED_STATUS or status != self.status:
            return _right_status(self.status, status)
        code = _code(body)
        return Outcome(wrong=None if code == self.code else f"{code}, not {self.code}")

    def compared(self, body: bytes) -> Outcome:
        return self.judged(self.status, body)


Wanted = Patches | Tokens | Refusal


def _right_status(wanted: int, status: int) -> Outcome:
    if status == SHED_STATUS:
        return Outcome(shed=True)
    return Outcome(wrong=None if status == wanted else f"status {status}, not {wanted}")


def _code(body: bytes) -> Any:
    try:
        return json.loads(body)["code"]
    except UNREADABLE:
        return "no problem document"
