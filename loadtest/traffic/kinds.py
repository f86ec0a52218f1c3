"""The kinds of requests, and how often each comes.

The mix is a guess at a chat frontend's: mostly one picture a message, some with
several, few videos. Every kind has a row of its own in reports and gates.
"""

from enum import StrEnum


class Kind(StrEnum):
    """What a user posts. The value is the name in reports and in gates.toml."""

    SINGLE = "single"
    """One picture as raw bytes."""
    BATCH = "batch"
    """Four pictures as multipart/form-data."""
    PARTS = "parts"
    """One picture as an OpenAI content part, base64 in JSON."""
    CHUNK = "chunk"
    """Four frames of a video as msgpack."""
    PLAN = "plan"
    """Sizes only, to /plan."""
    HOSTILE = "hostile"
    """What must be refused, by its name."""


WEIGHTS = {
    Kind.SINGLE: 12,
    Kind.BATCH: 4,
    Kind.PARTS: 4,
    Kind.CHUNK: 1,
    Kind.PLAN: 2,
    Kind.HOSTILE: 2,
}
"""Users of each kind, of 25."""
