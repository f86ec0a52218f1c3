"""What never ends: headers, trailers and pipelined requests, cut off in bounded memory."""

import socket

import pytest

from tests.golden_data import IMAGES
from tests.hostile.memory import peak_growth_bytes
from tests.service.running import Running

PNG = (IMAGES / "37x19.png").read_bytes()
MAX_SENT = 24 * 2**20
MAX_GROWN = 8 * 2**20
POST = b"POST /preprocess HTTP/1.1\r\nHost: here\r\n"
ENDLESS = {
    "headers": (b"GET / HTTP/1.1\r\nHost: here\r\n", b"X: a\r\n" * 10_000),
    "one header": (b"GET / HTTP/1.1\r\nX: ", b"a" * 60_000),
    "a target": (b"GET /", b"a" * 60_000),
    "trailers": (POST + b"Transfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\n", b"X: a\r\n" * 10_000),
    "requests": (b"", b"GET /health/live HTTP/1.1\r\nHost: here\r\n\r\n" * 1000),
}


def pour(service: Running, first: bytes, then: bytes) -> int:
    """Bytes that the service takes before it closes the connection."""
    sent = 0
    with socket.create_connection(("127.0.0.1", service.port), 20) as connection:
        try:
            connection.sendall(first)
            while sent < MAX_SENT:
                connection.sendall(then)
                sent += len(then)
        except (ConnectionError, TimeoutError):
            pass
    return sent


@pytest.mark.parametrize("name", ENDLESS)
def test_what_never_ends_is_cut_off_and_fills_no_memory(service: Running, name: str) -> None:
    [worker] = service.worker_pids()
    sent: list[int] = []
    grown = peak_growth_bytes(worker, lambda: sent.append(pour(service, *ENDLESS[name])))
    assert sent[0] < MAX_SENT
    assert grown < MAX_GROWN
    assert service.post(PNG).status_code == 200


def test_headers_as_long_as_browsers_send_are_taken(service: Running) -> None:
    answer = service.post(PNG, headers={"Cookie": "c" * 16_000})
    assert answer.status_code == 200


def test_a_few_pipelined_requests_are_answered_in_order(service: Running) -> None:
    with socket.create_connection(("127.0.0.1", service.port), 20) as connection:
        connection.sendall(b"GET /health/live HTTP/1.1\r\nHost: here\r\n\r\n" * 8)
        answers = b""
        while answers.count(b'"live"') < 8:
            more = connection.recv(1 << 16)
            assert more
            answers += more
