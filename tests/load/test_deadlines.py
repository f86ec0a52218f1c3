"""Time: slow senders, slow readers, slow work, and a thread that never comes back."""

import re
from collections.abc import Iterator

import pytest

from tests.codec.makers import costly
from tests.golden_data import IMAGES
from tests.load.connection import connected, in_use, requests, until, until_free
from tests.service.running import Running, running

PNG = (IMAGES / "37x19.png").read_bytes()
PHOTO = (IMAGES / "4000x3000.jpg").read_bytes()
HOURS = {"PATCHMILL_MAX_SCANS": "1000000", "PATCHMILL_MAX_SCAN_PIXELS": str(10**15)}
"""Let every cost through that is else refused by the header."""


@pytest.fixture(scope="module")
def hasty() -> Iterator[Running]:
    variables = {
        "PATCHMILL_HEADER_TIMEOUT_S": "0.3",
        "PATCHMILL_BODY_TIMEOUT_S": "0.3",
        "PATCHMILL_WRITE_TIMEOUT_S": "0.3",
        "PATCHMILL_KEEP_ALIVE_S": "60",
    }
    with running(variables) as service:
        yield service
        assert "Traceback" not in "".join(service.log)


def test_half_a_header_is_a_408_and_the_connection_closes(hasty: Running) -> None:
    with connected(hasty) as slow:
        slow.send(b"POST /preprocess HTTP/1.1\r\nHost: he")
        status, code, headers, told = slow.refusal()
        assert (status, code, headers["connection"]) == (408, "slow_request", "close")
        assert told["setting"] == "PATCHMILL_HEADER_TIMEOUT_S"
        assert slow.is_closed()


def test_half_a_header_after_a_whole_request_is_a_408_too(hasty: Running) -> None:
    with connected(hasty) as slow:
        assert slow.post(PNG).answer()[0] == 200
        assert slow.send(b"POST /prepro").refusal()[:2] == (408, "slow_request")


def test_a_connection_without_a_byte_is_closed(hasty: Running) -> None:
    with connected(hasty) as silent:
        assert silent.is_closed()


def test_an_idle_connection_may_wait_longer_than_a_header_may_take(hasty: Running) -> None:
    with connected(hasty) as patient, connected(hasty) as silent:
        assert patient.post(PNG).answer()[0] == 200
        assert silent.is_closed()  # so the header's time is over for both
        assert patient.post(PNG).answer()[0] == 200


def test_an_empty_line_does_not_keep_an_idle_connection(hasty: Running) -> None:
    with connected(hasty) as odd:
        assert odd.post(PNG).answer()[0] == 200
        odd.send(b"\r\n")
        assert odd.is_closed()


def test_a_body_that_is_cut_off_by_the_deadline_names_the_deadline() -> None:
    with running({"PATCHMILL_DEADLINE_S": "0.3"}) as service, connected(service) as slow:
        told = slow.head("Content-Length: 1000").send(b"x").refusal()[3]
        assert (told["setting"], told["limit"]) == ("PATCHMILL_DEADLINE_S", 1)


@pytest.mark.parametrize("fields", [["Content-Length: 1000"], ["Transfer-Encoding: chunked"]])
def test_half_a_body_is_a_408_and_the_connection_closes(hasty: Running, fields: list[str]) -> None:
    with connected(hasty) as slow:
        slow.head(*fields).send(b"5\r\nhello\r\n")
        status, code, headers, told = slow.refusal()
        assert (status, code, headers["connection"]) == (408, "slow_request", "close")
        assert told["setting"] == "PATCHMILL_BODY_TIMEOUT_S"
        assert slow.is_closed()
    until_free(hasty)


def test_a_reader_that_stops_loses_its_answer_and_holds_no_memory(hasty: Running) -> None:
    before = requests(hasty)["left"].get("answer", 0)
    with connected(hasty) as deaf:
        deaf.post(PHOTO)
        until(lambda: in_use(hasty)["answer_bytes"] > 2**20, "the answer")
        until_free(hasty)
        assert requests(hasty)["left"]["answer"] == before + 1
        assert deaf.is_closed()


def test_work_beyond_the_deadline_is_a_504_at_once_and_keeps_its_place_until_it_ends() -> None:
    slow = costly(200)
    with running({**HOURS, "PATCHMILL_DEADLINE_S": "0.5", "PATCHMILL_THREADS": "1"}) as service:
        answer = service.post(slow)
        told = answer.json()
        assert (answer.status_code, told["code"]) == (504, "deadline")
        assert (told["setting"], told["retryable"]) == ("PATCHMILL_DEADLINE_S", True)
        assert in_use(service)["queue_length"] == 1
        # Queued behind a thread that is not free in time: the same answer, and nothing is run.
        assert service.post(PNG).json()["code"] == "deadline"
        assert requests(service)["refused"] == {"deadline": 2}
        until_free(service)
        assert service.post(PNG).status_code == 200


def test_a_thread_that_is_really_stuck_ends_its_worker_and_another_takes_over() -> None:
    stuck = costly(10_000)  # minutes of one call into libjpeg
    variables = {
        **HOURS,
        "PATCHMILL_DEADLINE_S": "0.5",
        "PATCHMILL_STUCK_AFTER_S": "0.5",
        "PATCHMILL_GRACE_S": "2",
        "PATCHMILL_THREADS": "2",
    }
    with running(variables) as service:
        first = workers(service)
        assert service.post(stuck).json()["code"] == "deadline"
        until(lambda: any("stuck" in line for line in service.log), "the watchdog barks")

        def another_is_ready() -> bool:
            if len(workers(service)) < 2:
                return False
            return service.client.get("/health/ready").status_code == 200

        until(another_is_ready, "another worker")
        assert workers(service)[-1] != first[-1]
        assert service.post(PNG).status_code == 200
        assert service.process.poll() is None
        assert "Traceback" not in "".join(service.log)


def workers(service: Running) -> list[str]:
    """The processes that have served, as the log tells."""
    return re.findall(r"Started server process \[(\d+)\]", "".join(service.log))
