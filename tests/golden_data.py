"""The reference vectors under tests/golden; golden/README.md says how they were made."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

GOLDEN = Path(__file__).parent / "golden"
IMAGES = GOLDEN / "images"
MODELS = {"kimi_k25": "kimi-k2.5", "kimi_k3": "kimi-k3"}


@dataclass(frozen=True)
class Vector:
    """One picture through one model, as the reference package answers."""

    model: str
    name: str
    facts: dict[str, Any]

    @property
    def data(self) -> bytes:
        return (IMAGES / self.name).read_bytes()

    def __str__(self) -> str:
        return f"{self.model}-{self.name}"


def _patches() -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads((GOLDEN / "kimi" / "patches.json").read_text())
    return loaded


PICTURES = [
    Vector(MODELS[family], name, facts)
    for family in MODELS
    for name, facts in _patches()[family].items()
]
CHUNKS: dict[str, dict[str, Any]] = _patches()["kimi_k25_video"]
