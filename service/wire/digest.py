"""An item's identity: SHA-256 over a policy and the encoded bytes.

Two items have the same digest when the same bytes went through the same policy
(profile, dtype, background, library versions, …), and so have the same
elements. Nothing that a client can write into a file's metadata takes part
other than as bytes.
"""

import hashlib
import json
from collections.abc import Mapping

from service.types import Item


def policy_text(facts: Mapping[str, object]) -> bytes:
    """The policy as canonical JSON: keys sorted, no white space, ASCII."""
    return json.dumps(facts, sort_keys=True, separators=(",", ":")).encode("ascii")


def digest(policy: bytes, item: Item) -> str:
    """64 hex digits. Every field is preceded by its length, so none can pose as another."""
    state = hashlib.sha256()
    for field in (policy, item.type.encode("ascii"), *item.frames):
        state.update(len(field).to_bytes(8, "little"))
        state.update(field)
    return state.hexdigest()
