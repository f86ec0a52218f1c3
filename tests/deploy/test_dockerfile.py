"""The Dockerfiles say the same as their neighbours: versions, targets, files."""

import re
import tomllib
from pathlib import Path

import pytest

from kernels.cpu import NEEDED
from service.cli.health import TIMEOUT_S
from tests.deploy.composed import ROOT, seconds

SERVICE = ROOT / "Dockerfile"
DOCKERFILES = [SERVICE, ROOT / "examples/vllm_frontend/Dockerfile"]


def instructions(path: Path) -> list[tuple[str, str]]:
    """Each instruction of a Dockerfile, whole: its name, and the rest."""
    lines = [line for line in path.read_text("utf-8").splitlines() if not line.startswith("#")]
    whole = re.sub(r"\\\n\s*", "", "\n".join(lines))
    return [(line.split()[0], line.partition(" ")[2]) for line in whole.splitlines() if line]


def copied(path: Path) -> list[str]:
    """What comes from the folder around, and not from an earlier stage."""
    sources = []
    for name, rest in instructions(path):
        if name == "COPY" and "--from" not in rest:
            sources += rest.split()[:-1]
    return sources


@pytest.mark.parametrize("path", DOCKERFILES, ids=lambda path: path.parent.name)
def test_both_stages_stand_on_the_one_base_that_the_checks_run_on(path: Path) -> None:
    bases = [rest.split()[0] for name, rest in instructions(path) if name == "FROM"]
    assert bases == ["python:3.11-slim-bookworm"] * 2


@pytest.mark.parametrize("path", DOCKERFILES, ids=lambda path: path.parent.name)
def test_it_ends_as_a_numbered_user_that_is_not_root(path: Path) -> None:
    users = [rest for name, rest in instructions(path) if name == "USER"]
    assert set(users) == {"10001:10001"}


@pytest.mark.parametrize("path", DOCKERFILES, ids=lambda path: path.parent.name)
def test_what_it_copies_exists_and_is_not_ignored(path: Path) -> None:
    lines = (ROOT / ".dockerignore").read_text("utf-8").splitlines()
    let_in = [line[1:] for line in lines if line.startswith("!")]
    assert "*" in lines
    for source in copied(path):
        assert (ROOT / source).exists(), source
        assert any(f"{each}/".startswith(f"{source}/") for each in let_in), source


def test_nothing_is_let_in_that_is_not_copied() -> None:
    lines = (ROOT / ".dockerignore").read_text("utf-8").splitlines()
    wanted = [source for path in DOCKERFILES for source in copied(path)]
    for each in (line[1:] for line in lines if line.startswith("!")):
        assert (ROOT / each).exists(), each
        assert any(f"{each}/".startswith(f"{source}/") for source in wanted), each


def test_kernels_are_compiled_for_the_target_that_they_run_on() -> None:
    environments = [
        dict(re.findall(r"(NUMBA_\w+)=(\S+)", rest))
        for name, rest in instructions(SERVICE)
        if name == "ENV" and "NUMBA_" in rest
    ]
    built, run = environments
    assert run.pop("NUMBA_CACHE_LOCATOR_CLASSES") == "kernels.shipped.ShippedCacheLocator"
    assert run == built
    assert built["NUMBA_CPU_NAME"] == "x86-64-v3"
    assert {f"+{each}" for each in NEEDED} <= set(built["NUMBA_CPU_FEATURES"].split(","))


def test_the_last_stage_proves_the_cache_of_both_targets() -> None:
    steps = [rest for name, rest in instructions(SERVICE) if name == "RUN"]
    assert "patchmill warm --cached simd" in steps[-1]
    assert "NUMBA_CPU_NAME=x86-64 NUMBA_CPU_FEATURES= patchmill warm --cached portable" in steps[-1]


def test_packages_come_pinned_by_their_hashes_and_leave_no_cache() -> None:
    text = SERVICE.read_text("utf-8")
    assert text.count("--require-hashes") == text.count("-r requirements/") == 2
    assert "PIP_NO_CACHE_DIR=1" in text


def test_its_label_has_the_project_s_version() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    text = SERVICE.read_text("utf-8")
    assert f'image.version="{project["version"]}"' in text
    assert f'image.description="{project["description"]}"' in text


def test_the_health_check_outlasts_the_command_that_it_runs() -> None:
    [rest] = [rest for name, rest in instructions(SERVICE) if name == "HEALTHCHECK"]
    assert rest.endswith('CMD ["patchmill", "health"]')
    assert seconds(re.findall(r"--timeout=(\w+)", rest)[0]) > TIMEOUT_S
