"""The image as its most careful operator would run it: nothing to write to, nothing allowed.

`make test-image` builds it and says by TEST_IMAGE and ENGINE what to run; RUN_OPTIONS are
the engine's further options where it needs some.
"""

import hashlib
import json
import os
import shlex
import socket
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass

import httpx
import pytest

from tests.golden_data import PICTURES
from tests.service.running import unpack

IMAGE = os.environ.get("TEST_IMAGE", "")
ENGINE = shlex.split(os.environ.get("ENGINE", "docker"))
OPTIONS = shlex.split(os.environ.get("RUN_OPTIONS", ""))
CAREFUL = shlex.split(
    "--rm --read-only --tmpfs /tmp:size=64m,mode=1777,noexec --user 54321:0 --cap-drop ALL"
    " --security-opt no-new-privileges"
)
LIMIT_BYTES = 350 * 10**6

pytestmark = pytest.mark.skipif(not IMAGE, reason="make test-image builds and names an image")


def engine(*args: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [*ENGINE, *args], capture_output=True, text=True, timeout=120, check=False
    )


def run(*args: str, entrypoint: str = "patchmill") -> "subprocess.CompletedProcess[str]":
    return engine("run", *CAREFUL, *OPTIONS, "--entrypoint", entrypoint, IMAGE, *args)


@dataclass
class Container:
    process: "subprocess.Popen[str]"
    name: str
    client: httpx.Client
    ready_s: float


@pytest.fixture(scope="module")
def container() -> Iterator[Container]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    name = f"patchmill-test-{port}"
    options = ["--name", name, "--publish", f"127.0.0.1:{port}:{port}"]
    options += ["--env", f"PATCHMILL_PORT={port}", "--env", "PATCHMILL_DRAIN_DELAY_S=0"]
    begun = time.monotonic()
    process = subprocess.Popen(
        [*ENGINE, "run", *CAREFUL, *OPTIONS, *options, IMAGE], stderr=subprocess.PIPE, text=True
    )
    with httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=30) as client:
        while not is_ready(client):
            assert process.poll() is None, process.communicate()[1]
            assert time.monotonic() < begun + 60
            time.sleep(0.05)
        yield Container(process, name, client, time.monotonic() - begun)
    engine("stop", "--time", "70", name)
    process.communicate(timeout=60)


def is_ready(client: httpx.Client) -> bool:
    try:
        return client.get("/health/ready").status_code == 200
    except httpx.TransportError:
        return False


def test_it_serves_with_the_kernels_that_it_brings(container: Container) -> None:
    kernel = container.client.get("/info").json()["kernel"]
    assert kernel["name"] == "simd"
    assert kernel["reason"] == "AVX2 and FMA, compiled for x86-64-v3, self-test passed"


def test_its_bytes_are_those_of_the_reference(container: Container) -> None:
    for vector in (each for each in PICTURES if each.model == "kimi-k2.5"):
        asked = {"model": vector.model, "dtype": "uint8"}
        answer = container.client.post("/preprocess", content=vector.data, params=asked)
        assert answer.status_code == 200, answer.text
        _, data = unpack(answer.content)
        assert hashlib.sha256(data).hexdigest() == vector.facts["sha256"]["uint8"]


def test_its_health_command_finds_it_well(container: Container) -> None:
    done = engine("exec", container.name, "patchmill", "health")
    assert (done.returncode, done.stdout.strip()) == (0, "ready"), done.stderr


def test_it_ends_well_when_it_is_told_to(container: Container) -> None:
    engine("stop", "--time", "70", container.name)
    _, log = container.process.communicate(timeout=80)
    assert container.process.returncode == 0, log
    assert "Traceback" not in log


@pytest.mark.parametrize(("name", "engine_name"), [("x86-64-v3", "simd"), ("x86-64", "portable")])
def test_nothing_is_compiled_for_anybody_without_a_home(name: str, engine_name: str) -> None:
    features = "" if name == "x86-64" else "$NUMBA_CPU_FEATURES"
    command = (
        f'unset HOME; export NUMBA_CPU_NAME={name} NUMBA_CPU_FEATURES="{features}";'
        f" exec patchmill warm --cached {engine_name}"
    )
    done = run("-c", command, entrypoint="sh")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "\n0 compiled, " in done.stdout


def test_it_holds_no_compiler_and_no_cache_of_pip() -> None:
    found = run(
        "-c",
        "command -v cc gcc g++ ld clang; find / -xdev -path '*/pip/http*'; true",
        entrypoint="sh",
    )
    assert found.stdout == ""


def test_its_files_are_root_s() -> None:
    found = run(
        "/opt/patchmill",
        "(",
        "!",
        "-user",
        "0",
        "-o",
        "-perm",
        "/022",
        ")",
        "!",
        "-type",
        "l",
        entrypoint="find",
    )
    assert (found.returncode, found.stdout) == (0, "")


def test_it_runs_as_a_numbered_user_and_stops_by_sigterm() -> None:
    [facts] = json.loads(engine("image", "inspect", IMAGE).stdout)
    assert facts["Config"]["User"] == "10001:10001"
    assert facts["Config"].get("StopSignal", facts.get("StopSignal")) in ("SIGTERM", "15", None)
    labels = facts["Config"]["Labels"]
    assert labels["org.opencontainers.image.title"] == "patchmill"


def test_what_lies_above_the_base_is_less_than_350_mb() -> None:
    told = run("-sB1", "/opt/patchmill", entrypoint="du")  # all that the last stage copies
    assert 100 * 10**6 < int(told.stdout.split()[0]) < LIMIT_BYTES
