"""The service against its own document: requests that follow it, and requests that do not."""

import subprocess
import sys
from pathlib import Path

from tests.service.running import Running

CHECKS = "not_a_server_error,status_code_conformance,content_type_conformance"


def test_requests_made_from_the_document_get_what_it_says(service: Running, tmp_path: Path) -> None:
    done = subprocess.run(
        [
            *(sys.executable, "-m", "schemathesis.cli", "run"),
            f"http://127.0.0.1:{service.port}/openapi.json",
            *("--max-examples", "20", "--seed", "1", "--checks", CHECKS),
        ],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        timeout=240,
    )
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
