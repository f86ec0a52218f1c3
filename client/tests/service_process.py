"""The real service in a process of its own, where this repository and its packages are there."""

import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
START_TIMEOUT_S = 180


@cache
def interpreter() -> str | None:
    """A Python that can run the service: named by a variable, this one, or the one of `make`."""
    named = os.environ.get("PATCHMILL_CLIENT_TEST_PYTHON")
    for candidate in filter(None, (named, sys.executable, str(ROOT / ".venv/bin/python"))):
        if Path(candidate).exists() and _can_serve(candidate):
            return candidate
    return None


def _can_serve(python: str) -> bool:
    done = subprocess.run(
        [python, "-c", "import service.app"],
        cwd=ROOT,
        env=clean_environ(),
        capture_output=True,
        check=False,
    )
    return done.returncode == 0


def clean_environ() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if not name.startswith("PATCHMILL_")}


class Service:
    """A running service."""

    def __init__(self, python: str, environ: Mapping[str, str], port: int) -> None:
        self.log: list[str] = []
        self._ready = threading.Event()
        self.port = port
        self._process = subprocess.Popen(
            [python, "-m", "service", "serve", "--port", str(port)],
            cwd=ROOT,
            env={**clean_environ(), "PATCHMILL_DRAIN_DELAY_S": "0", **environ},
            start_new_session=True,
            stderr=subprocess.PIPE,
            text=True,
        )
        self._reader = threading.Thread(target=self._follow)
        self._reader.start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def wait_until_ready(self) -> None:
        assert self._ready.wait(START_TIMEOUT_S), "".join(self.log)
        assert self.port, "".join(self.log)

    def stop(self, signal_name: str = "terminate") -> None:
        """End it: with `terminate` it finishes what it has begun, with `kill` it does not."""
        if signal_name == "kill":
            os.killpg(self._process.pid, signal.SIGKILL)  # its workers too
        else:
            self._process.terminate()
        self._process.wait(START_TIMEOUT_S)
        self._reader.join()
        assert self._process.stderr
        self._process.stderr.close()

    def _follow(self) -> None:
        assert self._process.stderr
        told_ready = told_port = False
        for line in self._process.stderr:
            self.log.append(line)
            listening = re.search(r"listening on http://127\.0\.0\.1:(\d+)", line)
            if listening:
                self.port = int(listening[1])
            told_ready = told_ready or "ready, with" in line
            told_port = told_port or listening is not None
            if told_ready and told_port:  # in either order
                self._ready.set()
        self._ready.set()  # it ended: whoever waits looks at the log


@contextmanager
def running(environ: Mapping[str, str] | None = None, port: int = 0) -> Iterator[Service]:
    """A service that is ready, until the block ends."""
    python = interpreter()
    assert python
    service = Service(python, environ or {}, port)
    try:
        service.wait_until_ready()
        yield service
    finally:
        service.stop()
