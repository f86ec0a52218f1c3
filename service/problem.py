"""A fault as RFC 9457 tells it: its facts and nothing else, for whoever writes the answer."""

from typing import Any

from service.errors import PatchmillError
from service.settings import variable

MEDIA_TYPE = "application/problem+json"


def content(error: PatchmillError) -> dict[str, Any]:
    """The map that the answer holds."""
    told: dict[str, Any] = {
        "type": f"urn:patchmill:problem:{error.code}",
        "title": error.title,
        "status": error.status,
        "detail": error.detail,
        "code": error.code,
        "retryable": error.retryable,
    }
    facts = {
        "item": error.item,
        "limit": error.limit,
        "actual": error.actual,
        "setting": variable(error.setting) if error.setting else None,
    }
    return told | {name: fact for name, fact in facts.items() if fact is not None}
