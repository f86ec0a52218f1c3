"""What a run must be to pass, and whether it was.

Measurements of a run and the limits of its shape go in, a list of checks comes out; the run
passes when all hold. A gate that measured nothing does not hold.
"""

import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from traffic.kinds import Kind


@dataclass(frozen=True)
class Measured:
    """One kind's numbers. `answered` are right answers, for hostile requests right refusals."""

    due: int
    on_time: int
    answered: int
    failed: int
    shed: int
    compared: int
    unequal: int
    p50_ms: float
    p99_ms: float

    @property
    def ended(self) -> int:
        return self.answered + self.failed + self.shed


@dataclass(frozen=True)
class Limits:
    """One shape's gates. Shares are of all requests of the run.

    `latency_ms` has (p50, p99) by kind, of right answers, from the moment that a
    request was due. `arrivals` is the least share of due requests that began in time,
    and of the shape's requests that were due.
    """

    failed: float
    refused: float
    arrivals: float
    latency_ms: Mapping[str, tuple[float, float]]


@dataclass(frozen=True)
class Check:
    """One gate: `actual` against `limit`; `bound` is "≤" or "≥"."""

    name: str
    actual: float
    bound: str
    limit: float

    @property
    def holds(self) -> bool:
        return self.actual <= self.limit if self.bound == "≤" else self.actual >= self.limit


def read(path: Path) -> dict[str, Limits]:
    """The limits by shape, from a TOML file with a table for each."""
    tables = tomllib.loads(path.read_text("utf-8"))
    return {
        shape: Limits(
            failed=table["failed"],
            refused=table["refused"],
            arrivals=table["arrivals"],
            latency_ms={kind: (p50, p99) for kind, (p50, p99) in table["latency_ms"].items()},
        )
        for shape, table in tables.items()
    }


def checks(asked: float, found: Mapping[Kind, Measured], limits: Limits) -> list[Check]:
    """All gates of a run whose shape asked for so many requests."""
    return [*_of_all(asked, list(found.values()), limits), *_of_kinds(found, limits)]


def _of_all(asked: float, found: list[Measured], limits: Limits) -> Iterator[Check]:
    due, ended, compared = (
        sum(getattr(each, name) for each in found) for name in ("due", "ended", "compared")
    )
    failed = sum(each.failed for each in found) / max(1, ended)
    shed = sum(each.shed for each in found) / max(1, ended)
    unequal = sum(each.unequal for each in found)
    yield Check("due, of what the shape asks", due / max(1, asked), "≥", limits.arrivals)
    on_time = sum(each.on_time for each in found) / max(1, due)
    yield Check("begun in time, of what was due", on_time, "≥", limits.arrivals)
    # One that never got an answer is in none of the counts below.
    yield Check("ended, of what was due", ended / max(1, due), "≥", limits.arrivals)
    yield Check("failed", failed, "≤", limits.failed)
    yield Check("refused (429)", shed, "≤", limits.refused)
    yield Check("answers compared byte by byte", compared, "≥", 1)
    yield Check("of them unequal", unequal, "≤", 0)


def _of_kinds(found: Mapping[Kind, Measured], limits: Limits) -> Iterator[Check]:
    for kind, each in found.items():
        p50_ms, p99_ms = limits.latency_ms[kind]
        yield Check(f"{kind}: answered", each.answered, "≥", 1)
        yield Check(f"{kind}: p50, ms", each.p50_ms, "≤", p50_ms)
        yield Check(f"{kind}: p99, ms", each.p99_ms, "≤", p99_ms)
