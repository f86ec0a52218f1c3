"""The README and the pinned packages tell what the code does."""

import re
from pathlib import Path

import pytest
from frontend.settings import Settings

HERE = Path(__file__).parents[1]


@pytest.mark.parametrize("name", Settings.model_fields)
def test_every_setting_is_documented_with_its_default(name: str) -> None:
    default = Settings.model_fields[name].get_default()
    told = "–" if Settings.model_fields[name].is_required() or default is None else f"`{default}`"
    row = f"| `FRONTEND_{name.upper()}` | {told} |"
    assert row in (HERE / "README.md").read_text("utf-8")


def test_every_module_is_in_the_readme() -> None:
    page = (HERE / "README.md").read_text("utf-8")
    modules = {path.name for path in (HERE / "frontend").glob("*.py")} - {"__init__.py"}
    assert set(re.findall(r"^\| `(\w+\.py)` \|", page, re.MULTILINE)) == modules


def test_packages_are_pinned_as_the_repository_pins_them() -> None:
    lines = (HERE / "requirements.txt").read_text("utf-8").splitlines()
    pins = [line.split("#")[0].strip() for line in lines if not line.startswith("#")]
    assert all(re.fullmatch(r"[a-z0-9-]+==[\d.]+", pin) for pin in pins)
    names = ("service", "dev")
    locked = "".join((HERE.parents[1] / f"requirements/{name}.txt").read_text() for name in names)
    assert all(f"{pin} " in locked for pin in pins)
