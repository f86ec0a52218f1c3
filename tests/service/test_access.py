"""Who is let in where, and what every answer tells a browser."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.golden_data import IMAGES
from tests.load.connection import connected
from tests.service.running import Running, problem, running

PNG = (IMAGES / "37x19.png").read_bytes()
KEY = "a-key-of-the-access-test"
BEARER = {"Authorization": f"Bearer {KEY}"}
ORIGIN = "https://studio.example"

GUARDED = ("/models", "/info", "/metrics", "/docs", "/openapi.json", "/nowhere", "/preprocess")
GUARDED += ("/docs-assets/swagger-ui.css", "/health", "/health/live/", "//health/live")
GUARDED += ("/docs-assets/../info", "/health/ready/../../info")


@pytest.fixture(scope="module")
def locked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    file: Path = tmp_path_factory.mktemp("keys") / "keys"
    file.write_text(KEY + "\n")
    variables = {
        "PATCHMILL_API_KEYS_FILE": str(file),
        "PATCHMILL_ACCESS_LOG": "on",
        "PATCHMILL_CORS_ORIGINS": f"{ORIGIN}, https://other.example",
    }
    with running(variables) as service:
        yield service
        assert "Traceback" not in "".join(service.log)


@pytest.mark.parametrize("path", GUARDED)
def test_without_a_key_everything_is_refused_but_what_is_named(locked: Running, path: str) -> None:
    answer = locked.client.get(path)
    assert problem(answer) == (401, "unauthorized", None)
    assert answer.headers["www-authenticate"] == 'Bearer realm="patchmill"'


@pytest.mark.parametrize("path", ["/health/live", "/health/ready"])
def test_probes_need_no_key(locked: Running, path: str) -> None:
    assert locked.client.get(path).status_code == 200
    assert locked.client.head(path).status_code == 200


def test_with_a_key_everything_is_as_without_keys(locked: Running) -> None:
    assert locked.post(PNG, headers=BEARER).status_code == 200
    for path in ("/models", "/info", "/metrics", "/docs", "/openapi.json"):
        assert locked.client.get(path, headers=BEARER).status_code == 200


@pytest.mark.parametrize("given", ["Bearer another-key-altogether", "Basic abc", "", "Bearer \xff"])
def test_a_wrong_key_is_told_to_be_wrong(locked: Running, given: str) -> None:
    answer = locked.post(PNG, headers={"Authorization": given.encode("latin-1")})
    assert problem(answer) == (401, "unauthorized", None)
    assert 'error="invalid_token"' in answer.headers["www-authenticate"]


def test_two_keys_in_one_request_are_none(locked: Running) -> None:
    twice = [("Authorization", BEARER["Authorization"])] * 2
    assert locked.post(PNG, headers=twice).status_code == 401


def test_a_stranger_is_refused_before_the_body_is_asked_for(locked: Running) -> None:
    with connected(locked) as stranger:
        stranger.head("Content-Length: 1000000", "Expect: 100-continue")
        status, code, headers, _ = stranger.refusal()
        assert (status, code, headers["connection"]) == (401, "unauthorized", "close")


def test_no_key_is_ever_told(locked: Running) -> None:
    wrong = "a-wrong-key-that-nobody-logs"
    locked.post(PNG, headers={"Authorization": f"Bearer {wrong}"})
    told = locked.client.get("/info", headers=BEARER).text + "".join(locked.log)
    assert wrong not in told
    assert KEY not in told


def test_a_key_in_the_variable_is_masked() -> None:
    with running({"PATCHMILL_API_KEYS": KEY, "PATCHMILL_DOCS_ACCESS": "open"}) as service:
        told = service.client.get("/info", headers=BEARER)
        assert told.json()["settings"]["PATCHMILL_API_KEYS"] == "**********"
        assert KEY not in told.text
        for path in ("/docs", "/openapi.json", "/docs-assets/swagger-ui.css"):
            assert service.client.get(path).status_code == 200
        assert service.client.get("/openapi.json").json()["security"] == [{"key": []}]
        assert service.client.get("/metrics").status_code == 401


def test_what_is_off_is_not_there() -> None:
    variables = {"PATCHMILL_DOCS_ACCESS": "off", "PATCHMILL_METRICS_ACCESS": "off"}
    with running(variables) as service:
        for path in ("/docs", "/openapi.json", "/docs-assets/swagger-ui.css", "/metrics"):
            assert service.client.get(path).status_code == 404


def test_the_access_log_has_a_line_for_each_answer_with_its_id(locked: Running) -> None:
    locked.post(PNG, headers={**BEARER, "X-Request-ID": "seen-1"}, params={"dtype": "uint8"})
    locked.post(b"no picture", headers={**BEARER, "X-Request-ID": "seen-2"})
    locked.client.get("/secret-path", headers={**BEARER, "X-Request-ID": "seen-3"})
    locked.client.get("/health/live")  # behind the others on the same connection
    lines = [json.loads(line) for line in locked.log]
    seen = {line["request_id"]: line for line in lines if line.get("logger") == "patchmill.access"}
    assert seen["seen-1"]["status"] == 200
    assert seen["seen-1"]["received_bytes"] == len(PNG)
    assert seen["seen-2"]["reason"] == "unsupported_format"
    assert seen["seen-3"]["route"] == "other"
    assert "secret-path" not in "".join(locked.log)


SECURE = {
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cache-control": "no-store",
    "content-security-policy": "default-src 'none'; frame-ancestors 'none'",
}


@pytest.mark.parametrize("path", ["/models", "/health/live", "/metrics", "/nowhere", "/preprocess"])
def test_every_answer_tells_browsers_to_be_careful(service: Running, path: str) -> None:
    headers = service.client.get(path).headers
    assert {name: headers.get(name) for name in SECURE} == SECURE
    assert {name: service.post(PNG).headers.get(name) for name in SECURE} == SECURE


def test_the_page_s_policy_allows_its_own_scripts_and_no_other(service: Running) -> None:
    page = service.client.get("/docs")
    policy = page.headers["content-security-policy"]
    assert "script-src 'self' 'sha256-" in policy
    assert "'unsafe-inline'" not in policy.partition("script-src")[2].partition(";")[0]
    assert "frame-ancestors 'none'" in policy
    assert page.headers["x-frame-options"] == "DENY"


def test_other_origins_get_no_leave_by_default(service: Running) -> None:
    answer = service.post(PNG, headers={"Origin": ORIGIN})
    assert not [name for name in answer.headers if name.startswith("access-control-")]
    assert service.client.options("/preprocess", headers={"Origin": ORIGIN}).status_code == 405


def test_a_named_origin_may_ask_without_a_key_and_call_with_one(locked: Running) -> None:
    ask = {"Access-Control-Request-Method": "POST"}
    ask["Access-Control-Request-Headers"] = "authorization,content-type"
    for path in ("/preprocess", "/models"):
        answer = locked.client.options(path, headers={"Origin": ORIGIN, **ask})
        assert answer.status_code == 200
        assert answer.headers["access-control-allow-origin"] == ORIGIN
    answer = locked.post(PNG, headers={"Origin": ORIGIN, **BEARER})
    assert answer.status_code == 200
    assert answer.headers["access-control-allow-origin"] == ORIGIN
    assert "Server-Timing" in answer.headers["access-control-expose-headers"]
    assert locked.post(PNG, headers={"Origin": ORIGIN}).status_code == 401


def test_an_origin_that_is_not_named_gets_no_leave(locked: Running) -> None:
    stranger = {"Origin": "https://evil.example", "Access-Control-Request-Method": "POST"}
    assert locked.client.options("/preprocess", headers=stranger).status_code == 400
    answer = locked.post(PNG, headers={**stranger, **BEARER})
    assert "access-control-allow-origin" not in answer.headers
