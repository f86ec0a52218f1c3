"""A deadline that also holds while the headers of an answer drip in.

httpx bounds each read from the network, not all of them together: a server that
sends a byte just inside the read timeout could hold a call without end. So each
read and write of the sync client is given no more time than its call has left.
asyncio has `timeout` for that; threads have nothing like it.
"""

import ssl
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import httpcore
import httpx

_remaining: ContextVar[Callable[[], float] | None] = ContextVar("remaining", default=None)
"""What is left of the call that this thread carries out, in seconds; raises when it is over."""


@contextmanager
def bounded(remaining_s: Callable[[], float]) -> Iterator[None]:
    """Give every network operation of the block at most what `remaining_s` says then."""
    token = _remaining.set(remaining_s)
    try:
        yield
    finally:
        _remaining.reset(token)


def transport(limits: httpx.Limits) -> httpx.HTTPTransport:
    """httpx's own transport over streams that know the deadline.

    httpx hands httpcore's public `network_backend` on to nobody, so it is put
    in place here; test_client.py notices when that place moves.
    """
    made = httpx.HTTPTransport(limits=limits)
    pool: Any = made._pool
    pool._network_backend = _Backend(pool._network_backend)
    return made


def _within(timeout: float | None) -> float | None:
    remaining_s = _remaining.get()
    if remaining_s is None:
        return timeout
    left_s = remaining_s()
    return left_s if timeout is None else min(timeout, left_s)


class _Backend(httpcore.NetworkBackend):
    """Opens streams as `inner` does, and wraps them."""

    def __init__(self, inner: httpcore.NetworkBackend) -> None:
        self._inner = inner

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.NetworkStream:
        return _Stream(
            self._inner.connect_tcp(host, port, _within(timeout), local_address, socket_options)
        )

    def connect_unix_socket(
        self,
        path: str,
        timeout: float | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.NetworkStream:
        return _Stream(self._inner.connect_unix_socket(path, _within(timeout), socket_options))

    def sleep(self, seconds: float) -> None:
        self._inner.sleep(seconds)


class _Stream(httpcore.NetworkStream):
    """A stream whose every step ends with the call's deadline."""

    def __init__(self, inner: httpcore.NetworkStream) -> None:
        self._inner = inner

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        return self._inner.read(max_bytes, _within(timeout))

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        self._inner.write(buffer, _within(timeout))

    def close(self) -> None:
        self._inner.close()

    def start_tls(
        self,
        ssl_context: ssl.SSLContext,
        server_hostname: str | None = None,
        timeout: float | None = None,
    ) -> httpcore.NetworkStream:
        return _Stream(self._inner.start_tls(ssl_context, server_hostname, _within(timeout)))

    def get_extra_info(self, info: str) -> Any:
        return self._inner.get_extra_info(info)
