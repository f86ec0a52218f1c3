"""The metrics add up, over workers, to what a load generator counts on its side."""

import os
import random
import signal
import socket
import threading
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

import httpx
import msgpack
import pytest

from service.http.paths import ROUTES
from service.telemetry.stages import STAGES
from tests.golden_data import IMAGES
from tests.load.connection import connected, until
from tests.service.running import Running, running
from tests.service.scrape import Scrape, scrape

PNG = (IMAGES / "37x19.png").read_bytes()
CHUNK = {"type": "video_chunk", "frames": [PNG, PNG, PNG]}
SEVERAL = msgpack.packb({"items": [{"type": "image", "data": PNG}, CHUNK]})
MSGPACK = {"Content-Type": "application/msgpack"}
TOO_LARGE = bytes(11_000)


@dataclass(frozen=True)
class Case:
    """A request, what has to come of it, and whether its body is read for that."""

    status: int
    reason: str = ""
    body: bytes = PNG
    query: dict[str, str] = field(default_factory=dict)
    headers: dict[str, str] = field(default_factory=dict)
    method: str = "POST"
    body_is_read: int = 1
    pictures: int = 0


CASES = (
    Case(200, pictures=1, query={"dtype": "uint8"}),
    Case(200, pictures=4, body=SEVERAL, headers=MSGPACK, query={"model": "kimi-k3"}),
    Case(400, "empty_body", body=b""),
    Case(400, "bad_msgpack", headers=MSGPACK),
    Case(405, "method_not_allowed", method="PUT", body_is_read=0),
    Case(413, "body_too_large", body=TOO_LARGE, body_is_read=0),
    Case(415, "unsupported_format", body=b"no picture at all"),
    Case(415, "unsupported_encoding", headers={"Content-Encoding": "gzip"}, body_is_read=0),
    Case(422, "bad_parameter", query={"dtype": "int4"}, body_is_read=0),
    Case(422, "unknown_model", query={"model": "nobody"}),
    Case(422, "truncated_image", body=PNG[:-30]),
)


@pytest.fixture(scope="module")
def two() -> Iterator[Running]:
    variables = {"PATCHMILL_WORKERS": "2", "PATCHMILL_MAX_BODY_BYTES": "10000"}
    with running(variables) as service:
        until(lambda: scrape(service.client).sum("patchmill_kernel_workers") == 2, "both ready")
        yield service


def settled(service: Running, answered: int) -> Scrape:
    """Once every answer is told of to its end."""

    def look() -> Scrape | None:
        found = scrape(service.client)
        sends = found.sum("patchmill_stage_seconds_count", stage="send")
        held = found.sum("patchmill_requests_in_progress")
        return found if sends == answered and held == 0 else None

    found: Scrape = until(look, "all is counted")
    return found


def test_the_numbers_are_those_of_the_load_generator(two: Running) -> None:
    assert len(SEVERAL) < 10_000 < len(TOO_LARGE)
    before = scrape(two.client)
    cases = [random.Random(7).choice(CASES) for _ in range(400)] + list(CASES)

    def send(case: Case) -> int:
        """The bytes of the answer. Each on a connection of its own, so that both workers serve."""
        with httpx.Client(base_url=two.client.base_url, timeout=60) as client:
            answer = client.request(
                case.method, "/preprocess", content=case.body, params=case.query,
                headers=case.headers,
            )  # fmt: skip
            assert answer.status_code == case.status
            return len(answer.content)

    with ThreadPoolExecutor(4) as generator:
        sent_bytes = sum(generator.map(send, cases))
    leave_amid_upload(two)
    send_what_is_no_request(two)

    answered = sum(case.status == 200 for case in cases)
    after = settled(two, answered)
    post = {"route": "preprocess"}
    assert after.by("patchmill_requests_total", "status", **post) == Counter(
        str(case.status) for case in cases
    )
    assert after.by("patchmill_refusals_total", "reason", **post) == Counter(
        case.reason for case in cases if case.reason
    )
    assert after.by("patchmill_requests_total", "status", route="none") == {"400": 1}
    assert after.by("patchmill_refusals_total", "reason", route="none") == {"bad_request": 1}
    assert after.by("patchmill_disconnects_total", "phase") == {"upload": 1}
    read = sum(len(case.body) * case.body_is_read for case in cases)
    assert after.sum("patchmill_received_bytes_total", **post) == read + len(b"half")
    assert after.sum("patchmill_sent_bytes_total", **post) == sent_bytes
    assert after.by("patchmill_pictures_total", "format") == {
        "png": sum(case.pictures for case in cases)
    }
    assert after.by("patchmill_pictures_total", "model") == {
        "kimi-k2.5": sum(case.pictures for case in cases if case.pictures == 1),
        "kimi-k3": sum(case.pictures for case in cases if case.pictures == 4),
    }
    stages = after.by("patchmill_stage_seconds_count", "stage")
    assert stages == dict.fromkeys(STAGES, answered)
    assert before.sum("patchmill_requests_total", **post) == 0
    assert after.sum("patchmill_worker_restarts_total") == 0


def leave_amid_upload(service: Running) -> None:
    with connected(service) as leaving:
        leaving.head("Content-Length: 1000").send(b"half")
        until(lambda: scrape(service.client).sum("patchmill_requests_in_progress") == 1, "begun")
        # The gauge is what a worker held half a second ago at most; the bytes are there.


def send_what_is_no_request(service: Running) -> None:
    with connected(service) as stranger:
        assert stranger.send(b"\x16\x03\x01 not HTTP\r\n\r\n").answer()[0] == 400


def test_the_gauges_say_what_is_held_and_which_kernel_and_build_serve(two: Running) -> None:
    found = scrape(two.client)
    [kernel] = found.by("patchmill_kernel_workers", "kernel")
    assert kernel == two.client.get("/info").json()["kernel"]["name"]
    [build] = found.families["patchmill_build_info"].samples
    assert build.labels["pillow"] == "13.0.0"
    assert build.value == 1
    for name in ("queue_depth", "pixels_in_flight", "body_bytes_in_flight"):
        assert found.families[f"patchmill_{name}"].samples[0].value == 0


def test_a_killed_worker_is_counted_and_what_it_counted_stays(two: Running) -> None:
    before = scrape(two.client)
    os.kill(two.worker_pids()[0], signal.SIGKILL)
    pause = threading.Event()

    def replaced() -> Scrape | None:
        with httpx.Client(base_url=two.client.base_url, timeout=60) as client:
            try:
                found = scrape(client)
            except httpx.TransportError:
                pause.wait(0.1)
                return None
        both = found.sum("patchmill_kernel_workers") == 2
        return found if both and found.sum("patchmill_worker_restarts_total") == 1 else None

    after = until(replaced, "another worker")
    for status, count in before.by("patchmill_requests_total", "status").items():
        assert after.sum("patchmill_requests_total", status=status) >= count


def test_the_timings_of_an_answer_are_in_its_head_too(two: Running) -> None:
    answer = two.post(PNG, params={"dtype": "uint8"})
    told = dict(entry.split(";dur=") for entry in answer.headers["server-timing"].split(", "))
    assert set(told) == set(STAGES) - {"send"}
    assert all(float(spent_ms) >= 0 for spent_ms in told.values())


def test_every_path_of_the_interface_has_a_name_of_its_own(two: Running) -> None:
    assert set(two.client.get("/openapi.json").json()["paths"]) <= set(ROUTES)


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port: int = probe.getsockname()[1]
        return port


def test_metrics_on_a_port_of_their_own_are_not_on_the_other() -> None:
    port = free_port()
    key = "a-key-for-the-metrics"
    variables = {"PATCHMILL_METRICS_PORT": str(port), "PATCHMILL_API_KEYS": key}
    with (
        running(variables) as service,
        httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=60) as scraper,
    ):
        allowed = {"Authorization": f"Bearer {key}"}
        assert service.client.get("/metrics", headers=allowed).status_code == 404
        assert scraper.get("/metrics").status_code == 401
        assert scraper.get("/elsewhere").status_code == 404
        for method in ("POST", "HEAD", "BREW"):
            refused = scraper.request(method, "/metrics")
            assert (refused.status_code, refused.headers["allow"]) == (405, "GET")
            assert refused.headers["content-type"] == "application/problem+json"
        with socket.create_connection(("127.0.0.1", port), 20) as odd:
            odd.sendall(b"<b> /metrics HTTP/9.9\r\n\r\n")
            answer = odd.recv(4096)
            assert b"bad_request" in answer
            assert b"<b>" not in answer
        scraper.headers.update(allowed)
        assert service.post(PNG, headers=allowed).status_code == 200
        found = scrape(scraper)
        assert found.by("patchmill_requests_total", "status", route="preprocess") == {"200": 1}


def test_the_folder_of_the_numbers_is_made_at_the_start_and_gone_at_the_end(
    tmp_path: Path,
) -> None:
    with running({"TMPDIR": str(tmp_path)}) as service:
        [folder] = tmp_path.glob("patchmill-metrics-*")
        until(lambda: [*folder.glob("counter_*.db")], "numbers")
        assert service.client.get("/metrics").status_code == 200
    assert not [*tmp_path.glob("patchmill-metrics-*")]
