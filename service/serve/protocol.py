"""The HTTP protocol: uvicorn's, with the deadlines that it lacks.

A client that sends half a header keeps its connection for ever, and one that
does not read its answer keeps the answer in our memory. Both get a deadline
here, where the connection is; the body's is the application's own. A client
whose long body is not wanted gets to read why before the connection closes.

What uvicorn keeps without a bound has one here: headers, fields behind a body,
and requests sent before the first is answered. 16 MB of these took up to 630 MB.

A full queue is told from here as well, as soon as the headers are complete.
Through the application a refusal takes 0.14 ms of CPU (EPYC, Zen 4), and ten
times more clients than there is room for would take the cores from those inside.
"""

import asyncio
import json
import logging
from collections.abc import Callable, Sequence
from math import ceil
from typing import Any, NoReturn, TypeAlias

import httptools
import uvicorn
from uvicorn._types import ASGI3Application
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

from service.errors import BadRequest, PatchmillError, SlowRequest
from service.pool.readers import Reader, Readers
from service.problem import MEDIA_TYPE, content
from service.telemetry.exchange import Phase
from service.telemetry.metrics import Metrics
from service.types import Timeouts

GATHERED_BYTES = 64 * 1024
MAX_HEADER_BYTES = 64 * 1024
"""Of a request's target and headers, or of whatever else between two pieces of a body. Each
header counts with 32 bytes more, what keeping it takes at least (as in RFC 9113, 6.5.2)."""
HEADER_COST_BYTES = 32
MAX_WAITING = 16
"""Requests of one connection behind the one being answered; none of them has a ticket yet."""
LINGER_S = 1.0
"""How long a refused client may go on sending before it has read the refusal."""


# uvicorn warns of every request that it cannot read or upgrade, so that anybody could fill the
# log. Those are counted (`Metrics.unreadable`); what it says of our own faults is an error.
_quiet = logging.getLogger("uvicorn.error.connection")
_quiet.setLevel(logging.ERROR)


Door: TypeAlias = Callable[[bytes, Sequence[tuple[bytes, bytes]]], tuple[bytes, bool] | None]
"""From a request's target and headers to a whole answer, and whether the connection goes on
after it; None lets the request in."""


class Config(uvicorn.Config):
    """uvicorn's configuration, and the deadlines."""

    timeouts: Timeouts


class Protocol(HttpToolsProtocol):
    """One connection."""

    config: Config

    def __init__(self, config: Config, *args: Any, **kwargs: Any) -> None:
        super().__init__(config, *args, **kwargs)
        self.logger = _quiet
        self._timeouts = config.timeouts
        self._metrics: Metrics | None = self.app_state.get("metrics")
        self._timer: asyncio.TimerHandle | None = None
        self._write_timer: asyncio.TimerHandle | None = None
        self._lingering = False
        self._refused = False
        self._fault: PatchmillError | None = None
        self._header_bytes = 0
        self._bytes_since_progress = 0
        self._in_headers = True
        self._answering: RequestResponseCycle | None = None
        self._door: Door | None = self.app_state.get("door")
        self._readers: Readers | None = self.app_state.get("readers")
        self._reader: Reader | None = None
        self._cut = False

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        # A large answer counts as written when the kernel has all of it, so that the write deadline
        # holds to its last byte; what is small is gathered, and leaves in one call with the rest.
        transport.set_write_buffer_limits(high=GATHERED_BYTES, low=0)
        self._await_header()

    def connection_lost(self, exc: Exception | None) -> None:
        if self._metrics and (self.flow.write_paused or self._cut) and not self._lingering:
            self._metrics.left(Phase.ANSWER)
        self._stop_timers()
        super().connection_lost(exc)
        self._tell_the_first_of_several()

    def data_received(self, data: bytes) -> None:
        if self._lingering or self.transport.is_closing():
            return
        self._bytes_since_progress += len(data)
        super().data_received(data)
        if self._bytes_since_progress > MAX_HEADER_BYTES and not self.transport.is_closing():
            self._refuse(_too_large(self._bytes_since_progress))
        self._await_something()

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._refused = False
        self._in_headers = True
        self._header_bytes = self._bytes_since_progress = 0
        if self._timer is None:
            self._await_header()

    def on_url(self, url: bytes) -> None:
        super().on_url(url)
        self._count_header(len(url))

    def on_header(self, name: bytes, value: bytes) -> None:
        if not self._in_headers:
            return  # behind a body, where it must not speak for the request (RFC 9110, 6.5.1)
        super().on_header(name, value)
        self._count_header(len(name) + len(value) + HEADER_COST_BYTES)

    def on_headers_complete(self) -> None:
        self._stop_waiting()
        self._in_headers = False
        self._bytes_since_progress = 0
        if len(self.pipeline) >= MAX_WAITING:
            self._stop_reading(
                BadRequest(f"more than {MAX_WAITING} requests wait in one connection")
            )
        self._check_headers()
        if self._refuse_at_the_door():
            return
        super().on_headers_complete()
        if _has_body(self.headers):
            self.cycle.transport = _Lingering(self)  # type: ignore[assignment]

    def on_body(self, body: bytes) -> None:
        self._bytes_since_progress = 0
        if self._refused:
            return
        if self.cycle.body and isinstance(self.cycle.body, bytes):
            # Bytes would be copied whole for every chunk, and a read may hold 40,000 of them.
            self.cycle.body = bytearray(self.cycle.body)
        super().on_body(body)

    def on_message_complete(self) -> None:
        self._stop_waiting()
        if self._refused:
            self.on_response_complete()
        else:
            super().on_message_complete()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if self.cycle and self.cycle.more_body and not self._refused and not self._lingering:
            self._await_rest()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._write_timer = self.loop.call_later(
            self._timeouts.write_timeout_s, self._not_read_in_time
        )
        if self._readers:
            self._reader = self._readers.begin(
                self.transport.get_write_buffer_size, self._not_read_in_time
            )

    def resume_writing(self) -> None:
        super().resume_writing()
        self._stop_reader()
        if self._write_timer:
            self._write_timer.cancel()
            self._write_timer = None

    def _unsupported_upgrade_warning(self) -> None:
        """Go on in HTTP/1.1, as RFC 9110, 7.8 allows; the old parser has stopped for good."""
        self.parser = httptools.HttpRequestParser(self)
        self.parser.set_dangerous_leniencies(lenient_data_after_close=True)  # as uvicorn has it

    def send_400_response(self, msg: str) -> None:  # noqa: ARG002
        self._refuse(self._fault or BadRequest("this is not a readable HTTP request"))

    def linger(self) -> None:
        """Say that nothing more comes, and drop what the client still sends, for a while."""
        if self.transport.is_closing() or self._lingering:
            return
        self._lingering = True
        if self.transport.can_write_eof():
            self.transport.write_eof()
        self.flow.resume_reading()
        self._stop_waiting()
        self._timer = self.loop.call_later(LINGER_S, self.transport.close)

    def write(self, data: bytes) -> None:
        """Write a part of an answer, and see whether the client was there for it.

        One that left just before fails the write at once, so it never counts as waiting.
        """
        self.transport.write(data)
        self._cut = self._cut or self.transport.is_closing()

    @property
    def lingering(self) -> bool:
        return self._lingering

    def _check_headers(self) -> None:
        """Refuse what the parser lets pass and would be misunderstood."""
        hosts = sum(name == b"host" for name, _ in self.headers)
        if hosts != 1 and self.parser.get_http_version() == "1.1":
            self._stop_reading(BadRequest(f"a request has one Host, not {hosts}"))  # RFC 9112, 3.2
        if self.parser.should_upgrade() and _has_body(self.headers):
            # The parser takes what follows for the other protocol, so the body would be lost.
            self._stop_reading(BadRequest("send a body without an Upgrade header"))

    def _refuse_at_the_door(self) -> bool:
        """Whether the request is refused here: no other answer may be on its way before it."""
        if self._door is None or not self._is_idle() or not self.parser.should_keep_alive():
            return False
        if self.parser.get_method() != b"POST" or self.parser.get_http_version() != "1.1":
            return False
        full = self._door(self.url, self.headers)
        if full is None:
            return False
        answer, goes_on = full
        self._refused = True
        self.transport.write(answer)
        if goes_on:
            self._await_rest()
        else:
            self.linger()
        return True

    def _is_idle(self) -> bool:
        return self.cycle is None or self.cycle.response_complete

    def _await_something(self) -> None:
        """Nothing may keep an idle connection for ever: uvicorn's own timer ends with any byte,
        also with an empty line, which begins no request."""
        if self._timer is None and self.timeout_keep_alive_task is None and self._is_idle():
            self._await_header()

    def _await_header(self) -> None:
        self._timer = self.loop.call_later(self._timeouts.header_timeout_s, self._no_header_in_time)

    def _await_rest(self) -> None:
        """Of a body that nobody reads: it may not keep the connection for ever either."""
        self._stop_waiting()
        self._timer = self.loop.call_later(self._timeouts.body_timeout_s, self.transport.close)

    def _stop_waiting(self) -> None:
        if self._timer:
            self._timer.cancel()
            self._timer = None

    def _no_header_in_time(self) -> None:
        if not self._is_idle():
            self._await_header()  # an earlier answer is still on its way
        elif self.scope is None:
            self.transport.close()  # not a byte: nobody is there to be told
        else:
            limit_s = self._timeouts.header_timeout_s
            self._refuse(
                SlowRequest(
                    f"the headers were not complete within {limit_s:g} s",
                    limit=ceil(limit_s),
                    setting="header_timeout_s",
                )
            )

    def _not_read_in_time(self) -> None:
        self.transport.abort()

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: ASGI3Application) -> None:
        self._answering = cycle
        super()._start_asgi_task(cycle, app)

    def _tell_the_first_of_several(self) -> None:
        """uvicorn tells the last request of a lost connection, which may not be the one at work."""
        self.pipeline.clear()
        if self._answering and not self._answering.response_complete:
            self._answering.disconnected = True
            self._answering.message_event.set()

    def _count_header(self, length_bytes: int) -> None:
        self._header_bytes += length_bytes
        if self._header_bytes > MAX_HEADER_BYTES:
            self._stop_reading(_too_large(self._header_bytes))

    def _stop_reading(self, fault: PatchmillError) -> NoReturn:
        """Leave the parser at once: it would go on to the end of what came with this piece."""
        self._fault = fault
        raise fault

    def _refuse(self, error: PatchmillError) -> None:
        """Answer without the application, which never saw a request."""
        first = self._answering
        if first and first.response_started and not first.response_complete:
            self.transport.close()  # no answer of its own inside another one
            return
        body = json.dumps(content(error)).encode()
        if self._metrics:
            self._metrics.unreadable(error.status, error.code, len(body))
        head = (
            f"HTTP/1.1 {error.status} \r\ncontent-type: {MEDIA_TYPE}\r\n"
            f"content-length: {len(body)}\r\nconnection: close\r\n\r\n"
        )
        self.transport.write(head.encode() + body)
        self.transport.close()

    def _stop_reader(self) -> None:
        if self._readers and self._reader:
            self._readers.end(self._reader)
            self._reader = None

    def _stop_timers(self) -> None:
        self._stop_waiting()
        self._stop_reader()
        if self._write_timer:
            self._write_timer.cancel()


class _Lingering:
    """A connection's transport whose `close` lingers while a body is still on its way."""

    def __init__(self, protocol: Protocol) -> None:
        self._protocol = protocol
        self._cycle = protocol.cycle
        self.write = protocol.write

    def close(self) -> None:
        if self._cycle.more_body:
            self._protocol.linger()
        else:
            self._protocol.transport.close()

    def is_closing(self) -> bool:
        return self._protocol.lingering or self._protocol.transport.is_closing()


def _too_large(actual_bytes: int) -> BadRequest:
    return BadRequest(
        f"headers of {actual_bytes} bytes or more came, at most {MAX_HEADER_BYTES} are read",
        limit=MAX_HEADER_BYTES,
        actual=actual_bytes,
    )


def _has_body(headers: list[tuple[bytes, bytes]]) -> bool:
    return any(
        (name == b"content-length" and value != b"0") or name == b"transfer-encoding"
        for name, value in headers
    )
