"""A run told: as Markdown for people, as JSON for programs.

locust writes the HTML with the charts; these two stand beside it.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from traffic.gates import Check, Measured
from traffic.kinds import Kind


@dataclass(frozen=True)
class Report:
    """One run. `asked` are the requests that its shape asks for."""

    shape: str
    rate_per_s: float
    seconds: float
    asked: float
    kinds: Mapping[Kind, Measured]
    checks: Sequence[Check]

    @property
    def passed(self) -> bool:
        return all(check.holds for check in self.checks)


def write(report: Report, folder: Path) -> None:
    """verdict.md and summary.json in the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "verdict.md").write_text(markdown(report), "utf-8")
    told = {**asdict(report), "passed": report.passed}
    (folder / "summary.json").write_text(json.dumps(told, indent=1) + "\n", "utf-8")


def markdown(report: Report) -> str:
    """The verdict first, then the kinds, then every gate."""
    missed = [check.name for check in report.checks if not check.holds]
    verdict = "PASSED" if report.passed else f"MISSED: {'; '.join(missed)}"
    lines = [
        f"# {report.shape}, {report.rate_per_s:g} requests/s, {report.seconds:.0f} s: {verdict}",
        "",
        "| kind | due | in time | answered | failed | refused | compared | p50, ms | p99, ms |",
        "|---|---|---|---|---|---|---|---|---|",
        *(_row(kind, each) for kind, each in report.kinds.items()),
        "",
        "| gate | actual | limit | |",
        "|---|---|---|---|",
        *map(gate_row, report.checks),
    ]
    return "\n".join(lines) + "\n"


def _row(kind: Kind, each: Measured) -> str:
    return (
        f"| {kind} | {each.due} | {each.on_time} | {each.answered} | {each.failed} | {each.shed} "
        f"| {each.compared} | {each.p50_ms:.0f} | {each.p99_ms:.0f} |"
    )


def gate_row(check: Check) -> str:
    """A row of a table of gates."""
    word = "holds" if check.holds else "MISSED"
    return f"| {check.name} | {check.actual:.4g} | {check.bound} {check.limit:g} | {word} |"
