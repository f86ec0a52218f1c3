"""loadtest/README.md tells what the code does."""

import re
from pathlib import Path

from traffic import shapes
from traffic.bodies import DTYPES
from traffic.kinds import WEIGHTS

HOME = Path(__file__).parents[2] / "loadtest"
PAGE = (HOME / "README.md").read_text("utf-8")


def test_every_kind_is_documented_with_its_weight() -> None:
    section = PAGE.partition("## What is sent")[2].partition("## When")[0]
    told = dict(re.findall(r"^\| `(\w+)` \| (\d+) \|", section, re.MULTILINE))
    assert told == {kind.value: str(weight) for kind, weight in WEIGHTS.items()}


def test_every_shape_is_documented() -> None:
    assert all(f"| `{name}` |" in PAGE for name in shapes.SHAPES)
    assert f"up to {shapes.OVERLOAD:g}, and back" in PAGE


def test_the_share_of_types_is_documented() -> None:
    assert f"{DTYPES['uint8']} % are asked for as `uint8`" in PAGE


def test_every_file_is_in_the_table() -> None:
    section = PAGE.partition("## How it is built")[2]
    files = {path.name for path in (HOME / "traffic").glob("*.py")} - {"__init__.py"}
    assert {name for name in files if name not in section} == set()


def test_every_option_can_be_given_in_the_environment() -> None:
    driver = (HOME / "traffic/driver.py").read_text("utf-8")
    for option, variable in re.findall(r'"--(\w+)".*?env_var="(\w+)"', driver, re.DOTALL):
        assert variable == f"LOAD_{option.upper()}"
        assert f"`--{option}`" in PAGE
