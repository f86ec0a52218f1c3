"""Clients that leave at any point: the place is free, the work stops, and it is only counted."""

from collections.abc import Iterator

import pytest

from tests.codec.makers import costly
from tests.golden_data import IMAGES
from tests.load.connection import connected, in_use, requests, until, until_free
from tests.service.running import Running, running

PNG = (IMAGES / "37x19.png").read_bytes()
PHOTO = (IMAGES / "4000x3000.jpg").read_bytes()


@pytest.fixture(scope="module")
def single() -> Iterator[Running]:
    variables = {
        "PATCHMILL_THREADS": "1",
        "PATCHMILL_MAX_SCANS": "10000",
        "PATCHMILL_MAX_SCAN_PIXELS": str(10**12),
    }
    with running(variables) as service:
        yield service
        log = "".join(service.log)
        assert "ERROR" not in log
        assert "Traceback" not in log


@pytest.fixture
def service(single: Running) -> Running:
    until_free(single)
    return single


def left(service: Running, phase: str) -> int:
    return int(requests(service)["left"].get(phase, 0))


@pytest.mark.parametrize("sent", [b"", b"x", bytes(500_000)])
def test_amid_the_upload(service: Running, sent: bytes) -> None:
    before = left(service, "upload")
    with connected(service) as leaving:
        leaving.head("Content-Length: 1000000").send(sent)
        until(lambda: in_use(service)["queue_length"] == 1, "the upload has begun")
    until(lambda: left(service, "upload") == before + 1, "counted")
    until_free(service)


def test_amid_the_work(service: Running) -> None:
    before = left(service, "work")
    with connected(service) as leaving:
        leaving.post(costly(100))
        until(lambda: in_use(service)["pixels"] > 0, "a thread is at it")
    until(lambda: left(service, "work") == before + 1, "counted")
    until_free(service)


def test_in_the_queue_and_then_it_costs_no_work(service: Running) -> None:
    answered, before = requests(service)["answered"], left(service, "work")
    with connected(service) as slow:
        slow.post(costly(100))
        until(lambda: in_use(service)["pixels"] > 0, "the only thread is busy")
        with connected(service) as leaving:
            leaving.post(PHOTO)
            until(lambda: in_use(service)["queue_length"] == 2, "queued")
        until(lambda: left(service, "work") == before + 1, "counted")
        assert in_use(service)["queue_length"] == 1
        assert in_use(service)["pixels"] == 4000 * 4000  # of the slow one alone
        assert slow.answer()[0] == 200
    assert requests(service)["answered"] == answered + 1


def test_amid_the_answer(service: Running) -> None:
    before = left(service, "answer")
    with connected(service) as leaving:
        leaving.post(PHOTO)
        leaving.socket.recv(1)
    until(lambda: left(service, "answer") == before + 1, "counted")
    until_free(service)


def test_a_slow_reader_holds_memory_of_the_answer_budget_and_no_place(service: Running) -> None:
    before = left(service, "answer")
    with connected(service) as deaf:
        deaf.post(PHOTO)

        def only_the_answer() -> bool:
            used = in_use(service)
            return used["answer_bytes"] > 2**20 and used["queue_length"] == 0

        until(only_the_answer, "its place is free")
    until(lambda: left(service, "answer") == before + 1, "counted")
    until_free(service)


def test_slow_readers_give_way_to_who_waits_for_their_memory() -> None:
    """Two answers fill the budget, and would hold it beyond the deadline of who waits."""
    variables = {"PATCHMILL_ANSWER_BUDGET_BYTES": "80000000", "PATCHMILL_WRITE_TIMEOUT_S": "600"}
    waiting = (IMAGES / "1280x720.jpg").read_bytes()
    with running(variables) as service:
        with connected(service) as one, connected(service) as other:
            for slow in (one, other):
                slow.post(PHOTO)
            until(lambda: in_use(service)["answer_bytes"] > 70_000_000, "both answers are made")
            assert service.post(waiting).status_code == 200
        until_free(service)


def test_between_the_stages_of_many_pictures(service: Running) -> None:
    before = requests(service)["answered"]
    body = b"".join(
        b'--b\r\nContent-Disposition: form-data; name="images"\r\n\r\n' + PHOTO + b"\r\n"
        for _ in range(16)
    )
    with connected(service) as leaving:
        kind = "Content-Type: multipart/form-data; boundary=b"
        leaving.head(kind, f"Content-Length: {len(body) + 7}", path="/preprocess?dtype=uint8")
        leaving.send(body + b"--b--\r\n")
        until(lambda: in_use(service)["pixels"] > 0, "a thread is at it")
    until_free(service)
    assert requests(service)["answered"] == before
