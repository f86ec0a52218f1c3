"""The answer on the wire: a small head and one memoryview, sent one after the other."""

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from service.types import Frame

MEDIA_TYPE = "application/msgpack"


class FrameResponse(Response):
    """Sends a packed answer without joining it: 40 MB cost no second 40 MB."""

    media_type = MEDIA_TYPE

    def __init__(self, frame: Frame) -> None:
        super().__init__(headers={"Content-Length": str(frame.length_bytes)})
        self._frame = frame

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:  # noqa: ARG002
        start = {"status": self.status_code, "headers": self.raw_headers}
        await send({"type": "http.response.start", **start})
        for part, more in ((self._frame.head, True), (self._frame.data, False)):
            await send({"type": "http.response.body", "body": part, "more_body": more})
