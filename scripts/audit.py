"""Asks for known vulnerabilities of all that requirements/ pins.

Ends with 1 where there are some. Where nobody can be asked, or the package index
does not know, it says so and ends with 0: a check that fails without a network
would be switched off.

python scripts/audit.py
"""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

REQUIREMENTS = Path(__file__).parents[1] / "requirements"
OPTIONS = ["--require-hashes", "--disable-pip", "--format", "json", "--progress-spinner", "off"]
TIMEOUT_S = 120


def main() -> int:
    files = sorted(REQUIREMENTS.glob("*.txt"))
    found = [line for file in files for line in told(file.name, report(file))]
    for line in sorted(set(found)):
        print(line)
    return 1 if found else 0


def told(name: str, packages: list[dict[str, Any]]) -> list[str]:
    """A line for each known vulnerability; prints what could not be asked for."""
    unknown = [package for package in packages if "skip_reason" in package]
    if not packages or len(unknown) == len(packages):
        print(f"{name}: not audited, no vulnerability service answers here")
        return []
    print(f"{name}: {len(packages) - len(unknown)} packages audited, {len(unknown)} not")
    return [
        f"{package['name']} {package['version']}: {each['id']}, fixed in {each['fix_versions']}"
        for package in packages
        for each in package.get("vulns", ())
    ]


def report(file: Path) -> list[dict[str, Any]]:
    """What pip-audit says of each package; nothing where it could not ask."""
    command = [sys.executable, "-m", "pip_audit", "--requirement", str(file), *OPTIONS]
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=TIMEOUT_S, check=False
        )
        packages: list[dict[str, Any]] = json.loads(done.stdout)["dependencies"]
    except (subprocess.TimeoutExpired, ValueError, KeyError):
        return []
    return packages


if __name__ == "__main__":
    sys.exit(main())
