"""Every way a chat can fail, as the status and the JSON that OpenAI clients expect.

In come errors of this frontend, of patchmill's client and of httpx; out comes a
`Fault`. Whose fault it is decides the status: 4xx the caller's, 502 and 503 that
of a server behind.
"""

import httpx
from patchmill_client import (
    InvalidInput,
    PatchmillError,
    Refusal,
    RequestRefused,
    UnsafeRequest,
    WrongElements,
)


class Fault(Exception):
    """What the caller is told."""

    def __init__(self, status: int, message: str, retry_after_s: float | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self.retry_after_s = retry_after_s

    def document(self) -> dict[str, object]:
        kind = "invalid_request_error" if self.status < 500 else "server_error"
        return {"error": {"message": self.message, "type": kind, "code": self.status}}


def fault_of(error: Exception) -> Fault:
    """The Fault that another error means; raises what it does not know."""
    match error:
        case Fault():
            return error
        case Refusal(status=429 | 503):
            return Fault(503, f"pictures: {error}", error.retry_after_s)
        case Refusal(status=401 | 403):
            return Fault(502, "patchmill does not know this frontend")
        case RequestRefused():
            return Fault(400, f"pictures: {error}")
        case InvalidInput(item=int(item)):
            return Fault(400, f"pictures: item {item}: {error}")
        case WrongElements():
            return Fault(500, f"this frontend's settings do not fit the engine: {error}")
        case UnsafeRequest():
            return Fault(400, str(error))
        case PatchmillError():
            return Fault(502, f"patchmill: {error}")
        case httpx.HTTPError():
            return Fault(502, f"the engine does not answer: {type(error).__name__}")
    raise error
