"""Traces by OpenTelemetry: a span for each request on /preprocess, and one for each of its stages.

Imported only where PATCHMILL_OTEL is on: the packages are an extra. Spans are
made when the request is over, from the stretches that its stopwatch kept, so a
request costs nothing while it runs. The caller's W3C `traceparent` is the
parent. Where spans go, and how many are kept, is said by OpenTelemetry's own
variables (`OTEL_EXPORTER_OTLP_ENDPOINT`, `OTEL_TRACES_SAMPLER`).
"""

import threading
import time
from collections.abc import Mapping

from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter
from opentelemetry.trace import SpanKind, StatusCode, set_span_in_context
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from service.telemetry.exchange import Exchange

CARRIED = ("traceparent", "tracestate")
LAST_PATIENCE_S = 3.0


class OpenTelemetry:
    """`version` is the service's own; `exporter` None sends over OTLP."""

    def __init__(self, version: str, exporter: SpanExporter | None = None) -> None:
        # What OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES say goes before this.
        named = Resource({"service.name": "patchmill", "service.version": version})
        self._provider = TracerProvider(
            resource=named.merge(_from_environment()), shutdown_on_exit=False
        )
        self._provider.add_span_processor(BatchSpanProcessor(exporter or OTLPSpanExporter()))
        self._tracer = self._provider.get_tracer("patchmill", version)
        self._propagator = TraceContextTextMapPropagator()

    def tell(self, exchange: Exchange, headers: Mapping[str, str]) -> None:
        carried = {name: headers[name] for name in CARRIED if name in headers}
        epoch_ns = time.time_ns() - time.perf_counter_ns()
        span = self._tracer.start_span(
            f"{exchange.method} /{exchange.route}",
            self._propagator.extract(carried),
            SpanKind.SERVER,
            _attributes(exchange),
            start_time=epoch_ns + round(exchange.began_s * 1e9),
        )
        if exchange.status >= 500:
            span.set_status(StatusCode.ERROR, exchange.reason)
        within = set_span_in_context(span)
        for stage, begin_s, end_s in exchange.stages.laps if span.is_recording() else ():
            start_ns = epoch_ns + round(begin_s * 1e9)
            child = self._tracer.start_span(stage, within, start_time=start_ns)
            child.end(epoch_ns + round(end_s * 1e9))
        span.end()

    def close(self) -> None:
        """Send what is left. A collector that does not answer holds nobody up for long."""
        last = threading.Thread(target=self._provider.shutdown, daemon=True)
        last.start()
        last.join(LAST_PATIENCE_S)


def _attributes(exchange: Exchange) -> dict[str, str | int]:
    """Under the names of the semantic conventions, where they have one."""
    told: dict[str, str | int] = {
        "http.request.method": exchange.method,
        "http.route": f"/{exchange.route}",
        "http.request.body.size": exchange.received_bytes,
        "http.response.body.size": exchange.sent_bytes,
        "patchmill.request_id": exchange.request_id,
    }
    if exchange.status:
        told["http.response.status_code"] = exchange.status
    if exchange.reason:
        told["error.type"] = exchange.reason
    return told


def _from_environment() -> Resource:
    """What the operator's variables name, and nothing that is only a default."""
    found = Resource.create().attributes
    unnamed = str(found.get("service.name", "")).startswith("unknown_service")
    return Resource({k: v for k, v in found.items() if not (unnamed and k == "service.name")})
