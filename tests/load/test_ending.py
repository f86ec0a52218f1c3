"""The end: not ready first, then no new connections, and no accepted request is lost."""

import os
import signal
import socket
import threading
from contextlib import suppress
from pathlib import Path

import httpx
import pytest

from service.serve.listener import listen
from service.settings import load
from tests.codec.makers import costly
from tests.golden_data import IMAGES
from tests.load.connection import Connection, connected, in_use, until
from tests.service.running import Running, running

PNG = (IMAGES / "37x19.png").read_bytes()
TRIALS = int(os.environ.get("DRAIN_TRIALS", "3"))
"""A hundred take five minutes."""
SLOW = costly(200)
SCANS = {"PATCHMILL_MAX_SCANS": "1000", "PATCHMILL_MAX_SCAN_PIXELS": str(10**12)}


def test_readiness_turns_503_first_while_requests_are_still_taken() -> None:
    with running({"PATCHMILL_DRAIN_DELAY_S": "2"}) as service:
        service.process.send_signal(signal.SIGTERM)
        until(lambda: service.client.get("/health/ready").status_code == 503, "not ready")
        answer = service.client.get("/health/ready")
        assert answer.json()["code"] == "draining"
        assert answer.headers["connection"] == "close"
        assert service.client.get("/health/live").status_code == 200
        assert service.post(PNG).status_code == 200
        assert service.process.wait(60) == 0


def test_what_holds_a_ticket_is_finished_after_the_listener_is_closed() -> None:
    with running(SCANS) as service, connected(service) as working, connected(service) as uploading:
        working.post(SLOW)
        uploading.head(f"Content-Length: {len(PNG)}").send(PNG[:10])
        until(lambda: in_use(service)["queue_length"] == 2, "both have a ticket")
        service.client.close()
        service.process.send_signal(signal.SIGTERM)

        def refused() -> bool:
            with socket.socket() as probe:
                return probe.connect_ex(("127.0.0.1", service.port)) != 0

        until(refused, "the listener is closed")
        uploading.send(PNG[10:])
        assert uploading.answer()[0] == 200
        assert working.answer()[0] == 200
        assert service.process.wait(60) == 0


def test_what_is_not_done_within_the_grace_period_is_cut() -> None:
    with running({"PATCHMILL_GRACE_S": "1"}) as service, connected(service) as uploading:
        uploading.head("Content-Length: 1000").send(b"x")
        until(lambda: in_use(service)["queue_length"] == 1, "an upload")
        service.client.close()
        service.process.send_signal(signal.SIGTERM)
        assert uploading.refusal()[:2] == (503, "draining")
        assert uploading.is_closed()
        assert service.process.wait(60) == 0
        assert "Traceback" not in "".join(service.log)


@pytest.mark.parametrize("trial", range(TRIALS))
def test_under_load_no_accepted_request_is_lost(trial: int) -> None:  # noqa: ARG001
    with running() as service:
        outcomes = _load_until_it_ends(service, 8)
    assert outcomes["cut"] == 0
    assert outcomes["answered"] > 0


def _load_until_it_ends(service: Running, clients: int) -> dict[str, int]:
    """How the requests of clients that never stop ended; SIGTERM comes amid them.

    A request whose first byte of answer never comes was not accepted if its
    connection was closed before it could be read; one that gets a ticket is
    counted by the service, so both sides are compared.
    """
    outcomes = {"answered": 0, "refused": 0, "cut": 0}
    begun = threading.Event()
    lock = threading.Lock()

    def client() -> None:
        while True:
            try:
                connection = Connection(service)
            except OSError:
                return
            try:
                connection.head(f"Content-Length: {len(PNG)}", "Expect: 100-continue")
                # The 100 says that the request holds a ticket: from here on it must not be lost.
                if connection.answer()[0] != 100:
                    outcome = "refused"
                else:
                    outcome = "cut"
                    if connection.send(PNG).answer()[0] == 200:
                        outcome = "answered"
            except (OSError, AssertionError):
                outcome = locals().get("outcome", "refused")
            connection.close()
            with lock:
                outcomes[outcome] += 1
                if outcomes["answered"] > 20:
                    begun.set()

    threads = [threading.Thread(target=client) for _ in range(clients)]
    for thread in threads:
        thread.start()
    assert begun.wait(60)
    service.process.send_signal(signal.SIGTERM)
    for thread in threads:
        thread.join(60)
    assert service.process.wait(60) == 0
    return outcomes


def test_a_unix_socket_s_file_is_gone_after_the_end(tmp_path: Path) -> None:
    path = tmp_path / "mill.sock"
    with running({"PATCHMILL_UDS": str(path)}, uds=path) as service:
        assert service.client.get("/health/ready").status_code == 200
    assert not path.exists()
    listen(load({"uds": path})).close()


def test_a_killed_worker_is_replaced_and_only_its_own_requests_fail() -> None:
    with running() as service, connected(service) as lost:
        lost.head("Content-Length: 1000").send(b"x")
        until(lambda: in_use(service)["queue_length"] == 1, "an upload")
        os.kill(service.worker_pids()[0], signal.SIGKILL)
        assert lost.is_closed()
        with httpx.Client(base_url=service.client.base_url, timeout=60) as client:
            until(lambda: _ready(client), "another worker")
            assert client.post("/preprocess", content=PNG).status_code == 200
        assert "Traceback" not in "".join(service.log)


def test_a_worker_that_replaces_another_takes_no_request_before_it_is_ready() -> None:
    """The connection waits in the supervisor's listener meanwhile."""
    with running() as service:
        os.kill(service.worker_pids()[0], signal.SIGKILL)
        with httpx.Client(base_url=service.client.base_url, timeout=60) as client:
            for _ in range(20):
                with suppress(httpx.ReadError, httpx.RemoteProtocolError):  # the dead one had it
                    assert client.post("/preprocess", content=PNG).status_code == 200
            assert client.get("/health/ready").status_code == 200


def test_a_successor_keeps_its_unix_socket_when_the_one_before_ends(tmp_path: Path) -> None:
    path = tmp_path / "mill.sock"
    variables = {"PATCHMILL_UDS": str(path)}
    with running(variables, uds=path) as before:
        path.unlink()  # as a deployment does that starts the next one beside it
        with running(variables, uds=path) as after:
            before.process.send_signal(signal.SIGTERM)
            assert before.process.wait(60) == 0
            assert after.client.get("/health/ready").status_code == 200


def test_a_worker_whose_supervisor_is_gone_ends_too() -> None:
    with running() as service:
        [worker] = service.worker_pids()
        service.process.kill()
        service.process.wait(60)
        until(lambda: not Path(f"/proc/{worker}").exists(), "the worker has ended")


def test_several_workers_share_the_budgets_and_the_work() -> None:
    variables = {"PATCHMILL_WORKERS": "2", "PATCHMILL_THREADS": "4", "PATCHMILL_QUEUE_LENGTH": "10"}
    with running(variables) as service:
        until(lambda: len(service.worker_pids()) == 2, "two workers")
        told = service.client.get("/info").json()
        assert (told["workers"], told["threads"]) == (2, 2)
        assert told["budgets"]["worker"]["queue_length"] == 5
        assert told["budgets"]["total"]["queue_length"] == 10
        for _ in range(10):
            with httpx.Client(base_url=service.client.base_url, timeout=60) as client:
                until(lambda client=client: _ready(client), "ready")
                assert client.post("/preprocess", content=PNG).status_code == 200


def _ready(client: httpx.Client) -> bool:
    try:
        return client.get("/health/ready").status_code == 200
    except httpx.TransportError:
        return False
