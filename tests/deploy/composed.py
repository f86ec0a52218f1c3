"""docker-compose.yml as compose reads it, with the defaults of its variables."""

import re
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).parents[2]
VARIABLE = re.compile(r"\$\{(\w+)(?::-([^}]*))?\}")
UNITS = {"k": 2**10, "m": 2**20, "g": 2**30}


def text() -> str:
    return (ROOT / "docker-compose.yml").read_text("utf-8")


def compose() -> dict[str, Any]:
    """The whole document; variables are replaced by their defaults."""
    loaded: dict[str, Any] = yaml.safe_load(VARIABLE.sub(lambda found: found[2] or "", text()))
    return loaded


SERVICES: dict[str, Any] = compose()["services"]


def size_bytes(told: str) -> int:
    """512m -> 536870912."""
    return int(told[:-1]) * UNITS[told[-1]]


def seconds(told: str) -> float:
    return float(told[:-1]) * {"s": 1, "m": 60}[told[-1]]


def limits(name: str) -> dict[str, Any]:
    found: dict[str, Any] = SERVICES[name]["deploy"]["resources"]["limits"]
    return found


def listens(name: str) -> set[int]:
    """The ports that a service answers on, from what configures it."""
    service = SERVICES[name]
    if name == "patchmill":
        told = service["environment"]
        return {told["PATCHMILL_PORT"], told["PATCHMILL_METRICS_PORT"]}
    if name == "vllm":
        return {int(port) for port in re.findall(r"--port (\d+)", service["command"])}
    if name == "frontend":
        dockerfile = (ROOT / service["build"]["dockerfile"]).read_text("utf-8")
        return {int(port) for port in re.findall(r'^CMD .*"--port", "(\d+)"', dockerfile, re.M)}
    return {{"prometheus": 9090, "grafana": 3000, "locust": 8089}[name]}  # their images' own
