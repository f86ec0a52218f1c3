"""Traces on their way to a collector, from the real service."""

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from importlib.util import find_spec

import pytest

from tests.golden_data import IMAGES
from tests.service.running import running
from tests.service.test_cli import patchmill

PNG = (IMAGES / "37x19.png").read_bytes()
TRACE = "0af7651916cd43dd8448eb211c80319c"
HEADERS = {"traceparent": f"00-{TRACE}-b7ad6b7169203331-01"}


def is_installed() -> bool:
    names = ("opentelemetry", "opentelemetry.sdk", "opentelemetry.exporter")
    return all(find_spec(name) for name in names)


needs_extra = pytest.mark.skipif(not is_installed(), reason="the extra otel is not installed")


class Collector(HTTPServer):
    """Keeps what is sent to it."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.sent: list[tuple[str, bytes]] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


class _Handler(BaseHTTPRequestHandler):
    server: Collector

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.sent.append((self.path, body))
        self.send_response(200)
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""


@pytest.fixture
def collector() -> Iterator[Collector]:
    with Collector() as there:
        thread = threading.Thread(target=there.serve_forever)
        thread.start()
        yield there
        there.shutdown()
        thread.join()


@needs_extra
def test_a_request_s_span_reaches_the_collector_under_the_caller_s_trace(
    collector: Collector,
) -> None:
    variables = {"PATCHMILL_OTEL": "on", "OTEL_EXPORTER_OTLP_ENDPOINT": collector.url}
    with running(variables) as service:
        assert service.post(PNG, headers=HEADERS).status_code == 200
    [(path, body)] = collector.sent  # sent at the end: nothing waits in the worker
    assert path == "/v1/traces"
    assert bytes.fromhex(TRACE) in body
    assert all(stage in body for stage in (b"receive", b"decode", b"patchify", b"send"))
    assert b"health" not in body


@needs_extra
def test_a_collector_that_is_not_there_holds_nobody_up() -> None:
    with Collector() as gone:
        url = gone.url
    with running({"PATCHMILL_OTEL": "on", "OTEL_EXPORTER_OTLP_ENDPOINT": url}) as service:
        assert service.post(PNG).status_code == 200
        service.process.terminate()
        assert service.process.wait(20) == 0


@pytest.mark.skipif(is_installed(), reason="the extra otel is installed")
def test_without_the_extra_the_setting_is_told_and_exits_2() -> None:
    ended = patchmill("serve", PATCHMILL_OTEL="on")
    assert ended.returncode == 2
    assert "patchmill[otel]" in ended.stderr
