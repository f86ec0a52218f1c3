"""Refusals at the door: before the body is read, with a time to come back, nobody cut off."""

import json
from collections.abc import Iterator

import pytest

from tests.golden_data import IMAGES
from tests.load.connection import Connection, connected, in_use, until, until_free
from tests.service.running import Running, running

PNG = (IMAGES / "37x19.png").read_bytes()
BUDGET = 12 * 2**20
LARGE = 8 * 2**20
"""An upload of this length, all but its last byte there, is not slow for half a minute."""


@pytest.fixture(scope="module")
def narrow() -> Iterator[Running]:
    variables = {
        "PATCHMILL_QUEUE_LENGTH": "2",
        "PATCHMILL_BODY_BUDGET_BYTES": str(BUDGET),
        "PATCHMILL_PIXEL_BUDGET": "1000",
        "PATCHMILL_ANSWER_BUDGET_BYTES": "100000",
    }
    with running(variables) as service:
        yield service


@pytest.fixture
def service(narrow: Running) -> Iterator[Running]:
    until_free(narrow)
    yield narrow
    until_free(narrow)


def uploading(service: Running, length: int = LARGE) -> Connection:
    """A connection whose upload is in progress and will not end by itself."""
    return Connection(service).head(f"Content-Length: {length}").send(bytes(length - 1))


@pytest.fixture
def full(service: Running) -> Iterator[Running]:
    """All places of the queue are taken."""
    held = [uploading(service, 5 * 2**20), uploading(service, 5 * 2**20)]
    until(lambda: in_use(service)["queue_length"] == 2, "two uploads")
    yield service
    for connection in held:
        connection.close()


def test_a_full_queue_refuses_before_the_client_is_told_to_send_its_body(full: Running) -> None:
    with connected(full) as late:
        late.head("Content-Length: 1000", "Expect: 100-continue")
        status, code, headers, told = late.refusal()
        assert (status, code) == (429, "queue_full")
        assert 1 <= int(headers["retry-after"]) <= 60
        assert (told["limit"], told["actual"], told["retryable"]) == (2, 2, True)
        assert told["setting"] == "PATCHMILL_QUEUE_LENGTH"
        assert headers["connection"] == "close"
        assert late.is_closed()


@pytest.mark.parametrize("field", ["X-Request-ID: mine-1", "X-Request-ID: not a word", "A: b"])
def test_the_quick_refusal_is_the_application_s_own_word_for_word(
    full: Running, field: str
) -> None:
    answers = []
    for way in ("A: quick", "Connection: keep-alive"):  # the second is not the protocol's affair
        with connected(full) as late:
            late.head(field, way, f"Content-Length: {len(PNG)}").send(PNG)
            status, _, headers, told = late.refusal()
            request_id = headers.pop("x-request-id")
            assert (request_id == "mine-1") == (field == "X-Request-ID: mine-1")
            assert headers.pop("date", None) is None or way != "A: quick"
            answers.append((status, headers, {**told, "detail": "", "retry": ""}))
            headers.pop("retry-after")
    assert answers[0] == answers[1]


def test_a_short_body_is_read_and_dropped_and_the_connection_goes_on(full: Running) -> None:
    with connected(full) as late:
        for _ in range(3):
            late.post(PNG)
            status, _, headers, _ = late.refusal()
            assert status == 429
            assert "connection" not in headers


@pytest.mark.parametrize("fields", [["Content-Length: 3000000"], ["Transfer-Encoding: chunked"]])
def test_a_long_body_s_sender_reads_the_refusal_before_the_connection_closes(
    full: Running, fields: list[str]
) -> None:
    with connected(full) as late:
        late.head(*fields)
        # Chunked or not: 2 MB that nobody wants, most of it sent after the refusal.
        for _ in range(20):
            late.send(b"186a0\r\n" + bytes(100_000) + b"\r\n")
        status, code, headers, _ = late.refusal()
        assert (status, code, headers["connection"]) == (429, "queue_full", "close")
        assert late.is_closed()


def test_a_place_is_free_again_when_an_upload_ends(full: Running) -> None:
    with connected(full) as first:
        assert first.post(PNG).refusal()[0] == 429
    # The fixture's uploads are still there; one of them ends by leaving.
    full_again = in_use(full)["queue_length"]
    assert full_again == 2


def test_probes_are_answered_while_the_queue_is_full(full: Running) -> None:
    assert full.client.get("/health/ready").status_code == 200
    assert full.client.get("/health/live").status_code == 200


def test_bodies_that_do_not_fit_together_are_refused(service: Running) -> None:
    held = uploading(service)
    until(lambda: in_use(service)["body_bytes"] == LARGE, "the upload")
    with connected(service) as late:
        status, code, headers, told = late.head(f"Content-Length: {LARGE}").refusal()
        assert (status, code) == (429, "bodies_full")
        assert int(headers["retry-after"]) >= 1
        assert (told["limit"], told["actual"]) == (BUDGET, 2 * LARGE)
        assert told["setting"] == "PATCHMILL_BODY_BUDGET_BYTES"
    held.close()


def test_a_chunked_body_is_refused_when_it_outgrows_what_is_left(service: Running) -> None:
    held = uploading(service)
    until(lambda: in_use(service)["body_bytes"] == LARGE, "the upload")
    with connected(service) as late:
        late.head("Transfer-Encoding: chunked")
        for _ in range(5):
            late.send(b"100000\r\n" + bytes(2**20) + b"\r\n")
        status, code, headers, _ = late.refusal()
        assert (status, code, headers["connection"]) == (429, "bodies_full", "close")
    held.close()


@pytest.mark.parametrize(
    ("kind", "length", "cost"),
    [
        ("application/octet-stream", BUDGET + 1, 1),
        ("application/msgpack", BUDGET // 2 + 1, 2),
        ("multipart/form-data; boundary=b", BUDGET // 2 + 1, 2),
        ("application/json", BUDGET // 4 + 1, 4),
    ],
)
def test_a_body_larger_than_the_whole_budget_is_422(
    service: Running, kind: str, length: int, cost: int
) -> None:
    with connected(service) as connection:
        connection.head(f"Content-Type: {kind}", f"Content-Length: {length}")
        status, code, _, told = connection.refusal()
        assert (status, code) == (422, "over_budget")
        assert (told["limit"], told["actual"]) == (BUDGET, cost * length)
        assert told["setting"] == "PATCHMILL_BODY_BUDGET_BYTES"


@pytest.mark.parametrize(
    ("name", "setting"),
    [("500x333.png", "PATCHMILL_PIXEL_BUDGET"), ("1x90.png", "PATCHMILL_ANSWER_BUDGET_BYTES")],
)
def test_a_request_that_alone_exceeds_a_budget_is_422(
    narrow: Running, name: str, setting: str
) -> None:
    many = [("images", (IMAGES / name).read_bytes())] * 5
    answer = narrow.client.post("/preprocess", files=many)
    told = answer.json()
    assert (answer.status_code, told["code"], told["setting"]) == (422, "over_budget", setting)
    assert told["actual"] > told["limit"]


def test_a_slow_upload_gives_way_to_a_request_that_needs_its_place(service: Running) -> None:
    with connected(service) as slow, connected(service) as other, connected(service) as late:
        for each in (slow, other):
            each.head("Content-Length: 1000").send(b"x")
        until(lambda: in_use(service)["queue_length"] == 2, "two uploads")
        # Refused as long as they are young; then the oldest ends and the place is free.
        until(lambda: late.post(PNG).answer()[0] == 200, "a slow upload gave way")
        status, code, headers, _ = slow.refusal()
        assert (status, code, headers["connection"]) == (408, "slow_request", "close")
        assert slow.is_closed()


def test_the_info_tells_budgets_of_the_worker_and_of_all_and_what_is_in_use(
    service: Running,
) -> None:
    told = service.client.get("/info").json()
    assert told["budgets"]["worker"] == told["budgets"]["total"]
    assert told["budgets"]["worker"] == {
        "queue_length": 2,
        "body_bytes": BUDGET,
        "pixels": 1000,
        "answer_bytes": 100_000,
    }
    assert set(told["in_use"]) == {*told["budgets"]["worker"], "kept_bytes", "waiting"}
    assert told["peak_memory_bytes"] > BUDGET


@pytest.mark.parametrize(
    ("line", "status"),
    [("HEAD /preprocess HTTP/1.1", 405), ("PUT /preprocess HTTP/1.1", 405)],
)
def test_only_a_post_is_refused_for_a_full_queue(full: Running, line: str, status: int) -> None:
    with connected(full) as other:
        other.send(f"{line}\r\nHost: here\r\nContent-Length: 0\r\n\r\n".encode())
        head = b""
        while not head.endswith(b"\r\n\r\n"):
            head += other.socket.recv(1)
        assert head.startswith(f"HTTP/1.1 {status}".encode())
        if line.startswith("HEAD"):  # the next answer follows at once: there was no body
            other.send(b"GET /health/live HTTP/1.1\r\nHost: here\r\n\r\n")
            assert other.socket.recv(12) == b"HTTP/1.1 200"


def test_an_old_client_is_told_by_the_end_of_its_connection(full: Running) -> None:
    with connected(full) as old:
        old.send(b"POST /preprocess HTTP/1.0\r\nContent-Length: 1\r\n\r\nx")
        assert old.refusal()[0] == 429
        assert old.is_closed()


def test_a_quick_refusal_is_logged_under_its_own_id_and_no_other() -> None:
    variables = {"PATCHMILL_QUEUE_LENGTH": "1", "PATCHMILL_ACCESS_LOG": "on"}
    with running(variables) as service, connected(service) as holding, connected(service) as asking:
        holding.head("Content-Length: 1000").send(b"x")
        until(lambda: in_use(service)["queue_length"] == 1, "an upload")
        begun = len(service.log)
        for given in ("one", "other"):
            asking.head("Content-Length: 1", f"X-Request-ID: {given}").send(b"x")
            assert asking.refusal()[:2] == (429, "queue_full")
        told = [json.loads(line) for line in service.log[begun:] if "queue_full" in line]
        assert [line["request_id"] for line in told] == ["one", "other"]
        assert all(line["sent_bytes"] > 0 for line in told)
