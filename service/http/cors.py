"""What pages of other origins may do, where an operator names such origins; nothing otherwise."""

from typing import TypedDict


class Allowed(TypedDict):
    """The arguments of Starlette's middleware, beside the origins."""

    allow_methods: tuple[str, ...]
    allow_headers: tuple[str, ...]
    expose_headers: tuple[str, ...]


ALLOWED = Allowed(
    allow_methods=("GET", "POST"),
    allow_headers=("Authorization", "Content-Type", "X-Request-ID", "traceparent", "tracestate"),
    expose_headers=("X-Request-ID", "Server-Timing", "Retry-After"),
)
"""No cookies: `Authorization` is set by the page itself, so no other page can borrow it."""
