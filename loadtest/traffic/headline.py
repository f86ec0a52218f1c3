"""The headline scenario: four JPEGs of 1280x720 a request, as uint8.

    python -m traffic --shape headline

First saturation is found, by a closed loop of growing concurrency. Then requests arrive by chance
(Poisson) at 70 % of that rate, in several rounds. The generator is not locust, which would take
a good part of the same cores, but threads on raw sockets (`benchmarks.load`); its CPU time is
told and is not in the service's, which comes from /proc. So is what all other work on the
machine took in the meantime: where some rounds were quiet, only they are judged.
"""

import json
import os
import random
import statistics
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from itertools import accumulate
from pathlib import Path

from benchmarks import load
from benchmarks.pictures import jpeg
from benchmarks.service import TICKS_PER_S, Service, started
from traffic import memory
from traffic.bodies import BATCH, multipart, multipart_type
from traffic.gates import Check
from traffic.report import gate_row

HEIGHT, WIDTH = 720, 1280
PICTURES = 8
CONCURRENCIES = (2, 3, 4, 6, 8)
SHARE = 0.7
"""Of saturation, at which latency is measured."""

CONNECTIONS = 64
PROBE_S = 3.0
PUBLISHED_PER_S = 140
"""Pictures a second of 1280x720 for which public reports take 100 to 200 cores."""

QUIET_CORES = 0.2
"""A round is quiet when all other work on the machine took no more."""

MIN_PER_CPU_S = 70.0
MAX_P99_MS = 250.0


@dataclass(frozen=True)
class Round:
    """One measurement at a given rate. CPU in cores; latencies in milliseconds from due to read."""

    asked_per_s: float
    requests_per_s: float
    pictures_per_cpu_s: float
    p50_ms: float
    p99_ms: float
    service_cores: float
    generator_cores: float
    other_cores: float


@dataclass(frozen=True)
class Headline:
    """What was found. `saturation` is in requests a second, the best of the concurrencies."""

    saturation: float
    concurrency: int
    rounds: tuple[Round, ...]
    pss_mib: float
    rss_mib: float

    @property
    def judged(self) -> tuple[Round, ...]:
        """The quiet rounds; all, where none was."""
        quiet = tuple(each for each in self.rounds if each.other_cores <= QUIET_CORES)
        return quiet or self.rounds

    def median(self, name: str) -> float:
        """Of the rounds that are judged."""
        return float(statistics.median(getattr(each, name) for each in self.judged))

    @property
    def cores_for_published(self) -> float:
        return PUBLISHED_PER_S / self.median("pictures_per_cpu_s")


def requests() -> list[bytes]:
    """Multipart requests of four pictures, each another four of eight."""
    pictures = [jpeg(HEIGHT, WIDTH, seed) for seed in range(PICTURES)]
    chosen = [[pictures[(at + n) % PICTURES] for n in range(BATCH)] for at in range(PICTURES)]
    path = "/preprocess?dtype=uint8"
    return [load.request(path, multipart(each), multipart_type()) for each in chosen]


def measure(seconds: float, rounds: int) -> Headline:
    """Start a service, saturate it, then measure at 70 % of that for `seconds` in each round."""
    posts = requests()
    with started(lambda port: ["service", "serve", "--port", str(port)]) as service:
        load.run(service.port, posts, 2, PROBE_S)
        per_s, concurrency = max(_saturations(service, posts))
        found = tuple(_round(service, posts, per_s * SHARE, seconds, n) for n in range(rounds))
        return Headline(
            saturation=per_s,
            concurrency=concurrency,
            rounds=found,
            pss_mib=memory.pss_mib(service),
            rss_mib=memory.rss_mib(service),
        )


def _saturations(service: Service, posts: list[bytes]) -> Iterator[tuple[float, int]]:
    for many in CONCURRENCIES:
        rates = [load.run(service.port, posts, many, PROBE_S).per_second for _ in range(3)]
        yield statistics.median(rates), many


def _round(service: Service, posts: list[bytes], per_s: float, seconds: float, seed: int) -> Round:
    due_s = poisson(per_s, seconds, seed)
    before, own_before, all_before = service.cpu_s(), time.process_time(), busy_s()
    ran = load.run_open(service.port, posts, CONNECTIONS, due_s)
    cpu_s, own_s = service.cpu_s() - before, time.process_time() - own_before
    other_s = busy_s() - all_before - cpu_s - own_s
    return Round(
        asked_per_s=per_s,
        requests_per_s=ran.per_second,
        pictures_per_cpu_s=ran.requests * BATCH / cpu_s,
        p50_ms=ran.quantile_ms(0.5),
        p99_ms=ran.quantile_ms(0.99),
        service_cores=cpu_s / ran.seconds,
        generator_cores=own_s / ran.seconds,
        other_cores=other_s / ran.seconds,
    )


def busy_s() -> float:
    """Seconds that all CPUs of the machine have worked, or were taken by its host (proc(5))."""
    fields = Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:9]
    user, nice, system, _idle, _wait, irq, softirq, steal = map(int, fields)
    return (user + nice + system + irq + softirq + steal) / TICKS_PER_S


def poisson(per_s: float, seconds: float, seed: int) -> list[float]:
    """When requests are due: independent arrivals, as many as the rate asks for in that time."""
    rng = random.Random(seed)
    many = round(per_s * seconds)
    gaps = [rng.expovariate(1.0) for _ in range(many + 1)]
    stretch = seconds / sum(gaps)
    return [at * stretch for at in accumulate(gaps[:-1])]


def checks(found: Headline) -> list[Check]:
    """The gates, on the medians of the rounds that are judged."""
    kept_up = statistics.median(each.requests_per_s / each.asked_per_s for each in found.judged)
    return [
        Check("pictures per CPU second", found.median("pictures_per_cpu_s"), "≥", MIN_PER_CPU_S),
        Check("p99, ms", found.median("p99_ms"), "≤", MAX_P99_MS),
        Check("arrival rate, of what was asked", kept_up, "≥", 0.98),
    ]


def markdown(found: Headline, told: list[Check]) -> str:
    """The verdict, the rounds, and what else was measured."""
    verdict = "PASSED" if all(check.holds for check in told) else "MISSED"
    rounds = [
        f"| {each.requests_per_s * BATCH:.0f} | {each.pictures_per_cpu_s:.0f} | {each.p50_ms:.0f} "
        f"| {each.p99_ms:.0f} | {each.service_cores:.2f} | {each.generator_cores:.2f} "
        f"| {each.other_cores:.2f} |"
        for each in found.rounds
    ]
    lines = [
        f"# headline, {BATCH} JPEGs of {WIDTH}x{HEIGHT} a request, uint8: {verdict}",
        "",
        f"Saturation: {found.saturation:.1f} requests/s, {found.saturation * BATCH:.0f} pictures/s "
        f"(concurrency {found.concurrency}, {len(os.sched_getaffinity(0))} cores). "
        f"At {SHARE:.0%} of it:",
        "",
        "| pictures/s | per CPU second | p50, ms | p99, ms | cores: service | generator | others |",
        "|---|---|---|---|---|---|---|",
        *rounds,
        "",
        f"Memory of the service afterwards: {found.pss_mib:.0f} MiB PSS, {found.rss_mib:.0f} RSS. "
        f"{PUBLISHED_PER_S} pictures/s take {found.cores_for_published:.2f} cores.",
        "",
        f"Judged: {len(found.judged)} of {len(found.rounds)} rounds, those in which others took at "
        f"most {QUIET_CORES} cores, or all.",
        "",
        "| gate | actual | limit | |",
        "|---|---|---|---|",
        *map(gate_row, told),
    ]
    return "\n".join(lines) + "\n"


def run(seconds: float, rounds: int, folder: Path) -> bool:
    """Measure, print, write headline.md and headline.json; whether all gates hold."""
    found = measure(seconds, rounds)
    told = checks(found)
    folder.mkdir(parents=True, exist_ok=True)
    text = markdown(found, told)
    print(text, flush=True)
    (folder / "headline.md").write_text(text, "utf-8")
    summary = {**asdict(found), "checks": [asdict(check) for check in told]}
    (folder / "headline.json").write_text(json.dumps(summary, indent=1) + "\n", "utf-8")
    return all(check.holds for check in told)
