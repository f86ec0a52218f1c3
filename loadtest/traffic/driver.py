"""Ties the parts to locust: options, the shape, what workers report, and the verdict.

Options come from the command line or the environment. When locust ends, the gates are read
and the verdict is printed, written, and made the exit code: 0 when all gates hold, else 1.
"""

import logging
from pathlib import Path
from typing import Any

from locust import LoadTestShape, events
from locust.runners import MasterRunner, WorkerRunner

from traffic import arrivals, bodies, corpus, gates, report, shapes
from traffic.gates import Measured
from traffic.kinds import Kind
from traffic.tally import Count, Tally
from traffic.users import Frontend, Traffic

HOME = Path(__file__).parents[1]
TALLY = Tally()


@events.init_command_line_parser.add_listener
def add_options(parser: Any) -> None:
    group = parser.add_argument_group("patchmill")
    group.add_argument(
        "--shape", choices=sorted(shapes.SHAPES), default="steady", env_var="LOAD_SHAPE"
    )
    group.add_argument("--rate", type=float, default=16.0, env_var="LOAD_RATE", help="requests/s")
    group.add_argument(
        "--seconds", type=float, default=0.0, env_var="LOAD_SECONDS", help="0: by shape"
    )
    group.add_argument("--seed", type=int, default=1, env_var="LOAD_SEED")
    group.add_argument("--corpus", default=str(HOME / ".corpus"), env_var="LOAD_CORPUS")
    group.add_argument("--gates", default=str(HOME / "gates.toml"), env_var="LOAD_GATES")
    group.add_argument("--results", default=str(HOME / "results"), env_var="LOAD_RESULTS")


@events.init.add_listener
def prepare(environment: Any, **_: Any) -> None:
    """Make all bodies, except on a master, which sends none."""
    options = environment.parsed_options
    if isinstance(environment.runner, MasterRunner):
        return
    decks = bodies.decks(corpus.load(Path(options.corpus)), options.seed)
    Frontend.traffic = Traffic(decks, options.seed, TALLY)


class Wave(LoadTestShape):
    """As many users as ask at the rate of the shape's moment; ends the run after its time."""

    def tick(self) -> tuple[int, float] | None:
        assert self.runner
        options = self.runner.environment.parsed_options
        seconds = length_s(options)
        passed = self.get_run_time() / seconds
        if passed >= 1:
            return None
        many = arrivals.users(shapes.SHAPES[options.shape](passed) * options.rate)
        return many, many  # all that are missing, within a second


def _but_for_spawn_rates(record: logging.LogRecord) -> bool:
    """locust warns every second of a shape that spawns over a hundred at once, as ours do."""
    return "spawn rate is very high" not in str(record.msg)


logging.getLogger("locust.runners").addFilter(_but_for_spawn_rates)


@events.report_to_master.add_listener
def report_counts(client_id: str, data: dict[str, Any]) -> None:  # noqa: ARG001 - locust's names
    data["tally"] = TALLY.taken()


@events.worker_report.add_listener
def merge_counts(client_id: str, data: dict[str, Any]) -> None:  # noqa: ARG001
    TALLY.merge(data["tally"])


@events.quitting.add_listener
def judge(environment: Any, **_: Any) -> None:
    """Print and write the verdict; a worker leaves that to its master."""
    if isinstance(environment.runner, WorkerRunner):
        return
    options = environment.parsed_options
    seconds = length_s(options)
    asked = shapes.arrivals(shapes.SHAPES[options.shape], options.rate, seconds)
    found = {kind: measured(environment.stats, kind) for kind in Kind}
    limits = gates.read(Path(options.gates))[options.shape]
    told = report.Report(
        shape=options.shape,
        rate_per_s=options.rate,
        seconds=seconds,
        asked=asked,
        kinds=found,
        checks=gates.checks(asked, found, limits),
    )
    report.write(told, Path(options.results))
    print(report.markdown(told), flush=True)
    environment.process_exit_code = 0 if told.passed else 1


def measured(stats: Any, kind: Kind) -> Measured:
    """One kind's numbers, from locust's statistics and our own counts."""
    entry = stats.get(kind, "POST")
    return Measured(
        due=TALLY.of(kind, Count.DUE),
        on_time=TALLY.of(kind, Count.ON_TIME),
        answered=entry.num_requests - entry.num_failures,
        failed=entry.num_failures,
        shed=TALLY.of(kind, Count.SHED),
        compared=TALLY.of(kind, Count.COMPARED),
        unequal=TALLY.of(kind, Count.UNEQUAL),
        p50_ms=entry.get_response_time_percentile(0.5),
        p99_ms=entry.get_response_time_percentile(0.99),
    )


def length_s(options: Any) -> float:
    """How long the run lasts: as asked, else as its shape lasts."""
    return float(options.seconds) or shapes.DEFAULT_SECONDS[options.shape]
