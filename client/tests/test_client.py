"""Both clients against a peer that answers well, late, wrongly, partly or not at all."""

import asyncio
import contextlib
import gzip
import json
import logging
import socket
import threading
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any

import httpx
import msgpack
import numpy as np
import pytest

import patchmill_client as pc
from patchmill_client import calls
from tests import peer as peers
from tests.conftest import Clock
from tests.packer import HONEST, fields, pack
from tests.peer import Step, answer, chunked, claiming, cut, hang_up, peer, problem, raw, unmeasured

PICTURE = b"\x89PNG any bytes"
Connect = Callable[..., Any]
GOOD = answer(body=HONEST)
EARLY_HINTS = b"HTTP/1.1 103 Early Hints\r\n\r\n" * 1000
FULL = {
    "type": "urn:patchmill:problem:too_many_pixels",
    "title": "There are more pixels than this service decodes.",
    "status": 422,
    "detail": "70000000 pixels",
    "code": "too_many_pixels",
    "retryable": False,
    "item": 3,
    "limit": 50_000_000,
    "actual": 70_000_000,
    "setting": "PATCHMILL_MAX_PIXELS",
}


def document(**changes: Any) -> bytes:
    return json.dumps({**FULL, **changes}).encode()


def busy(seconds: str, status: int = 429) -> Step:
    return problem(
        status,
        document(status=status, code="queue_full", retryable=True),
        {"Retry-After": seconds},
    )


# what is sent, and what comes back


def test_a_picture_goes_out_raw_and_comes_back_as_a_batch(connect: Connect) -> None:
    with peer(GOOD) as there:
        batch = connect(there.url).preprocess(PICTURE, model="kimi-k3", background="#ff0000")
        [seen] = there.seen
    assert seen.line == (
        "POST /preprocess?model=kimi-k3&dtype=float32&background=%23ff0000 HTTP/1.1"
    )
    assert seen.body == PICTURE
    assert seen.headers["content-type"] == "application/octet-stream"
    assert seen.headers["accept-encoding"] == "identity"
    assert seen.headers["user-agent"] == "patchmill-client"
    assert batch.data.tobytes() == fields()["pixel_values"]["data"]
    assert batch.data.ctypes.data % 64 == 0


def test_several_pictures_go_out_as_one_msgpack_map(connect: Connect) -> None:
    with peer(answer(body=pack(fields([(1, 2, 4), (3, 2, 2)], "uint8")))) as there:
        batch = connect(there.url).preprocess([b"one", [b"a", b"b", b"c"]], dtype="uint8")
        [seen] = there.seen
    assert seen.line == "POST /preprocess?dtype=uint8 HTTP/1.1"
    assert seen.headers["content-type"] == "application/msgpack"
    assert msgpack.unpackb(seen.body) == {
        "items": [
            {"type": "image", "data": b"one"},
            {"type": "video_chunk", "frames": [b"a", b"b", b"c"]},
        ]
    }
    assert len(batch) == 2


def test_the_request_id_is_passed_on_and_comes_back(connect: Connect) -> None:
    with peer(GOOD) as there:
        batch = connect(there.url).preprocess(PICTURE, request_id="my-own.id_1")
        assert there.seen[0].headers["x-request-id"] == batch.request_id == "my-own.id_1"


def test_a_request_id_is_made_up_and_stays_over_repetitions(connect: Connect) -> None:
    with peer(hang_up, busy("0"), GOOD) as there:
        batch = connect(there.url).preprocess(PICTURE)
        sent = {seen.headers["x-request-id"] for seen in there.seen}
    assert len(there.seen) == 3
    assert sent == {batch.request_id}


@pytest.mark.parametrize("given", ["", "two words", "x" * 129, "line\r\nbreak", "ü"])
def test_a_request_id_that_the_service_would_replace_is_refused(
    connect: Connect, given: str
) -> None:
    with pytest.raises(pc.InvalidInput):
        connect("http://127.0.0.1:9").preprocess(PICTURE, request_id=given)


def test_headers_of_the_client_go_with_every_request(connect: Connect) -> None:
    with peer(answer(body=b"{}", content_type="application/json")) as there:
        client = connect(there.url, headers={"Authorization": "Bearer x"})
        client.info()
        client.models()
        assert [seen.headers["authorization"] for seen in there.seen] == ["Bearer x"] * 2


def test_an_api_key_goes_with_every_request_as_a_bearer_token(connect: Connect) -> None:
    with peer(answer(body=b"{}", content_type="application/json"), GOOD) as there:
        client = connect(there.url, api_key="a-key.of_16~chars+/==")
        client.info()
        client.preprocess(PICTURE)
        told = [seen.headers["authorization"] for seen in there.seen]
        assert told == ["Bearer a-key.of_16~chars+/=="] * 2


@pytest.mark.parametrize("key", ["", "two words", "line\r\nbreak", "ü-secret", "a=b"])
def test_an_api_key_that_cannot_be_sent_is_refused_without_being_told(
    connect: Connect, key: str
) -> None:
    with pytest.raises(pc.InvalidInput) as caught:
        connect("http://127.0.0.1:9", api_key=key)
    assert not key or key not in str(caught.value)


def test_an_api_key_beside_a_header_of_the_same_meaning_is_refused(connect: Connect) -> None:
    with pytest.raises(pc.InvalidInput):
        connect("http://127.0.0.1:9", api_key="a-key", headers={"authorization": "Basic x"})


def test_an_unknown_key_is_final(connect: Connect, clock: Clock) -> None:
    told = document(status=401, code="unauthorized", retryable=False)
    with peer(problem(401, told, {"WWW-Authenticate": "Bearer"})) as there:
        with pytest.raises(pc.Unauthorized) as caught:
            connect(there.url, api_key="a-key").preprocess(PICTURE)
        assert len(there.seen) == 1
    assert (caught.value.code, caught.value.repeatable) == ("unauthorized", False)
    assert clock.slept == []


def test_a_prefix_in_the_address_is_kept(connect: Connect) -> None:
    with peer(GOOD) as there:
        connect(f"{there.url}/vision/").preprocess(PICTURE)
        assert there.seen[0].line.startswith("POST /vision/preprocess?")


def test_connections_are_used_again(connect: Connect) -> None:
    with peer(GOOD) as there:
        client = connect(there.url)
        for _ in range(5):
            client.preprocess(PICTURE)
        assert len(there.seen) == 5
        assert there.connections == 1


def test_a_connection_that_the_service_closed_in_between_is_replaced(connect: Connect) -> None:
    def good_once(connection: socket.socket, seen: peers.Seen) -> bool:
        return GOOD(connection, seen) and False

    with peer(good_once, GOOD) as there:
        client = connect(there.url)
        assert client.preprocess(PICTURE).shape == client.preprocess(PICTURE).shape
        assert there.connections == 2


@pytest.mark.parametrize(
    "url", ["", "127.0.0.1:8080", "ftp://host", "http://", "http://host:port", "unix:///socket"]
)
def test_an_address_that_is_none_is_refused_at_once(connect: Connect, url: str) -> None:
    with pytest.raises(pc.InvalidInput):
        connect(url)


@pytest.mark.parametrize("options", [{"dtype": "float64"}, {"form": "xml"}, {"form": "raw"}])
def test_options_that_are_wrong_are_refused_before_anything_is_sent(
    connect: Connect, options: dict[str, str]
) -> None:
    with pytest.raises(pc.InvalidInput):
        connect("http://127.0.0.1:9").preprocess([PICTURE, PICTURE], **options)


# how bodies arrive


@pytest.mark.parametrize(
    "step",
    [
        pytest.param(answer(body=HONEST, piece_bytes=97), id="in small pieces"),
        pytest.param(unmeasured(HONEST), id="without a length"),
        pytest.param(chunked(HONEST), id="in chunks"),
        pytest.param(chunked(HONEST, 7), id="in tiny chunks"),
        pytest.param(answer(body=HONEST, content_type="Application/MsgPack; v=1"), id="labelled"),
    ],
)
def test_a_body_may_arrive_in_any_way(connect: Connect, step: Step) -> None:
    with peer(step) as there:
        batch = connect(there.url).preprocess(PICTURE)
    assert batch.data.tobytes() == fields()["pixel_values"]["data"]


def test_an_answer_that_comes_late_is_waited_for(connect: Connect) -> None:
    with peer(GOOD) as fast:
        latch = fast.latch

        def late(connection: socket.socket, seen: peers.Seen) -> bool:
            connection.sendall(peers.head(200, len(HONEST), peers.MSGPACK, None, seen))
            connection.sendall(HONEST[:100])
            connect(fast.url).preprocess(PICTURE)  # a whole other exchange in between
            connection.sendall(HONEST[100:])
            return True

        with peer(late) as there:
            batch = connect(there.url).preprocess(PICTURE)
        assert not latch.is_set()
    assert batch.shape == (8, 3, 14, 14)


# answers that cannot be used


LYING: list[tuple[str, Step, type[Exception]]] = [
    ("shorter than its length", claiming(len(HONEST) - 1, HONEST[:-1]), pc.LyingAnswer),
    ("longer than its head", claiming(len(HONEST) + 5, HONEST + b"12345"), pc.LyingAnswer),
    ("longer, without a length", unmeasured(HONEST + b"12345"), pc.LyingAnswer),
    (
        "a length that is no number",
        raw(b"HTTP/1.1 200 OK\r\nContent-Length: -4\r\n\r\n"),
        Exception,
    ),
    ("a length beyond all limits", claiming(10**15, HONEST), pc.AnswerOverLimit),
    ("another dtype", answer(body=pack(fields(dtype="uint8"))), pc.LyingAnswer),
    ("more items", answer(body=pack(fields([(1, 2, 4)] * 2))), pc.LyingAnswer),
    (
        "another version",
        answer(body=HONEST.replace(b"version\x01", b"version\x02")),
        pc.LyingAnswer,
    ),
    ("an empty body", answer(body=b""), pc.LyingAnswer),
    ("msgpack of another kind", answer(body=msgpack.packb([1, 2, 3])), pc.LyingAnswer),
    ("a page", answer(body=b"<html>", content_type="text/html"), pc.UnexpectedAnswer),
    ("JSON", answer(body=b"{}", content_type="application/json"), pc.UnexpectedAnswer),
    ("no type", answer(body=HONEST, content_type=None), pc.UnexpectedAnswer),
    (
        "compressed",
        answer(body=gzip.compress(HONEST), headers={"Content-Encoding": "gzip"}),
        pc.UnexpectedAnswer,
    ),
    ("no content", answer(204, b"", None), pc.UnexpectedAnswer),
]


@pytest.mark.parametrize(("step", "kind"), [case[1:] for case in LYING], ids=[c[0] for c in LYING])
def test_an_answer_that_cannot_be_used_is_refused(
    connect: Connect, step: Step, kind: type[Exception]
) -> None:
    with peer(step) as there, pytest.raises(pc.PatchmillError) as refusal:
        connect(there.url, retry=pc.RetryPolicy(attempts=2)).preprocess(PICTURE)
    assert isinstance(refusal.value, kind)
    assert refusal.value.request_id


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_redirects_are_not_followed(connect: Connect, status: int) -> None:
    with peer(GOOD) as elsewhere:
        step = answer(status, b"", None, {"Location": f"{elsewhere.url}/preprocess"})
        with peer(step) as there, pytest.raises(pc.UnexpectedAnswer, match="redirect") as refusal:
            connect(there.url).preprocess(PICTURE)
        assert refusal.value.status == status
        assert elsewhere.seen == []
        assert len(there.seen) == 1


def test_a_lie_is_not_asked_for_again(connect: Connect) -> None:
    with peer(answer(body=pack(fields(dtype="uint8"))), GOOD) as there:
        with pytest.raises(pc.LyingAnswer) as refusal:
            connect(there.url).preprocess(PICTURE)
        assert len(there.seen) == refusal.value.attempts == 1


def test_a_refused_answer_s_connection_is_not_used_again(connect: Connect) -> None:
    lie = answer(body=pack(fields([(1, 64, 64)], "uint8")))
    with peer(lie, GOOD) as there:
        client = connect(there.url)
        with pytest.raises(pc.LyingAnswer):
            client.preprocess(PICTURE)
        assert client.preprocess(PICTURE).shape == (8, 3, 14, 14)


# refusals


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (400, pc.BadRequest),
        (401, pc.Unauthorized),
        (403, pc.Forbidden),
        (404, pc.NotFound),
        (405, pc.MethodNotAllowed),
        (408, pc.SlowRequest),
        (413, pc.BodyTooLarge),
        (415, pc.Unsupported),
        (418, pc.RequestRefused),
        (422, pc.Unprocessable),
        (429, pc.TooManyRequests),
        (500, pc.ServiceFault),
        (502, pc.GatewayFault),
        (503, pc.Unavailable),
        (504, pc.GatewayFault),
        (599, pc.ServiceFault),
    ],
)
def test_a_problem_document_becomes_an_error_of_its_family(
    connect: Connect, status: int, kind: type[pc.Refusal]
) -> None:
    with peer(problem(status, document(status=status))) as there, pytest.raises(kind) as refusal:
        connect(there.url).preprocess(PICTURE, request_id="mine")
    error = refusal.value
    assert type(error) is kind
    assert (error.status, error.code, error.title) == (status, FULL["code"], FULL["title"])
    assert (error.detail, error.setting) == (FULL["detail"], FULL["setting"])
    assert (error.item, error.limit, error.actual) == (3, 50_000_000, 70_000_000)
    assert error.retryable is False
    assert error.request_id == "mine"
    assert error.attempts == len(there.seen) == 1
    assert str(error) == f"{status} too_many_pixels (item 3): 70000000 pixels"


@pytest.mark.parametrize(
    ("status", "body", "content_type"),
    [
        (500, b"<html>Internal Server Error</html>", "text/html"),
        (413, b"Request Entity Too Large", "text/plain"),
        (400, b"", None),
        (422, b"[1, 2]", "application/problem+json"),
        (422, b"{not json", "application/problem+json"),
        (422, b"\xff\xfe", "application/problem+json"),
        (422, b"[" * 60_000, "application/problem+json"),
        (422, b"x" * 1_000_000, "application/problem+json"),
        (422, document() + b" " * 100_000, "text/html"),
    ],
)
def test_an_error_page_becomes_an_error_by_its_status(
    connect: Connect, status: int, body: bytes, content_type: str | None
) -> None:
    with (
        peer(answer(status, body, content_type)) as there,
        pytest.raises(pc.Refusal) as refusal,
    ):
        connect(there.url, retry=pc.ONCE).preprocess(PICTURE)
    assert (refusal.value.status, refusal.value.code) == (status, f"http_{status}")
    assert (refusal.value.limit, refusal.value.item, refusal.value.setting) == (None, None, None)


def test_facts_of_the_wrong_type_are_left_out(connect: Connect) -> None:
    lies = document(
        item="3", limit=True, actual=1.5, setting=4, code=7, detail=None, retryable="no"
    )
    with peer(problem(422, lies)) as there, pytest.raises(pc.Unprocessable) as refusal:
        connect(there.url).preprocess(PICTURE)
    error = refusal.value
    assert (error.item, error.limit, error.actual, error.setting) == (None, None, None, None)
    assert (error.code, error.detail, error.retryable) == ("http_422", "", False)


def test_a_refusal_that_is_cut_short_is_still_one(connect: Connect) -> None:
    def step(connection: socket.socket, seen: peers.Seen) -> bool:
        connection.sendall(
            peers.head(413, 1000, "application/problem+json", None, seen) + document()[:50]
        )
        return False

    with peer(step) as there, pytest.raises(pc.BodyTooLarge):
        connect(there.url).preprocess(PICTURE)


def test_a_refusal_while_the_body_is_still_being_sent_is_read(connect: Connect) -> None:
    refusal = document(status=413, code="body_too_large")

    def early(connection: socket.socket, seen: peers.Seen) -> bool:
        connection.sendall(
            peers.head(413, len(refusal), "application/problem+json", None, seen) + refusal
        )
        connection.shutdown(socket.SHUT_WR)
        while connection.recv(1 << 20):
            pass  # a service lets a body drain so that its answer is not lost
        return False

    with peer(early) as there, pytest.raises(pc.BodyTooLarge) as caught:
        connect(there.url).preprocess(bytes(8_000_000))
    assert caught.value.code == "body_too_large"


# repetitions


@pytest.mark.parametrize(
    "fault",
    [
        pytest.param(hang_up, id="no answer"),
        pytest.param(cut(HONEST, 0), id="cut before the body"),
        pytest.param(cut(HONEST, 300), id="cut in the head"),
        pytest.param(cut(HONEST, 5000), id="cut in the data"),
        pytest.param(unmeasured(HONEST[:5000]), id="ended in the data without a length"),
        pytest.param(unmeasured(HONEST[:50]), id="ended in the head without a length"),
        pytest.param(raw(b"HTTP/1.1 200"), id="cut in the status line"),
        pytest.param(busy("0"), id="429"),
        pytest.param(busy("0", 503), id="503"),
        pytest.param(answer(503, b"<html>", "text/html"), id="503 of a proxy"),
        pytest.param(answer(502, b"<html>", "text/html"), id="502 of a proxy"),
        pytest.param(answer(504, b"", None), id="504 of a proxy"),
        pytest.param(answer(408, b"", None), id="408"),
        pytest.param(problem(500, document(retryable=True)), id="500 that says it may be repeated"),
    ],
)
def test_what_may_pass_is_tried_again(connect: Connect, fault: Step) -> None:
    with peer(fault, fault, GOOD) as there:
        batch = connect(there.url).preprocess(PICTURE)
        assert len(there.seen) == 3
        assert len({seen.body for seen in there.seen}) == 1
    assert batch.data.tobytes() == fields()["pixel_values"]["data"]


def test_a_service_that_is_not_there_yet_is_tried_again(connect: Connect, clock: Clock) -> None:
    with socket.create_server(("127.0.0.1", 0)) as gone:
        port = gone.getsockname()[1]
    client = connect(f"http://127.0.0.1:{port}", retry=pc.RetryPolicy(attempts=4))
    with pytest.raises(pc.ConnectFailed) as refusal:
        client.preprocess(PICTURE)
    assert refusal.value.attempts == 4
    assert clock.slept == [0.1, 0.2, 0.4]  # half of the doubling ceiling: chance is 0.5
    assert client.ready() is False


def test_the_attempts_are_counted_and_bounded(connect: Connect, clock: Clock) -> None:
    policy = pc.RetryPolicy(attempts=5, base_s=1, cap_s=3)
    with peer(hang_up) as there:
        with pytest.raises(pc.ConnectionLost) as refusal:
            connect(there.url, retry=policy).preprocess(PICTURE)
        assert len(there.seen) == refusal.value.attempts == 5
    assert clock.slept == [0.5, 1.0, 1.5, 1.5]


def test_retry_after_in_seconds_is_obeyed(connect: Connect, clock: Clock) -> None:
    with peer(busy("7"), busy("2"), GOOD) as there:
        connect(there.url).preprocess(PICTURE)
    assert clock.slept == [7.1, 2.2]


def test_retry_after_as_a_date_is_obeyed(connect: Connect, clock: Clock) -> None:
    later = format_datetime(datetime.now(UTC) + timedelta(seconds=30), usegmt=True)
    past = format_datetime(datetime.now(UTC) - timedelta(days=1), usegmt=True)
    with peer(busy(later), busy(past), GOOD) as there:
        connect(there.url).preprocess(PICTURE)
    assert 20 < clock.slept[0] <= 30.1
    assert clock.slept[1] == 0.2


def test_a_retry_after_beyond_the_deadline_ends_the_call_at_once(
    connect: Connect, clock: Clock
) -> None:
    with peer(busy("100")) as there:
        with pytest.raises(pc.TooManyRequests) as refusal:
            connect(there.url, retry=pc.RetryPolicy(deadline_s=50)).preprocess(PICTURE)
        assert len(there.seen) == 1
    assert refusal.value.retry_after_s == 100
    assert clock.slept == []


@pytest.mark.parametrize("value", ["soon", "", "-5", "1.5", "9" * 400, "Mon, 99 Foo 2026"])
def test_a_retry_after_that_cannot_be_read_changes_nothing_or_ends_the_call(
    connect: Connect, clock: Clock, value: str
) -> None:
    with peer(busy(value), GOOD) as there:
        try:
            connect(there.url).preprocess(PICTURE)
        except pc.TooManyRequests as error:
            assert error.retry_after_s == 24 * 3600  # longer than any deadline
        else:
            assert clock.slept == [0.1]


def test_a_service_that_says_no_repetition_is_believed(connect: Connect) -> None:
    with peer(problem(503, document(status=503, retryable=False)), GOOD) as there:
        with pytest.raises(pc.Unavailable):
            connect(there.url).preprocess(PICTURE)
        assert len(there.seen) == 1


def test_a_silent_service_times_out_and_is_tried_again(connect: Connect) -> None:
    steps: list[Step] = []

    def silent(connection: socket.socket, seen: peers.Seen) -> bool:
        return steps[0](connection, seen)

    with peer(silent, GOOD) as there:
        steps.append(peers.wait_for(there.latch, hang_up))
        client = connect(there.url, timeouts=pc.Timeouts(read_s=0.05))
        assert client.preprocess(PICTURE).shape == (8, 3, 14, 14)
        assert len(there.seen) == 2


def test_a_service_that_falls_silent_in_the_body_times_out(connect: Connect) -> None:
    with peer(GOOD) as latch_holder:

        def silent(connection: socket.socket, seen: peers.Seen) -> bool:
            connection.sendall(peers.head(200, len(HONEST), peers.MSGPACK, None, seen))
            connection.sendall(HONEST[:1000])
            latch_holder.latch.wait(60)
            return False

        with peer(silent) as there:
            client = connect(there.url, timeouts=pc.Timeouts(read_s=0.05), retry=pc.ONCE)
            with pytest.raises(pc.TimedOut):
                client.preprocess(PICTURE)
            latch_holder.latch.set()


def test_a_body_that_drips_is_ended_by_the_deadline(connect: Connect, clock: Clock) -> None:
    def drip(connection: socket.socket, seen: peers.Seen) -> bool:
        connection.sendall(peers.head(200, len(HONEST), peers.MSGPACK, None, seen))
        connection.sendall(HONEST[:1000])
        clock.now += 1000  # a long time passes before the next byte
        connection.sendall(HONEST[1000:])
        return True

    with peer(drip) as there, pytest.raises(pc.DeadlineExceeded) as refusal:
        connect(there.url).preprocess(PICTURE)
    assert refusal.value.attempts == len(there.seen) == 1


@pytest.mark.parametrize("dripped", [b"HTTP/1.1 200 OK\r\nX-Slow: " + b"y" * 10_000, EARLY_HINTS])
def test_headers_that_drip_are_ended_by_the_deadline(connect: Connect, dripped: bytes) -> None:
    gone = threading.Event()

    def drip(connection: socket.socket, _: peers.Seen) -> bool:
        with contextlib.suppress(OSError):
            for byte in dripped:
                connection.sendall(bytes([byte]))
                if gone.wait(0.005):  # the pace of the drip: each byte restarts a read timeout
                    break
        return False

    with peer(drip) as there:
        client = connect(there.url, pace=pc.Pace(), retry=pc.RetryPolicy(deadline_s=0.3))
        with pytest.raises((pc.DeadlineExceeded, pc.TimedOut)):
            client.preprocess(PICTURE)
        gone.set()


def test_a_closed_client_says_so() -> None:
    async def closed() -> None:
        client = pc.AsyncClient("http://127.0.0.1:1")
        await client.aclose()
        await client.preprocess(PICTURE)

    client = pc.Client("http://127.0.0.1:1")
    client.close()
    with pytest.raises(pc.InvalidInput, match="closed"):
        client.preprocess(PICTURE)
    with pytest.raises(pc.InvalidInput, match="closed"):
        asyncio.run(closed())


@pytest.mark.parametrize("name", ["model", "background"])
def test_a_parameter_that_no_url_can_carry_is_refused(connect: Connect, name: str) -> None:
    with pytest.raises(pc.InvalidInput, match=name):
        connect("http://127.0.0.1:1").preprocess(PICTURE, **{name: "\ud800"})


# What is given as an integer, and what the refusal tells of it.
NO_INTEGERS = {
    "a fraction": (1000.9, "1000.9 .float"),
    "a whole float": (1000.0, "1000.0 .float"),
    "true": (True, "True"),
    "true of numpy": (np.True_, "True"),
    "digits": ("1000", "'1000' .str"),
    "a word": ("many", "'many' .str"),
    "no number": (float("nan"), "nan"),
    "too large": (10**5000, "16610 bits"),
}


@pytest.mark.parametrize("name", calls.INTEGERS)
@pytest.mark.parametrize(("given", "told"), NO_INTEGERS.values(), ids=NO_INTEGERS)
def test_what_is_no_integer_is_refused_by_name_and_value(
    connect: Connect, name: str, given: Any, told: str
) -> None:
    with pytest.raises(pc.InvalidInput, match=f"^{name} .*{told}"):
        connect("http://127.0.0.1:1").preprocess(PICTURE, **{name: given})


@pytest.mark.parametrize("given", [1000, np.int64(1000), np.uint8(100)])
def test_integers_of_any_type_are_sent_as_digits(connect: Connect, given: Any) -> None:
    with peer(GOOD) as there:
        connect(there.url).preprocess(PICTURE, max_model_len=given)
        assert f"max_model_len={int(given)}" in there.seen[0].line


@pytest.mark.parametrize("wrong", [{"headers": {"X": "é"}}, {"base_url": "http://a:99999"}])
def test_what_http_cannot_carry_is_refused_when_the_client_is_made(wrong: dict[str, Any]) -> None:
    with pytest.raises(pc.InvalidInput):
        pc.Client(**wrong)


@pytest.mark.parametrize(
    "wrong", [{"attempts": 0}, {"base_s": -1}, {"cap_s": -1}, {"deadline_s": 0}]
)
def test_a_policy_that_makes_no_sense_is_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(ValueError, match=next(iter(wrong))):
        pc.RetryPolicy(**wrong)  # type: ignore[arg-type]


# the other routes


def test_models_and_info_are_their_json(connect: Connect) -> None:
    with peer(answer(body=b'{"default": "kimi-k2.5"}', content_type="application/json")) as there:
        client = connect(there.url)
        assert client.models() == client.info() == {"default": "kimi-k2.5"}
        assert [seen.line for seen in there.seen] == ["GET /models HTTP/1.1", "GET /info HTTP/1.1"]


@pytest.mark.parametrize("body", [b"", b"[]", b"{", b"[" * 100_000, b'"' + b"x" * (5 << 20)])
def test_json_that_is_none_is_refused(connect: Connect, body: bytes) -> None:
    with (
        peer(answer(body=body, content_type="application/json")) as there,
        pytest.raises(pc.UnexpectedAnswer),
    ):
        connect(there.url).info()


def test_ready_is_asked_once_and_says_yes_or_no(connect: Connect) -> None:
    yes = answer(body=b'{"status": "ready"}', content_type="application/json")
    no = problem(503, document(status=503, code="not_ready", retryable=True))
    with peer(no, yes) as there:
        client = connect(there.url)
        assert (client.ready(), client.ready()) == (False, True)
        assert [seen.line for seen in there.seen] == ["GET /health/ready HTTP/1.1"] * 2


def test_ready_raises_what_is_neither(connect: Connect) -> None:
    with peer(problem(404, document(status=404))) as there, pytest.raises(pc.NotFound):
        connect(there.url).ready()


def test_a_transport_of_the_caller_s_own_is_used(connect: Connect) -> None:
    def handle(request: httpx.Request) -> httpx.Response:
        headers = {"Content-Type": "application/msgpack", "X-Request-ID": "theirs"}
        return httpx.Response(200, headers=headers, stream=Pieces(), request=request)

    class Pieces(httpx.SyncByteStream, httpx.AsyncByteStream):
        def __iter__(self) -> Any:
            yield HONEST

        async def __aiter__(self) -> Any:
            yield HONEST

    client = connect("http://patchmill", transport=httpx.MockTransport(handle))
    assert client.preprocess(PICTURE).request_id == "theirs"


def test_nothing_of_a_picture_is_logged(connect: Connect, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    with peer(GOOD) as there:
        connect(there.url).preprocess(b"secret picture")
    assert "secret" not in caplog.text


def test_the_client_closes_its_connections() -> None:
    with peer(GOOD) as there:
        with pc.Client(there.url) as client:
            client.preprocess(PICTURE)
        with pytest.raises(pc.InvalidInput, match="closed"):
            client.preprocess(PICTURE)
