"""Pictures of a run: ratios against gate and aim, stages by size, and load."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt

from benchmarks.stages import Stages


def ratios(rows: Sequence[dict[str, Any]], path: Path) -> None:
    """One bar a row of the gate table; rows where less is better are shown inverted."""
    shown = [row for row in rows if row["gate"]]
    figure, axes = plt.subplots(figsize=(9, 0.6 * len(shown) + 1.2))
    for at, row in enumerate(reversed(shown)):
        turn = (lambda x: 1 / x) if row["inverse"] else float
        axes.barh(at, turn(row["ratio"]) / turn(row["gate"]), color="#3b6ea5")
        axes.plot([turn(row["aim"]) / turn(row["gate"])] * 2, [at - 0.4, at + 0.4], color="#c0504d")
    axes.axvline(1, color="black", linewidth=1)
    axes.set_yticks(range(len(shown)), [row["name"] for row in reversed(shown)], fontsize=8)
    axes.set_xlabel("ratio in units of its gate (line: 1); red: the aim")
    _save(figure, path)


def stages(measured: Sequence[Stages], path: Path) -> None:
    """Stacked times of one picture on one thread, beside the peer's."""
    figure, axes = plt.subplots(figsize=(9, 4))
    for at, each in enumerate(measured):
        axes.bar(at - 0.2, each.decode_ms, 0.38, color="#8fb3d9")
        axes.bar(at - 0.2, each.patchify_1_ms, 0.38, bottom=each.decode_ms, color="#3b6ea5")
        axes.bar(at + 0.2, each.peer_decode_ms, 0.38, color="#e3c0be")
        bottom = each.peer_decode_ms
        axes.bar(at + 0.2, each.peer_patchify_ms, 0.38, bottom=bottom, color="#c0504d")
    axes.set_xticks(range(len(measured)), [each.name for each in measured])
    axes.set_ylabel("ms")
    axes.legend(
        ["decode", "resize … patches, 1 thread", "peer: decode", "peer: resize, kernel (b)"]
    )
    _save(figure, path)


def scaling(measured: Sequence[Stages], path: Path) -> None:
    """Time from pixels to patches over picture size."""
    figure, axes = plt.subplots(figsize=(9, 4))
    ordered = sorted(measured, key=lambda each: each.height * each.width)
    megapixels = [each.height * each.width / 1e6 for each in ordered]
    for label, values in {
        "Pillow's resize + kernel (b), all threads": [each.peer_patchify_ms for each in ordered],
        "ours, 1 thread": [each.patchify_1_ms for each in ordered],
        "ours, all threads": [each.patchify_all_ms for each in ordered],
        "memcpy of the answer": [each.memcpy_ms for each in ordered],
    }.items():
        axes.plot(megapixels, values, marker="o", label=label)
    axes.set_xlabel("megapixels")
    axes.set_ylabel("ms, float32")
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.legend()
    _save(figure, path)


def load(rates: dict[str, dict[int, float]], path: Path) -> None:
    """Requests per second over concurrency, by kind of request."""
    figure, axes = plt.subplots(figsize=(9, 4))
    for label, by_concurrency in rates.items():
        axes.plot(list(by_concurrency), list(by_concurrency.values()), marker="o", label=label)
    axes.set_xscale("log", base=2)
    axes.set_xlabel("concurrent requests")
    axes.set_ylabel("requests/s")
    axes.set_ylim(bottom=0)
    axes.legend()
    _save(figure, path)


def _save(figure: Any, path: Path) -> None:
    figure.tight_layout()
    figure.savefig(path, dpi=110)
    plt.close(figure)
