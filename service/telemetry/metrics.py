"""The metrics: what is counted, under which names, and the text that a scraper reads.

Counted where it happens, straight into the shared files (`telemetry.shared`), so
a worker that is killed loses nothing that it has counted. That costs 1.2 us for
a counter and 2 us for a histogram in a loop, 28 us for a whole request inside of
a service (2 cores of an AMD EPYC, Zen 4, 2026-11-30). Gathering plain numbers and
writing them on a timer would save most of that, and lose the last second of
every worker that is killed.

All calls come from the event loop. Of one process, `facts` reads the numbers
back; over all processes, `exposition`. docs/observability.md says what each
metric means.
"""

from collections import Counter as Tally
from collections.abc import Iterable, Mapping

from prometheus_client import CONTENT_TYPE_LATEST as CONTENT_TYPE
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.multiprocess import MultiProcessCollector, mark_process_dead

from service.telemetry import shared
from service.telemetry.exchange import Exchange, Phase
from service.telemetry.stages import STAGES

__all__ = ["CONTENT_TYPE", "Metrics", "Restarts", "exposition"]

BUCKETS_S = tuple(0.0005 * 2**step for step in range(17))
"""0.5 ms to 32.8 s, past the default deadline."""

UNREADABLE = "none"
"""The route of what is no whole HTTP request."""

HELD = {
    "queue_length": ("requests_in_progress", "Requests between their headers and their answer."),
    "waiting": ("queue_depth", "Requests whose work waits for a thread."),
    "body_bytes": ("body_bytes_in_flight", "Bytes that bodies take of their budget."),
    "pixels": ("pixels_in_flight", "Pixels that are being decoded."),
    "answer_bytes": ("answer_bytes_in_flight", "Bytes of answers that are not yet sent."),
    "kept_bytes": ("kept_bytes", "Bytes of idle buffers that are kept for reuse."),
}
"""What /info calls it -> the metric, and its meaning."""


class Metrics:
    """One worker's. `build` are labels: versions that tell one build from another."""

    def __init__(self, build: Mapping[str, str]) -> None:
        self.registry = CollectorRegistry()
        self._requests = self._counter("requests", "Answers begun.", "route", "status")
        self._refusals = self._counter("refusals", "Refusals, by code.", "route", "reason")
        self._left = self._counter("disconnects", "Clients that left early.", "phase")
        self._received = self._counter("received_bytes", "Bytes of bodies read.", "route")
        self._sent = self._counter("sent_bytes", "Bytes of answers' bodies.", "route")
        self._pictures = self._counter("pictures", "Pictures answered.", "format", "model")
        self._stages = Histogram(
            "patchmill_stage_seconds",
            "Seconds of an answered request in each stage; of several threads, the sum.",
            ["stage"],
            buckets=BUCKETS_S,
            registry=self.registry,
        )
        self._held = {
            name: self._gauge(metric, meaning) for name, (metric, meaning) in HELD.items()
        }
        self._kernel = self._gauge("kernel_workers", "Workers that this kernel serves.", "kernel")
        # A gauge and not an Info: those vanish when several processes are added up.
        names = list(build)
        self._gauge("build_info", "Always 1.", *names, mode="livemax").labels(**build).set(1)
        self._stage = {stage: self._stages.labels(stage) for stage in STAGES}
        for phase in Phase:
            self._left.add(0, phase)

    def began(self, exchange: Exchange) -> None:
        """An answer is about to begin."""
        self._requests.add(1, exchange.route, str(exchange.status))
        if exchange.reason:
            self._refusals.add(1, exchange.route, exchange.reason)

    def moved(self, exchange: Exchange) -> None:
        """The bytes of a request that is over."""
        self._received.add(exchange.received_bytes, exchange.route)
        self._sent.add(exchange.sent_bytes, exchange.route)

    def unreadable(self, status: int, reason: str, sent_bytes: int) -> None:
        """Refused before there was a request."""
        self.refused(UNREADABLE, status, reason, sent_bytes)

    def refused(self, route: str, status: int, reason: str, sent_bytes: int = 0) -> None:
        """Refused without an exchange: at the door, from the connection itself."""
        self._requests.add(1, route, str(status))
        self._refusals.add(1, route, reason)
        self._sent.add(sent_bytes, route)

    def left(self, phase: Phase) -> None:
        self._left.add(1, phase)

    def answered(self, model: str, formats: Iterable[str], spent_s: Mapping[str, float]) -> None:
        """A whole request's pictures and stages."""
        for form, count in Tally(formats).items():
            self._pictures.add(count, form, model)
        for stage, seconds in spent_s.items():
            self._stage[stage].observe(seconds)

    def hold(self, in_use: Mapping[str, int]) -> None:
        """What the worker holds now, under the names of `HELD`."""
        for name, gauge in self._held.items():
            gauge.set(in_use[name])

    def kernel(self, name: str) -> None:
        self._kernel.labels(name).set(1)

    def facts(self, route: str) -> dict[str, object]:
        """This process's numbers on one route, and on what was unreadable, in plain words."""
        answered, refused, left = 0, dict[str, int](), dict[str, int]()
        for metric in (self._requests, self._refusals, self._left):
            for sample in (each for family in metric.counter.collect() for each in family.samples):
                labels, count = sample.labels, int(sample.value)
                if not sample.name.endswith("_total") or not count:
                    continue
                if "phase" in labels:
                    left[labels["phase"]] = count
                elif labels["route"] not in (route, UNREADABLE):
                    continue
                elif "reason" in labels:
                    refused[labels["reason"]] = refused.get(labels["reason"], 0) + count
                elif labels["status"] == "200":
                    answered = count
        return {"answered": answered, "refused": refused, "left": left}

    def exposition(self) -> bytes:
        """The text that a scraper reads: of all processes, or of this one where it is alone."""
        return exposition() if shared.is_shared() else generate_latest(self.registry)

    def _counter(self, name: str, meaning: str, *labels: str) -> "_Counts":
        return _Counts(Counter(f"patchmill_{name}", meaning, labels, registry=self.registry))

    def _gauge(self, name: str, meaning: str, *labels: str, mode: str = "livesum") -> Gauge:
        return Gauge(
            f"patchmill_{name}",
            meaning,
            labels,
            registry=self.registry,
            multiprocess_mode=mode,  # type: ignore[arg-type]
        )


class _Counts:
    """A counter whose labels are looked up once: the library's own way takes a microsecond."""

    def __init__(self, counter: Counter) -> None:
        self.counter = counter
        self._children: dict[tuple[str, ...], Counter] = {}

    def add(self, count: int, *labels: str) -> None:
        child = self._children.get(labels)
        if child is None:
            child = self._children[labels] = self.counter.labels(*labels)
        child.inc(count)


class Restarts:
    """The supervisor's: how often it had to start a worker anew."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self._restarts = Counter(
            "patchmill_worker_restarts",
            "Workers started anew because one had ended.",
            registry=self.registry,
        )

    def count(self, workers: int) -> None:
        self._restarts.inc(workers)

    def forget(self, pid: int) -> None:
        """A worker is gone: what it held is free, what it counted stays."""
        mark_process_dead(pid)  # type: ignore[no-untyped-call]


def exposition() -> bytes:
    """The text over all processes that share a folder with this one."""
    registry = CollectorRegistry()
    MultiProcessCollector(registry)  # type: ignore[no-untyped-call]
    return generate_latest(registry)
