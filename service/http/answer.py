"""The answer on the wire: a small head and one memoryview, sent one after the other.

Never joined: 40 MB cost no second 40 MB. The view keeps its buffer, and so its
share of the budget, until the transport has sent it.
"""

from collections.abc import Mapping

from starlette.types import Send

from service.types import Frame


async def send(frame: Frame, spent_s: Mapping[str, float], send: Send) -> None:
    """Send a packed answer with status 200, all but its end: `finish` is to follow."""
    headers = [
        (b"content-type", frame.media_type.encode()),
        (b"content-length", str(frame.length_bytes).encode()),
        (b"server-timing", server_timing(spent_s).encode()),
    ]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": frame.head, "more_body": True})
    await send({"type": "http.response.body", "body": frame.data, "more_body": True})


async def finish(send: Send) -> None:
    """End the answer once the client has taken all of it, or has left.

    The server writes the view at once and waits, before it takes anything more,
    until the kernel has the whole of it; so this is what sending takes.
    """
    await send({"type": "http.response.body", "body": b"", "more_body": False})


def server_timing(spent_s: Mapping[str, float]) -> str:
    """The stages as browsers and proxies read them (W3C Server Timing), in milliseconds."""
    return ", ".join(f"{stage};dur={spent * 1e3:.3f}" for stage, spent in spent_s.items())
