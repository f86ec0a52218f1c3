"""Requests that never come to their end: each is cut short while it has cost next to nothing."""

import socket

import pytest

from service.serve.protocol import MAX_WAITING
from tests.golden_data import IMAGES
from tests.hostile.memory import peak_growth_bytes
from tests.hostile.test_requests import CHUNKED, PNG, POST, SHAPES, exchange
from tests.load.connection import until_free
from tests.service.running import Running

TOTAL_BYTES = 16 * 2**20
SLACK_BYTES = 4 * 2**20
FIELDS = b"X-Abc: yyyyyyyy\r\n" * 4096

ENDLESS: dict[str, tuple[bytes, bytes]] = {
    "a header": (POST + b"X: ", b"x" * 65536),
    "headers": (POST, FIELDS),
    "headers, one byte each": (POST, b"a:\r\n" * 16384),
    "a path": (b"GET /", b"a" * 65536),
    "a query": (b"POST /preprocess?a=", b"a" * 65536),
    "a method": (b"", b"A" * 65536),
    "a chunk's extension": (POST + CHUNKED + b"\r\n5;", b"x" * 65536),
    "a chunk's size": (POST + CHUNKED + b"\r\n", b"0" * 65536),
    "trailers": (POST + CHUNKED + b"\r\n5\r\nhello\r\n0\r\n", FIELDS),
    "a trailer": (POST + CHUNKED + b"\r\n5\r\nhello\r\n0\r\nX: ", b"x" * 65536),
    "chunks of one byte": (POST + CHUNKED + b"\r\n", b"1\r\nx\r\n" * 8192),
    "empty lines": (b"", b"\r\n" * 32768),
    "requests at once": (b"", b"GET /health/live HTTP/1.1\r\nHost: here\r\n\r\n" * 1024),
    "bodies at once": (b"", (POST + b"Content-Length: 1\r\n\r\nx") * 1024),
    "large bodies at once": (b"", POST + b"Content-Length: 60000\r\n\r\n" + b"x" * 60000),
}
"""A beginning, and what then comes over and over."""


@pytest.mark.parametrize(("begin", "more"), ENDLESS.values(), ids=ENDLESS)
def test_what_never_ends_takes_no_memory(service: Running, begin: bytes, more: bytes) -> None:
    [worker] = service.worker_pids()

    def send() -> None:
        with socket.create_connection(("127.0.0.1", service.port), 30) as connection:
            connection.settimeout(1)  # a reader that is deaf to answers stalls some of them
            try:
                connection.sendall(begin)
                for _ in range(TOTAL_BYTES // len(more)):
                    connection.sendall(more)
            except OSError:
                pass  # cut off, as it should be

    # A body grows to its limit at most, which "chunks of one byte" do not reach here.
    assert peak_growth_bytes(worker, send) <= SLACK_BYTES
    assert service.worker_pids() == [worker]
    assert service.client.get("/health/ready").status_code == 200


LONG = {
    name: SHAPES[name] for name in ("100 KB of one header", "10,000 headers", "a target of 100 KB")
}


@pytest.mark.parametrize("request_", LONG.values(), ids=LONG)
def test_headers_longer_than_anybody_needs_are_a_400(service: Running, request_: bytes) -> None:
    answer = exchange(service, request_)
    assert answer.startswith(b"HTTP/1.1 400 ")
    assert b'"limit": 65536' in answer
    assert b"connection: close" in answer


def test_a_trailer_is_no_header(service: Running) -> None:
    trailer = b"\r\n5\r\nhello\r\n0\r\nContent-Encoding: gzip\r\nContent-Type: application/json\r\n"
    answer = exchange(service, POST + CHUNKED + trailer + b"\r\n")
    assert b'"unsupported_format"' in answer  # the body's own fault: five letters


def test_requests_sent_at_once_are_answered_in_order(service: Running) -> None:
    paths = (b"/health/live", b"/nothing", b"/health/ready", b"/preprocess")
    requests = (b"GET " + path + b" HTTP/1.1\r\nHost: here\r\n\r\n" for path in paths)
    answer = exchange(service, b"".join(requests))
    statuses = [part[:3] for part in answer.split(b"HTTP/1.1 ")[1:]]
    assert statuses == [b"200", b"404", b"200", b"405"]


def test_a_client_that_leaves_with_several_requests_open_is_no_error(service: Running) -> None:
    photo = (IMAGES / "4000x3000.jpg").read_bytes()
    request = POST + b"Content-Length: %d\r\n\r\n" % len(photo) + photo
    with socket.create_connection(("127.0.0.1", service.port), 30) as connection:
        connection.sendall(request * 2)
    until_free(service)  # and the fixture finds no stack in the log


def test_headers_as_long_as_browsers_send_are_taken(service: Running) -> None:
    answer = service.post(PNG, headers={"Cookie": "c" * 16_000})
    assert answer.status_code == 200


def test_as_many_requests_as_may_wait_are_answered(service: Running) -> None:
    requests = b"GET /health/live HTTP/1.1\r\nHost: here\r\n\r\n" * (MAX_WAITING + 1)
    assert exchange(service, requests).count(b"HTTP/1.1 200") == MAX_WAITING + 1
