"""locust itself against a real service, for some seconds: alone, distributed, and failing."""

import importlib.util
import json
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.service.running import Running, running
from traffic import making
from traffic.arrivals import PERIOD_S
from traffic.kinds import Kind

# Not importorskip: importing locust patches the sockets of this process.
pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("locust") is None, reason="locust is not installed: `make test-load`"
)

ROOT = Path(__file__).parents[2]
RATE = 5
RUN_S = PERIOD_S + 3
"""So that every user has a request, also one that comes late."""

TIMEOUT_S = 120
LENIENT: dict[str, Any] = {
    "failed": 0.0,
    "refused": 0.0,
    "arrivals": 0.5,
    "latency_ms": {kind.value: [60_000, 60_000] for kind in Kind},
}
"""A test is no measurement: it must hold on a busy machine."""


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Without its large pictures."""
    folder: Path = tmp_path_factory.mktemp("corpus")
    with pytest.MonkeyPatch.context() as patch:
        few = [row for row in making.PICTURES if row.height <= 640]
        patch.setattr(making, "PICTURES", few)
        making.make(folder)
    return folder


@pytest.fixture(scope="module")
def service() -> Iterator[Running]:
    with running() as found:
        yield found


@contextmanager
def begun(
    service: Running, corpus: Path, results: Path, *more: str
) -> Iterator["subprocess.Popen[str]"]:
    """A locust, which is gone when the block ends."""
    arguments = {
        "--host": f"http://127.0.0.1:{service.port}",
        "--corpus": corpus,
        "--results": results,
        "--gates": results / "gates.toml",
        "--rate": RATE,
        "--seconds": RUN_S,
        "--stop-timeout": 10,
    }
    command = [sys.executable, "-m", "locust", "-f", "loadtest/locustfile.py", "--headless", *more]
    for name, value in arguments.items():
        command += [name, str(value)]
    with subprocess.Popen(
        command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as locust:
        try:
            yield locust
        finally:
            locust.kill()


def ended(locust: "subprocess.Popen[str]") -> tuple[int, str]:
    """Its exit code, and all that it printed."""
    told, _ = locust.communicate(timeout=TIMEOUT_S)
    return locust.returncode, told


def write_gates(folder: Path, limits: dict[str, Any]) -> None:
    latencies = "".join(f"{kind} = {pair}\n" for kind, pair in limits["latency_ms"].items())
    plain = "".join(f"{name} = {limits[name]}\n" for name in ("failed", "refused", "arrivals"))
    (folder / "gates.toml").write_text(f"[steady]\n{plain}[steady.latency_ms]\n{latencies}")


def test_a_run_passes_and_writes_its_report(service: Running, corpus: Path, tmp_path: Path) -> None:
    write_gates(tmp_path, LENIENT)
    with begun(service, corpus, tmp_path, "--html", str(tmp_path / "report.html")) as locust:
        code, told = ended(locust)
    assert code == 0, told
    summary = json.loads((tmp_path / "summary.json").read_text())
    assert summary["passed"] is True
    assert all(each["answered"] and not each["failed"] for each in summary["kinds"].values())
    assert sum(each["compared"] for each in summary["kinds"].values()) > 0
    assert (tmp_path / "verdict.md").read_text() in told
    assert "http" in (tmp_path / "report.html").read_text()


def test_workers_make_the_load_and_the_master_judges_it(
    service: Running, corpus: Path, tmp_path: Path
) -> None:
    write_gates(tmp_path, LENIENT)
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = str(probe.getsockname()[1])
    leads = ("--master", "--expect-workers", "2", "--master-bind-port", port)
    works = ("--worker", "--master-port", port)
    with (
        begun(service, corpus, tmp_path, *leads) as master,
        begun(service, corpus, tmp_path, *works) as first,
        begun(service, corpus, tmp_path, *works) as second,
    ):
        code, told = ended(master)
        assert code == 0, told
        assert [ended(worker)[0] for worker in (first, second)] == [0, 0]
    summary = json.loads((tmp_path / "summary.json").read_text())
    due = sum(each["due"] for each in summary["kinds"].values())
    assert due >= LENIENT["arrivals"] * summary["asked"]


def test_a_missed_gate_is_the_exit_code(service: Running, corpus: Path, tmp_path: Path) -> None:
    impossible = {**LENIENT["latency_ms"], "single": [0, 0]}
    write_gates(tmp_path, {**LENIENT, "latency_ms": impossible})
    with begun(service, corpus, tmp_path) as locust:
        code, told = ended(locust)
    assert code == 1, told
    assert "MISSED: single: p50, ms; single: p99, ms" in told


def test_without_a_corpus_it_says_how_to_make_one(service: Running, tmp_path: Path) -> None:
    with begun(service, tmp_path / "none", tmp_path) as locust:
        code, told = ended(locust)
    assert code != 0
    assert "make corpus" in told
