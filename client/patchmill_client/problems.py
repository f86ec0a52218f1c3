"""A refusal's bytes into the error that they mean.

In come a status, headers and the start of a body, out comes the error to raise.
What the body says is used only as far as it has the right type; a status alone
is enough.
"""

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

from patchmill_client.errors import PatchmillError, UnexpectedAnswer, class_for

MAX_PROBLEM_BYTES = 64 * 1024
"""A problem document has a few hundred bytes; of anything longer the rest is not read."""
MAX_TEXT_CHARS = 1000
MAX_RETRY_AFTER_S = 24 * 3600.0
"""Beyond a day nobody waits; it also keeps absurd dates out of the arithmetic."""
PROBLEM_TYPE = "application/problem+json"


def error_of(status: int, headers: Mapping[str, str], body: bytes, now: datetime) -> PatchmillError:
    """The error for an answer that is not 200."""
    error: PatchmillError
    if 400 <= status < 600:
        error = _refusal(status, _document(headers, body))
        error.retry_after_s = retry_after_s(headers.get("retry-after", ""), now)
    elif 300 <= status < 400:
        error = UnexpectedAnswer(f"{status}: redirects are not followed", status)
    else:
        error = UnexpectedAnswer(f"{status} is no answer to this request", status)
    return error


def media_type(headers: Mapping[str, str]) -> str:
    """The bare content type, in lower case; empty where there is none."""
    return headers.get("content-type", "").partition(";")[0].strip().lower()


def retry_after_s(value: str, now: datetime) -> float | None:
    """Seconds from a `Retry-After`: a number of them or a date; None for anything else."""
    value = value.strip()
    if value.isascii() and value.isdigit():
        return min(float(value[:9]), MAX_RETRY_AFTER_S)
    try:
        when = parsedate_to_datetime(value)
    except (ValueError, OverflowError):
        return None
    if when.tzinfo is None:  # "-0000": in UTC, says RFC 5322
        when = when.replace(tzinfo=UTC)
    return min(max((when - now).total_seconds(), 0.0), MAX_RETRY_AFTER_S)


def _document(headers: Mapping[str, str], body: bytes) -> dict[str, object]:
    if media_type(headers) != PROBLEM_TYPE:
        return {}
    try:
        parsed = json.loads(body)
    except (ValueError, RecursionError):
        return {}
    return parsed if isinstance(parsed, dict) else {}


def _refusal(status: int, document: dict[str, object]) -> PatchmillError:
    retryable = document.get("retryable")
    return class_for(status)(
        _text(document, "detail"),
        status=status,
        code=_text(document, "code") or f"http_{status}",
        title=_text(document, "title") or "The answer has no problem document.",
        retryable=retryable if isinstance(retryable, bool) else None,
        item=_integer(document, "item"),
        limit=_integer(document, "limit"),
        actual=_integer(document, "actual"),
        setting=_text(document, "setting") or None,
    )


def _text(document: dict[str, object], name: str) -> str:
    value = document.get(name)
    return value[:MAX_TEXT_CHARS] if isinstance(value, str) else ""


def _integer(document: dict[str, object], name: str) -> int | None:
    value = document.get(name)
    return value if isinstance(value, int) and not isinstance(value, bool) else None
