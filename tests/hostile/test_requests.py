"""Hostile requests: shapes of HTTP and of bodies that try to confuse, stall or fill a server."""

import base64
import json
import socket

import msgpack
import pytest

from tests.golden_data import IMAGES
from tests.hostile.memory import peak_growth_bytes
from tests.load.connection import connected
from tests.service.running import Running

PNG = (IMAGES / "37x19.png").read_bytes()
LENGTH = b"Content-Length: %d\r\n" % len(PNG)
POST = b"POST /preprocess HTTP/1.1\r\nHost: here\r\n"
CHUNKED = b"Transfer-Encoding: chunked\r\n"
IMAGE = {"type": "image", "data": base64.b64encode(PNG).decode()}


def form(*parts: tuple[bytes, bytes], boundary: bytes = b"b", end: bytes = b"--b--\r\n") -> bytes:
    """A multipart body of (header lines, data)."""
    body = b"".join(
        b"--" + boundary + b"\r\n" + head + b"\r\n\r\n" + data + b"\r\n" for head, data in parts
    )
    return body + end


def picture(name: bytes) -> tuple[bytes, bytes]:
    return (b'Content-Disposition: form-data; name="images"; filename="' + name + b'"', PNG)


FORM_TYPE = "multipart/form-data; boundary=b"
BODIES: dict[str, tuple[str, bytes, int, str]] = {
    "no closing boundary": (FORM_TYPE, form(picture(b"a"), end=b""), 400, "bad_multipart"),
    "2000 parts": (FORM_TYPE, form(*[picture(b"a")] * 2000), 422, "too_many_items"),
    "2000 parameters": (
        FORM_TYPE,
        form(*[(b'Content-Disposition: form-data; name="dtype"', b"uint8")] * 2000),
        400,
        "bad_multipart",
    ),
    "a boundary of 10 KB": (
        "multipart/form-data; boundary=" + "b" * 10_000,
        form(picture(b"a")),
        400,
        "bad_multipart",
    ),
    "a part without a name": (FORM_TYPE, form((b"X: y", PNG)), 400, "bad_multipart"),
    "a header line of 100 KB": (
        FORM_TYPE,
        form((b'Content-Disposition: form-data; name="' + b"n" * 100_000 + b'"', PNG)),
        400,
        "bad_multipart",
    ),
    "lists in lists, msgpack": (
        "application/msgpack",
        b"\x91" * 100_000,
        400,
        "bad_msgpack",
    ),
    "a list of 4 billion, msgpack": (
        "application/msgpack",
        b"\x81\xa5items\xdd\xff\xff\xff\xff",
        400,
        "bad_msgpack",
    ),
    "an extension type, msgpack": (
        "application/msgpack",
        msgpack.packb({"items": [{"type": "image", "data": msgpack.ExtType(1, b"x")}]}),
        400,
        "bad_msgpack",
    ),
    "a million short strings, msgpack": (
        "application/msgpack",
        msgpack.packb({"items": [["ab"] * 1024] * 1000}),
        400,
        "bad_msgpack",
    ),
    "an emoji behind megabytes, json": (
        "application/json",
        b'{"items": [{"type": "image", "data": "' + b"A" * (3 << 20) + b'\\ud83d\\ude00"}]}',
        400,
        "bad_json",
    ),
    "lists in lists, json": ("application/json", b"[" * 100_000, 400, "bad_json"),
    "a million empty lists, json": (
        "application/json",
        b'{"items": [' + b"[]," * 1_000_000 + b"[]]}",
        400,
        "bad_json",
    ),
    "a number of 100,000 digits": (
        "application/json",
        b'{"items": ' + b"9" * 100_000 + b"}",
        400,
        "bad_json",
    ),
    "a key twice": ("application/json", b'{"items": [], "items": []}', 400, "bad_json"),
    "NaN": ("application/json", b'{"items": NaN}', 400, "bad_json"),
    "lone surrogates": (
        "application/json",
        b'{"items": [{"type": "image", "data": "\\ud800"}]}',
        400,
        "bad_base64",
    ),
    "not UTF-8": ("application/json", b'{"items": ["\xff"]}', 400, "bad_json"),
    "file url": (
        "application/json",
        json.dumps({"items": [{"type": "image", "data": "file:///etc/passwd"}]}).encode(),
        422,
        "remote_url",
    ),
    "a url of the cloud's metadata": (
        "application/json",
        json.dumps(
            {
                "items": [
                    {"type": "image_url", "image_url": {"url": "http://169.254.169.254/latest"}}
                ]
            }
        ).encode(),
        422,
        "remote_url",
    ),
    "a data url that is cut": (
        "application/json",
        b'{"items": [{"type": "image", "data": "DATA:image/png;base64,iVBORw0KGg"}]}',
        400,
        "bad_base64",
    ),
    "a data url that is text": (
        "application/json",
        b'{"items": [{"type": "image", "data": "data:text/html,<b>hello</b>"}]}',
        400,
        "bad_base64",
    ),
    "a data url of an svg": (
        "application/json",
        b'{"items": [{"type": "image", "data": "data:image/png;base64,PHN2Zy8+"}]}',
        415,
        "unsupported_format",
    ),
    "a data url of nothing": (
        "application/json",
        b'{"items": [{"type": "image", "data": "data:image/png;base64,"}]}',
        422,
        "empty_item",
    ),
    "megabytes of wide characters": (
        "application/json",
        b'{"items": [{"type": "image", "data": "' + "\U0001f600".encode() * 400_000,
        400,
        "bad_json",
    ),
    "json in UTF-16": (
        "application/json",
        json.dumps({"items": [IMAGE]}).encode("utf-16"),
        400,
        "bad_json",
    ),
    "maps in maps, json": ("application/json", b'{"a":' * 50_000, 400, "bad_json"),
    "a key twice in an item": (
        "application/json",
        b'{"items": [{"type": "image", "type": "image", "data": "AAAA"}]}',
        400,
        "bad_json",
    ),
    "a null body": ("application/json", b"null", 400, "bad_json"),
    "a key twice, msgpack": (
        "application/msgpack",
        b"\x82\xa5items\x90\xa5items\x90",
        400,
        "bad_msgpack",
    ),
    "maps in maps, msgpack": ("application/msgpack", b"\x81\xa1a" * 50_000, 400, "bad_msgpack"),
    "a map of 4 billion, msgpack": (
        "application/msgpack",
        b"\xdf\xff\xff\xff\xff",
        400,
        "bad_msgpack",
    ),
    "bytes of 4 GB, msgpack": (
        "application/msgpack",
        b"\x81\xa5items\x91\x82\xa4type\xa5image\xa4data\xc6\xff\xff\xff\xff",
        400,
        "bad_msgpack",
    ),
    "a key that is a map, msgpack": ("application/msgpack", b"\x81\x80\xc0", 400, "bad_msgpack"),
    "a second value, msgpack": (
        "application/msgpack",
        msgpack.packb({"items": [{"type": "image", "data": PNG}]}) * 2,
        400,
        "bad_msgpack",
    ),
    "a picture that is text, msgpack": (
        "application/msgpack",
        msgpack.packb({"items": [{"type": "image", "data": "text"}]}),
        400,
        "bad_msgpack",
    ),
    "a boundary that is cut": (FORM_TYPE, form(picture(b"a"), end=b"--b"), 400, "bad_multipart"),
    "line ends that are half": (
        FORM_TYPE,
        form(picture(b"a")).replace(b"\r\n", b"\n"),
        400,
        "bad_multipart",
    ),
    "a name that is a path": (
        FORM_TYPE,
        form((b'Content-Disposition: form-data; name="../../etc/passwd"', b"x"), picture(b"a")),
        422,
        "bad_parameter",
    ),
    "65 items": (
        "application/json",
        json.dumps({"items": [IMAGE] * 65}).encode(),
        422,
        "too_many_items",
    ),
}


@pytest.mark.parametrize(("kind", "body", "status", "code"), BODIES.values(), ids=BODIES)
def test_a_hostile_body_is_refused_by_name(
    service: Running, kind: str, body: bytes, status: int, code: str
) -> None:
    answer = service.post(body, headers={"Content-Type": kind})
    assert (answer.status_code, answer.json()["code"]) == (status, code)


@pytest.mark.parametrize("name", ["2000 parts", "a million empty lists, json"])
def test_a_body_that_would_unfold_does_not(service: Running, name: str) -> None:
    kind, body, *_ = BODIES[name]
    [worker] = service.worker_pids()
    grown_bytes = peak_growth_bytes(
        worker, lambda: service.post(body, headers={"Content-Type": kind})
    )
    assert grown_bytes <= 4 * len(body) + 6 * 2**20


@pytest.mark.parametrize(
    "name",
    [b"\xc3\xa9\xe2\x82\xac.png", b"a\0b.png", b"../../etc/passwd", b"n" * 5000, b"", b'a\\".png'],
)
def test_a_file_name_is_never_looked_at(service: Running, name: bytes) -> None:
    body = form(picture(name))
    answer = service.post(body, headers={"Content-Type": FORM_TYPE})
    assert answer.status_code in (200, 400)
    if answer.status_code == 400:
        assert answer.json()["code"] == "bad_multipart"


def exchange(service: Running, request: bytes) -> bytes:
    """All that comes back until the service closes, or half a second after the last byte."""
    with socket.create_connection(("127.0.0.1", service.port), 30) as connection:
        try:
            connection.sendall(request)
            connection.settimeout(0.5)
            answer = b""
            while more := connection.recv(1 << 16):
                answer += more
        except (TimeoutError, ConnectionResetError, BrokenPipeError):
            pass
    return answer


SHAPES = {
    "two lengths": POST + LENGTH + b"Content-Length: 5\r\n\r\n" + PNG,
    "length and chunks": POST + LENGTH + CHUNKED + b"\r\n5\r\nhello\r\n0\r\n\r\n",
    "a negative length": POST + b"Content-Length: -1\r\n\r\n",
    "a length of 20 digits": POST + b"Content-Length: 99999999999999999999\r\n\r\n",
    "a length that is no number": POST + b"Content-Length: 0x10\r\n\r\n",
    "a chunk size that is no number": POST + CHUNKED + b"\r\nzz\r\nhello\r\n0\r\n\r\n",
    "a chunk size of 20 digits": POST + CHUNKED + b"\r\nffffffffffffffffffff\r\n",
    "a folded header": POST + b"X: a\r\n b\r\n" + LENGTH + b"\r\n" + PNG,
    "a header without a colon": POST + b"nonsense\r\n" + LENGTH + b"\r\n" + PNG,
    "a NUL in a header": POST + b"X: a\0b\r\n" + LENGTH + b"\r\n" + PNG,
    "100 KB of one header": POST + b"X: " + b"x" * 100_000 + b"\r\n" + LENGTH + b"\r\n" + PNG,
    "10,000 headers": POST + b"X: y\r\n" * 10_000 + LENGTH + b"\r\n" + PNG,
    "a target of 100 KB": b"POST /" + b"a" * 100_000 + b" HTTP/1.1\r\nHost: h\r\n\r\n",
    "a target outside": b"GET /../../etc/passwd HTTP/1.1\r\nHost: h\r\n\r\n",
    "an absolute target": b"GET http://other/info HTTP/1.1\r\nHost: h\r\n\r\n",
    "another protocol": b"SSH-2.0-OpenSSH_9.6\r\n",
    "TLS": bytes.fromhex("16030100f8010000f40303") + bytes(240),
    "HTTP/2": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    "HTTP/0.9": b"GET /\r\n",
    "an upgrade": POST + b"Connection: Upgrade\r\nUpgrade: websocket\r\n" + LENGTH + b"\r\n" + PNG,
    "random bytes": bytes(range(256)) * 8,
    "a path that is not ASCII": b"GET /\xff\xfe HTTP/1.1\r\nHost: here\r\n\r\n",
    "a path that is escaped": b"GET /%ff%fe%00%2e%2e HTTP/1.1\r\nHost: here\r\n\r\n",
    "a query of NULs": b"POST /preprocess?model=%00%ff HTTP/1.1\r\nHost: h\r\n"
    + LENGTH
    + b"\r\n"
    + PNG,
    "a target that is no URL": b"GET http://[::1 HTTP/1.1\r\nHost: here\r\n\r\n",
    "a tunnel": b"CONNECT other:443 HTTP/1.1\r\nHost: here\r\n\r\n",
    "a key that is not ASCII": POST + b"Authorization: Bearer \xff\r\n" + LENGTH + b"\r\n" + PNG,
    "a trace that is none": POST + b"traceparent: 00-zz\r\n" + LENGTH + b"\r\n" + PNG,
    "parameters of a type, thousands": (
        POST
        + b"Content-Type: multipart/form-data"
        + b'; a="\\"' * 5000
        + b"\r\n"
        + LENGTH
        + b"\r\n"
        + PNG
    ),
    "a boundary in an odd encoding": (
        POST
        + b"Content-Type: multipart/form-data; boundary*=utf-8''%ff\r\n"
        + LENGTH
        + b"\r\n"
        + PNG
    ),
    "a websocket": (
        b"GET /preprocess HTTP/1.1\r\nHost: here\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
        b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n"
    ),
    "a thousand requests at once": b"GET /health/live HTTP/1.1\r\nHost: h\r\n\r\n" * 1000,
}


@pytest.mark.parametrize("request_", SHAPES.values(), ids=SHAPES)
def test_a_confusing_request_is_answered_or_cut_and_hurts_nobody(
    service: Running, request_: bytes
) -> None:
    answer = exchange(service, request_)
    assert b"HTTP/1.1 500" not in answer
    assert b"root:" not in answer
    assert service.post(PNG).status_code == 200


PLAIN = b"POST /preprocess HTTP/1.1\r\n" + LENGTH
UPGRADE = b"Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABk\r\n"
REFUSED = {
    "no host": (PLAIN + b"\r\n" + PNG, b"one Host, not 0"),
    "two hosts": (POST + b"Host: there\r\n" + LENGTH + b"\r\n" + PNG, b"one Host, not 2"),
    "an upgrade with a body": (POST + UPGRADE + LENGTH + b"\r\n" + PNG, b"without an Upgrade"),
}


@pytest.mark.parametrize(("request_", "told"), REFUSED.values(), ids=REFUSED)
def test_what_would_be_misunderstood_is_refused_by_name(
    service: Running, request_: bytes, told: bytes
) -> None:
    answer = exchange(service, request_)
    assert answer.startswith(b"HTTP/1.1 400 ")
    assert told in answer


def test_a_transfer_coding_other_than_chunked_is_refused(service: Running) -> None:
    coded = POST + b"Transfer-Encoding: gzip, chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n"
    assert b"unsupported_encoding" in exchange(service, coded)


def test_an_upgrade_without_a_body_is_passed_over_and_the_connection_goes_on(
    service: Running,
) -> None:
    get = b"GET /health/live HTTP/1.1\r\nHost: here\r\n"
    with connected(service) as curl:
        for fields in (UPGRADE, UPGRADE, b""):
            assert curl.send(get + fields + b"\r\n").answer()[0] == 200


def test_what_cannot_be_read_is_counted_and_not_logged(service: Running) -> None:
    lines = len(service.log)
    for shape in ("another protocol", "a NUL in a header", "a websocket"):
        exchange(service, SHAPES[shape])
    service.post(PNG)
    assert service.log[lines:] == []


HELLO = b"\r\n5\r\nhello\r\n0\r\n\r\n"
SMUGGLED = {
    "two lengths": SHAPES["two lengths"],
    "length and chunks": SHAPES["length and chunks"],
    "a list of lengths": POST + b"Content-Length: 5, 5\r\n\r\nhello",
    "a signed length": POST + b"Content-Length: +5\r\n\r\nhello",
    "a length in two words": POST + b"Content-Length: 5 5\r\n\r\nhello",
    "an empty length": POST + b"Content-Length: \r\n\r\nhello",
    "chunked twice": POST + b"Transfer-Encoding: chunked, chunked\r\n" + HELLO,
    "nearly chunked": POST + b"Transfer-Encoding: xchunked\r\n" + HELLO,
    "chunked, then not": POST + b"Transfer-Encoding: chunked, identity\r\n" + HELLO,
    "a space before the colon": POST + b"Transfer-Encoding : chunked\r\n" + HELLO,
    "a signed chunk": POST + CHUNKED + HELLO.replace(b"5", b"+5"),
    "a chunk in hexadecimal style": POST + CHUNKED + HELLO.replace(b"5", b"0x5"),
    "a chunk longer than it says": POST + CHUNKED + HELLO.replace(b"hello", b"hello you"),
    "lines that end in LF": (POST + CHUNKED + HELLO).replace(b"\r\n", b"\n"),
    "lines that end in CR": (POST + CHUNKED + HELLO).replace(b"\r\n", b"\r"),
}
"""Two servers in a row could read these as different requests."""


@pytest.mark.parametrize("name", SMUGGLED)
def test_a_request_that_could_be_two_is_refused_and_its_connection_closed(
    service: Running, name: str
) -> None:
    answer = exchange(service, SMUGGLED[name])
    assert answer.startswith(b"HTTP/1.1 400")
    assert b"connection: close" in answer.lower()
    assert b'"code": "bad_request"' in answer
