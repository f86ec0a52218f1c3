"""The distribution: light to import, typed, of its own."""

import ast
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import patchmill_client
from patchmill_client import errors, vllm
from patchmill_client.bodies import Form

CLIENT = Path(__file__).parents[1]
PACKAGE = CLIENT / "patchmill_client"
MODULES = sorted(PACKAGE.rglob("*.py"))


def test_importing_the_client_imports_neither_torch_nor_pillow() -> None:
    script = (
        "import sys, patchmill_client; "
        "print(sorted({'torch', 'PIL', 'triton', 'service', 'kernels'} & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", script],
        cwd=CLIENT,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == "[]\n"


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.name)
def test_only_declared_packages_are_imported(path: Path) -> None:
    declared = tomllib.loads((CLIENT / "pyproject.toml").read_text())["project"]
    extras = {
        "tensors.py": {"torch"},
        "fused.py": {"torch", "triton"},
        "batch.py": {"torch"},
        "orders.py": {"torch"},
        "pixel_shuffle.py": {"torch"},
        "text.py": {"pybase64"},
    }
    allowed = {re.split(r"\W", name)[0] for name in declared["dependencies"]}
    allowed |= {"patchmill_client", *sys.stdlib_module_names, *extras.get(path.name, ())}
    allowed |= {"PIL"} if path.name == "inputs.py" else set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom):
            assert node.module
            assert node.module.split(".")[0] in allowed
        elif isinstance(node, ast.Import):
            assert {name.name.split(".")[0] for name in node.names} <= allowed


def test_types_are_shipped() -> None:
    assert (PACKAGE / "py.typed").exists()


def test_the_versions_agree() -> None:
    project = tomllib.loads((CLIENT / "pyproject.toml").read_text())["project"]
    assert project["version"] == patchmill_client.__version__


def test_every_error_is_public() -> None:
    named = {
        name
        for name, value in vars(errors).items()
        if isinstance(value, type) and issubclass(value, errors.PatchmillError)
    }
    assert named <= set(patchmill_client.__all__)
    assert all(name in (errors.__doc__ or "") for name in named)


def page() -> str:
    return (CLIENT.parent / "docs" / "client.md").read_text("utf-8")


@pytest.mark.parametrize("name", patchmill_client.__all__)
def test_every_public_name_is_documented(name: str) -> None:
    assert re.search(rf"`[^`]*\b{name}\b[^`]*`", page())


@pytest.mark.parametrize("name", [*vllm.__all__, *map(str, vllm.Family)])
def test_every_name_for_vllm_is_documented(name: str) -> None:
    text = (CLIENT.parent / "docs" / "vllm.md").read_text("utf-8")
    assert re.search(rf"\b{name}\b", text, re.IGNORECASE if name.islower() else 0)


def test_every_form_and_default_is_documented() -> None:
    assert all(f"`{form}`" in page() for form in Form)
    policy = patchmill_client.RetryPolicy()
    timeouts = patchmill_client.Timeouts()
    for defaults in (policy, timeouts):
        for name in defaults.__slots__:
            value = getattr(defaults, name)
            assert f"| `{name}` | {value:g} |" in page()


def example() -> str:
    [block] = re.findall(r"```python\n(.*?)```", (CLIENT / "README.md").read_text(), re.DOTALL)
    return str(block)


def test_the_example_has_twenty_lines_and_compiles() -> None:
    assert len(example().splitlines()) <= 20
    compile(example(), "README.md", "exec")
