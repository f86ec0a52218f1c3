"""A fresh interpreter: what is decided while `kernels` loads cannot be tested in this one."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from kernels import cpu

_ROOT = Path(__file__).parents[2]

needs_vectors = pytest.mark.skipif(bool(cpu.missing()), reason=cpu.missing())

Run = Callable[..., list[str]]


@pytest.fixture
def run_python(tmp_path: Path) -> Run:
    """Run a script with warnings as errors, numba's cache in a folder of its own; its lines."""

    def run(script: str, **variables: str) -> list[str]:
        inherited = {k: v for k, v in os.environ.items() if not k.startswith("NUMBA_")}
        environment = {
            "PYTHONPATH": str(_ROOT),
            "PYTHONWARNINGS": "error",
            "NUMBA_CACHE_DIR": str(tmp_path / "numba"),
        }
        done = subprocess.run(
            [sys.executable, "-c", script],
            env=inherited | environment | variables,
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout.splitlines()

    return run
