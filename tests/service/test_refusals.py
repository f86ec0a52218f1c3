"""Every refusal, over real HTTP: status, code and the index of the item at fault."""

import base64
import io
import re
import socket
import struct
import zlib
from collections.abc import Iterator
from typing import Any

import msgpack
import pytest
from PIL import Image

from tests.golden_data import IMAGES
from tests.service.running import Running, problem, running

JPEG = (IMAGES / "photo.jpg").read_bytes()
PNG = (IMAGES / "37x19.png").read_bytes()
WEBP = (IMAGES / "photo.webp").read_bytes()
MSGPACK = {"Content-Type": "application/msgpack"}
JSON = {"Content-Type": "application/json"}
IMAGE = {"type": "image", "data": base64.b64encode(PNG).decode()}
FORM = {"Content-Type": "multipart/form-data; boundary=b"}


def png_header(width: int, height: int) -> bytes:
    """A PNG that claims a size and holds no pixels."""

    def chunk(name: bytes, data: bytes) -> bytes:
        return (
            struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))
        )

    size = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", size) + chunk(b"IDAT", b"") + chunk(b"IEND", b"")


def many_scans(scans: int) -> bytes:
    """A progressive JPEG whose last scan is repeated."""
    out = io.BytesIO()
    Image.new("L", (64, 64), 100).save(out, "JPEG", progressive=True)
    data = out.getvalue()
    last = data.rindex(b"\xff\xda")
    return data[:-2] + data[last:-2] * scans + data[-2:]


def float_tiff() -> bytes:
    out = io.BytesIO()
    Image.new("F", (8, 8)).save(out, "TIFF")
    return out.getvalue()


RAW: dict[str, tuple[bytes, int, str]] = {
    "empty body": (b"", 400, "empty_body"),
    "one byte": (b"\x07", 415, "unsupported_format"),
    "the first byte of a jpeg": (b"\xff", 422, "truncated_image"),
    "random bytes": (bytes(range(7, 207)), 415, "unsupported_format"),
    "html error page": (b"<!DOCTYPE html><html>404</html>", 415, "unsupported_format"),
    "svg": (b"<svg xmlns='http://www.w3.org/2000/svg'/>", 415, "unsupported_format"),
    "zip": (b"PK\x03\x04" + bytes(40), 415, "unsupported_format"),
    "float tiff": (float_tiff(), 415, "unsupported_sample_format"),
    "jpeg cut in its data": (JPEG[: len(JPEG) // 2], 422, "truncated_image"),
    "jpeg cut in its header": (JPEG[:20], 422, "truncated_image"),
    "png cut in its data": (PNG[: len(PNG) // 2], 422, "truncated_image"),
    "webp cut in its data": (WEBP[: len(WEBP) // 2], 422, "truncated_image"),
    "png header, then garbage": (PNG[:33] + b"garbage" * 20, 422, "truncated_image"),
    "zero width": (png_header(0, 5), 422, "corrupt_image"),
    "pixel bomb": (png_header(30_000, 30_000), 422, "too_many_pixels"),
    "long side": (png_header(170_000_000, 1), 422, "side_too_long"),
    "many scans": (many_scans(400), 422, "too_many_scans"),
}


@pytest.mark.parametrize(("body", "status", "code"), RAW.values(), ids=RAW)
def test_a_raw_body_is_refused(service: Running, body: bytes, status: int, code: str) -> None:
    item = None if code == "empty_body" else 0
    assert problem(service.post(body)) == (status, code, item)


@pytest.mark.parametrize(("body", "status", "code"), list(RAW.values())[1:], ids=list(RAW)[1:])
def test_the_item_at_fault_is_named_and_its_neighbours_are_innocent(
    service: Running, body: bytes, status: int, code: str
) -> None:
    entries = [{"type": "image", "data": data} for data in (PNG, PNG, body, PNG)]
    answer = service.post(msgpack.packb({"items": entries}), headers=MSGPACK)
    assert problem(answer) == (status, code, 2)


REQUESTS: dict[str, tuple[dict[str, Any], int, str, int | None]] = {
    "unknown parameter": ({"content": PNG, "params": {"a": "1"}}, 422, "bad_parameter", None),
    "bad dtype": ({"content": PNG, "params": {"dtype": "int8"}}, 422, "bad_parameter", None),
    "unknown model": ({"content": PNG, "params": {"model": "x"}}, 422, "unknown_model", None),
    "gzip body": (
        {"content": PNG, "headers": {"Content-Encoding": "gzip"}},
        415,
        "unsupported_encoding",
        None,
    ),
    "gzip in a second header": (
        {
            "content": PNG,
            "headers": [("Content-Encoding", "identity"), ("Content-Encoding", "gzip")],
        },
        415,
        "unsupported_encoding",
        None,
    ),
    "empty model": ({"content": PNG, "params": {"model": ""}}, 422, "unknown_model", None),
    "bad json": ({"content": b"{", "headers": JSON}, 400, "bad_json", None),
    "bad base64": ({"json": {"items": [IMAGE, {**IMAGE, "data": "*"}]}}, 400, "bad_base64", 1),
    "remote url": (
        {"json": {"items": [{**IMAGE, "data": "https://example.com/a.png"}]}},
        422,
        "remote_url",
        0,
    ),
    "parameter in a json body": (
        {"json": {"items": [IMAGE], "dtype": "int8"}},
        422,
        "bad_parameter",
        None,
    ),
    "bad msgpack": ({"content": b"\xc1", "headers": MSGPACK}, 400, "bad_msgpack", None),
    "bad multipart": ({"content": b"x", "headers": FORM}, 400, "bad_multipart", None),
    "multipart without boundary": (
        {"content": b"x", "headers": {"Content-Type": "multipart/form-data"}},
        400,
        "bad_multipart",
        None,
    ),
    "no items": (
        {"content": msgpack.packb({"items": []}), "headers": MSGPACK},
        400,
        "empty_body",
        None,
    ),
    "empty item": (
        {"content": msgpack.packb({"items": [{"type": "image", "data": b""}]}), "headers": MSGPACK},
        422,
        "empty_item",
        0,
    ),
    "five frames": (
        {
            "content": msgpack.packb({"items": [{"type": "video_chunk", "frames": [PNG] * 5}]}),
            "headers": MSGPACK,
        },
        422,
        "too_many_frames",
        0,
    ),
    "frames of two sizes": (
        {
            "content": msgpack.packb({"items": [{"type": "video_chunk", "frames": [PNG, JPEG]}]}),
            "headers": MSGPACK,
        },
        422,
        "frames_differ",
        0,
    ),
    "65 items": ({"files": [("images", ("a", PNG))] * 65}, 422, "too_many_items", None),
}


@pytest.mark.parametrize(("options", "status", "code", "item"), REQUESTS.values(), ids=REQUESTS)
def test_a_request_is_refused(
    service: Running, options: dict[str, Any], status: int, code: str, item: int | None
) -> None:
    assert problem(service.post(**options)) == (status, code, item)


@pytest.mark.parametrize(
    ("method", "path", "status", "code"),
    [
        ("GET", "/nothing", 404, "not_found"),
        ("POST", "/preprocess/", 404, "not_found"),
        ("GET", "/preprocess", 405, "method_not_allowed"),
        ("DELETE", "/preprocess", 405, "method_not_allowed"),
        ("POST", "/models", 405, "method_not_allowed"),
        ("OPTIONS", "/preprocess", 405, "method_not_allowed"),
    ],
)
def test_a_wrong_path_or_method_is_a_problem_too(
    service: Running, method: str, path: str, status: int, code: str
) -> None:
    answer = service.client.request(method, path)
    assert problem(answer) == (status, code, None)
    assert status != 405 or answer.headers["allow"]


def test_a_limit_tells_its_value_the_actual_and_the_variable_that_moves_it(
    service: Running,
) -> None:
    told = service.post(png_header(30_000, 30_000)).json()
    assert told["limit"] == 50_000_000
    assert told["actual"] == 900_000_000
    assert told["setting"] == "PATCHMILL_MAX_PIXELS"


def test_a_refusal_never_echoes_the_payload(service: Running) -> None:
    secret = b"<html>secret-token-1234</html>"
    assert b"secret" not in service.post(secret).content


def exchange(service: Running, request: bytes) -> bytes:
    """Bytes to the service and all that it answers, to the end of one answer or of the connection.

    Plain sockets, because an HTTP client would hide a `100 Continue`.
    """
    answer = b""
    with socket.create_connection(("127.0.0.1", service.port), timeout=30) as plain:
        plain.sendall(request)
        while not _complete(answer):
            more = plain.recv(65536)
            if not more:
                break
            answer += more
    return answer


def _complete(answer: bytes) -> bool:
    head, end, body = answer.partition(b"\r\n\r\n")
    length = re.search(rb"content-length: (\d+)", head.lower())
    return bool(end) and length is not None and len(body) >= int(length[1])


def test_a_body_too_long_by_its_header_is_refused_before_the_client_is_told_to_go_on(
    service: Running,
) -> None:
    answer = exchange(
        service,
        b"POST /preprocess HTTP/1.1\r\nHost: a\r\nContent-Length: 999999999999\r\n"
        b"Expect: 100-continue\r\n\r\n",
    )
    assert answer.startswith(b"HTTP/1.1 413 ")
    assert b"body_too_large" in answer


def test_a_broken_request_line_is_a_400_and_the_service_lives_on(service: Running) -> None:
    assert exchange(service, b"\x00\x01\x02\r\n\r\n").startswith(b"HTTP/1.1 400 ")
    assert service.client.get("/health/live").status_code == 200


@pytest.mark.parametrize("sent", [b"", JPEG[:1000]])
def test_a_client_that_leaves_during_upload_is_no_error(service: Running, sent: bytes) -> None:
    request = b"POST /preprocess HTTP/1.1\r\nHost: a\r\nContent-Length: 25791\r\n\r\n" + sent
    with socket.create_connection(("127.0.0.1", service.port), timeout=30) as plain:
        plain.sendall(request)
    assert service.post(PNG).status_code == 200  # and the fixture finds no stack in the log


@pytest.fixture(scope="module")
def tight() -> Iterator[Running]:
    variables = {
        "PATCHMILL_MAX_BODY_BYTES": "9000",
        "PATCHMILL_MAX_ANSWER_BYTES": "60000",
        "PATCHMILL_MAX_REQUEST_PIXELS": "2000",
        "PATCHMILL_MAX_ITEMS": "3",
    }
    with running(variables) as started:
        yield started


def test_a_chunked_body_over_the_limit_is_refused_while_streaming(tight: Running) -> None:
    pieces = (bytes(1000) for _ in range(10_000))
    told = tight.post(pieces)
    assert problem(told) == (413, "body_too_large", None)
    assert told.json()["actual"] <= 9000 + 65536


def test_the_pixels_of_all_items_are_limited_together(tight: Running) -> None:
    entries = [{"type": "image", "data": PNG}] * 3  # 703 pixels each
    answer = tight.post(msgpack.packb({"items": entries}), headers=MSGPACK)
    assert problem(answer) == (422, "too_many_pixels", 2)
    assert answer.json()["setting"] == "PATCHMILL_MAX_REQUEST_PIXELS"


def test_the_bytes_of_the_answer_are_limited_and_uint8_needs_fewer(tight: Running) -> None:
    entries = [{"type": "image", "data": png_header(1, 1900)}]
    body = msgpack.packb({"items": entries})
    assert problem(tight.post(body, headers=MSGPACK)) == (422, "answer_too_large", 0)


def test_an_operator_s_own_limit_on_items_holds_in_every_form(tight: Running) -> None:
    form = tight.post(files=[("images", ("a", PNG[:50]))] * 4)
    assert problem(form) == (422, "too_many_items", None)
    entries = [{"type": "image", "data": b"x"}] * 4
    packed = tight.post(msgpack.packb({"items": entries}), headers=MSGPACK)
    assert problem(packed) == (422, "too_many_items", None)
