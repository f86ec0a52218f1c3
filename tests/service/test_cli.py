"""The commands, as an operator runs them."""

import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import httpx
import pytest

from service.serve.listener import described, listen
from service.settings import load
from tests.service.running import ROOT, running


def patchmill(*args: str, **variables: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-m", "service", *args],
        cwd=ROOT,
        env={**os.environ, **variables},
        capture_output=True,
        text=True,
        check=False,
        timeout=180,
    )


def test_wrong_settings_are_told_all_at_once_and_exit_2() -> None:
    wrong = {"PATCHMILL_PORT": "99999", "PATCHMILL_MAX_ITEMS": "none"}
    ended = patchmill("serve", **wrong)
    assert ended.returncode == 2
    assert "PATCHMILL_PORT='99999'" in ended.stderr
    assert "PATCHMILL_MAX_ITEMS='none'" in ended.stderr
    assert "Traceback" not in ended.stderr


@pytest.mark.parametrize(
    ("variable", "value", "told"),
    [
        ("PATCHMILL_HOST", "999.1.1.1", "cannot listen on 999.1.1.1"),
        ("PATCHMILL_UDS", "/nowhere/mill.sock", "cannot listen on /nowhere/mill.sock"),
        ("PATCHMILL_UDS", __file__, "cannot listen on"),
    ],
)
def test_an_address_that_cannot_be_bound_is_told_and_exits_2(
    variable: str, value: str, told: str
) -> None:
    ended = patchmill("serve", **{variable: value})
    assert ended.returncode == 2
    assert told in ended.stderr
    assert "Traceback" not in ended.stderr
    assert "kernel" not in ended.stderr


def test_a_port_in_use_is_told_and_exits_2() -> None:
    with running() as service:
        ended = patchmill("serve", PATCHMILL_PORT=str(service.port))
    assert ended.returncode == 2
    assert "Address already in use" in ended.stderr


def test_wrong_profiles_are_told_and_exit_2(tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text('name = "mine"\n')
    ended = patchmill("serve", PATCHMILL_PROFILES_DIR=str(tmp_path))
    assert ended.returncode == 2
    assert "mine.toml: patch_px: Field required" in ended.stderr


def test_health_says_ready_of_a_running_service_and_exits_1_without_one() -> None:
    with running() as service:
        ended = patchmill("health", PATCHMILL_PORT=str(service.port))
        assert (ended.returncode, ended.stdout) == (0, "ready\n")
        port = str(service.port)
    ended = patchmill("health", PATCHMILL_PORT=port)
    assert ended.returncode == 1
    assert "not reachable" in ended.stderr


def test_the_service_listens_on_a_unix_socket(tmp_path: Path) -> None:
    path = tmp_path / "mill.sock"
    process = subprocess.Popen(
        [sys.executable, "-m", "service", "serve", "--uds", str(path)],
        cwd=ROOT,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stderr
        for line in process.stderr:
            if "ready, with" in line:
                break
        with httpx.Client(transport=httpx.HTTPTransport(uds=str(path))) as client:
            assert client.get("http://mill/health/ready").status_code == 200
        ended = patchmill("health", PATCHMILL_UDS=str(path))
        assert ended.returncode == 0
        second = patchmill("serve", PATCHMILL_UDS=str(path))
        assert second.returncode == 2
        assert "in use" in second.stderr
    finally:
        process.terminate()
        process.communicate(timeout=60)


def test_a_socket_file_left_by_a_killed_service_is_replaced(tmp_path: Path) -> None:
    path = tmp_path / "mill.sock"
    with socket.socket(socket.AF_UNIX) as left:
        left.bind(str(path))
    listener = listen(load({"uds": path}))
    assert described(listener) == f"unix:{path}"
    listener.close()


def test_warm_shows_its_progress_and_proves_the_kernels() -> None:
    ended = patchmill("warm")
    assert ended.returncode == 0, ended.stderr
    for dtype in ("uint8", "uint16", "float32"):
        assert dtype in ended.stdout


def test_warm_fails_where_the_cache_should_have_had_the_kernels(tmp_path: Path) -> None:
    variables = {"NUMBA_CACHE_DIR": str(tmp_path), "PATCHMILL_KERNEL": "portable"}
    compiles = patchmill("warm", "--cached", "portable", **variables)
    assert compiles.returncode == 1
    assert compiles.stderr == "not what was asked for: portable, from the cache\n"
    assert patchmill("warm", "--cached", "portable", **variables).returncode == 0
    other = patchmill("warm", "--cached", "simd", **variables)
    assert other.returncode == 1
    assert "0 compiled, 4 from cache" in other.stdout


@pytest.mark.parametrize("signum", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_the_service_without_a_stack(signum: signal.Signals) -> None:
    with running() as service:
        service.process.send_signal(signum)
        service.process.wait(60)
    assert "Traceback" not in "".join(service.log)


def test_log_lines_are_text_where_that_is_asked_for() -> None:
    with running({"PATCHMILL_LOG_FORMAT": "text"}) as service:
        service.client.get("/health/ready")
    assert any(" INFO patchmill: ready, with " in line for line in service.log)
    assert not any(line.startswith("{") for line in service.log)


@pytest.mark.parametrize(
    ("variables", "told"),
    [
        ({"PATCHMILL_API_KEYS": "pa55word"}, "PATCHMILL_API_KEYS, key 1: shorter than 16"),
        ({"PATCHMILL_API_KEYS_FILE": "/nowhere/keys"}, "PATCHMILL_API_KEYS_FILE cannot be read"),
        ({"PATCHMILL_CORS_ORIGINS": "studio.example"}, "PATCHMILL_CORS_ORIGINS='studio.example'"),
    ],
)
def test_keys_and_origins_that_cannot_be_used_are_told_and_exit_2(
    variables: dict[str, str], told: str
) -> None:
    ended = patchmill("serve", **variables)
    assert ended.returncode == 2
    assert told in ended.stderr
    assert "pa55word" not in ended.stderr
    assert "Traceback" not in ended.stderr
