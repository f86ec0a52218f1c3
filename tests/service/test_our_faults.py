"""When our own code fails: a 500 that tells nothing, and a log line that tells all."""

import logging
import threading
from collections.abc import Iterator

import httpx
import pytest
import uvicorn

from service import app, frames
from service.settings import load
from tests.golden_data import IMAGES
from tests.service.running import problem

PNG = (IMAGES / "37x19.png").read_bytes()


@pytest.fixture
def here() -> Iterator[httpx.Client]:
    """A service in this process, on a real socket, so that its rooms can be broken."""
    config = uvicorn.Config(
        app.create_app(load({})), port=0, log_config=None, http="httptools", lifespan="on"
    )
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run)
    thread.start()
    pause = threading.Event()
    while not server.started:
        pause.wait(0.01)
    port = server.servers[0].sockets[0].getsockname()[1]
    with httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=60) as client:
        yield client
    server.should_exit = True
    thread.join()


def wait_until_ready(client: httpx.Client) -> None:
    pause = threading.Event()
    while client.get("/health/ready").status_code != 200:
        pause.wait(0.02)


def test_a_fault_of_ours_is_a_500_without_particulars_and_a_log_line_with_the_id(
    here: httpx.Client, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(*_: object) -> None:
        raise RuntimeError("a secret inside")

    wait_until_ready(here)
    monkeypatch.setattr(frames, "decode", broken)
    with caplog.at_level(logging.ERROR):
        answer = here.post("/preprocess", content=PNG, headers={"X-Request-ID": "id-7"})
    assert problem(answer) == (500, "internal", None)
    assert answer.headers["x-request-id"] == "id-7"
    assert "secret" not in answer.text
    [record] = caplog.records
    assert "id-7" in record.getMessage()
    assert record.exc_info
    assert "a secret inside" in str(record.exc_info[1])
    monkeypatch.undo()
    assert here.post("/preprocess", content=PNG).status_code == 200


def test_kernels_that_cannot_be_made_ready_are_logged_and_readiness_stays_503(
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    request: pytest.FixtureRequest,
) -> None:
    failed = threading.Event()

    def broken(*_: object) -> None:
        failed.set()
        raise RuntimeError("no kernel")

    monkeypatch.setattr(app, "warm", broken)
    with caplog.at_level(logging.ERROR):
        here: httpx.Client = request.getfixturevalue("here")
        failed.wait(60)
        assert problem(here.get("/health/ready")) == (503, "not_ready", None)
        assert problem(here.post("/preprocess", content=PNG)) == (503, "not_ready", None)
        assert here.get("/health/live").status_code == 200
        assert here.get("/info").json()["kernel"]["name"] is None
