"""A real service in a process of its own, on a free port, for tests that speak HTTP to it."""

import os
import re
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import msgpack
import numpy as np

ROOT = Path(__file__).parents[2]
START_TIMEOUT_S = 180
LISTENING = "listening on "


class Running:
    """The service's address, its log so far, and a client for it."""

    def __init__(self, process: "subprocess.Popen[str]", client: httpx.Client) -> None:
        self.process = process
        self.client = client
        self.log: list[str] = []

    def post(self, content: Any = None, **options: Any) -> httpx.Response:
        return self.client.post("/preprocess", content=content, **options)

    def worker_pids(self) -> list[int]:
        """The processes that the supervisor watches and that are servers."""
        pid = self.process.pid
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        commands = {child: Path(f"/proc/{child}/cmdline").read_bytes() for child in children}
        return [int(child) for child, command in commands.items() if b"spawn_main" in command]

    @property
    def port(self) -> int:
        assert self.client.base_url.port
        return self.client.base_url.port


@contextmanager
def running(environ: Mapping[str, str] | None = None, uds: Path | None = None) -> Iterator[Running]:
    """`patchmill serve --port 0` with further variables, until the block ends.

    `uds` is the Unix socket that the variables name, for the client to use.
    """
    clean = {name: value for name, value in os.environ.items() if not name.startswith("PATCHMILL_")}
    process = subprocess.Popen(
        [sys.executable, "-m", "service", "serve", "--port", "0"],
        cwd=ROOT,
        env={**clean, "PATCHMILL_DRAIN_DELAY_S": "0", **(environ or {})},
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stderr
    transport = httpx.HTTPTransport(uds=str(uds)) if uds else None
    with httpx.Client(timeout=60, transport=transport) as client:
        service = Running(process, client)
        reader = threading.Thread(target=_follow, args=(process.stderr, service.log), daemon=True)
        reader.start()
        try:
            address = _address(service)
            client.base_url = httpx.URL("http://mill" if uds else address)
            _wait_until_ready(service)
            yield service
        finally:
            process.terminate()
            process.wait(START_TIMEOUT_S)
            reader.join(START_TIMEOUT_S)
            process.stderr.close()


def unpack(body: bytes) -> tuple[dict[str, Any], bytes]:
    """The answer's map and its pixel data."""
    answer: dict[str, Any] = msgpack.unpackb(body)
    return answer, answer["pixel_values"]["data"]


def problem(answer: httpx.Response) -> tuple[int, str, int | None]:
    """(status, code, item) of a refusal, after checking its form."""
    assert answer.headers["content-type"] == "application/problem+json"
    told = answer.json()
    assert told["status"] == answer.status_code
    assert told["type"] == f"urn:patchmill:problem:{told['code']}"
    assert told["title"]
    assert len(told["detail"]) <= 200
    assert told["retryable"] is (answer.status_code in (408, 429) or answer.status_code >= 500)
    return answer.status_code, told["code"], told.get("item")


def array(body: bytes, dtype: str = "<f4") -> "np.ndarray[Any, np.dtype[Any]]":
    answer, data = unpack(body)
    return np.frombuffer(data, dtype).reshape(answer["pixel_values"]["shape"])


def _follow(stream: Any, log: list[str]) -> None:
    for line in stream:
        log.append(line)


def _address(service: Running) -> str:
    def find() -> str | None:
        for line in list(service.log):
            if LISTENING in line:
                return re.split(r'[\s"]', line.split(LISTENING)[1])[0]
        return None

    return _poll(service, find)


def _wait_until_ready(service: Running) -> None:
    _poll(service, lambda: service.client.get("/health/ready").status_code == 200 or None)


def _poll(service: Running, look: Any) -> Any:
    """What `look` finds, asked again and again while the service lives."""
    deadline_s = time.monotonic() + START_TIMEOUT_S
    pause = threading.Event()
    while time.monotonic() < deadline_s:
        found = look()
        if found is not None:
            return found
        assert service.process.poll() is None, "".join(service.log)
        pause.wait(0.02)
    raise AssertionError("not ready in time\n" + "".join(service.log))
