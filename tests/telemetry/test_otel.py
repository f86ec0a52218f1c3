"""Traces, where OpenTelemetry is installed: a span for a request, and one for each stage."""

import pytest

from service.telemetry.exchange import Exchange
from service.telemetry.stages import Lap

pytest.importorskip("opentelemetry.sdk.trace", reason="the extra otel is not installed")
pytest.importorskip("opentelemetry.exporter.otlp.proto.http", reason="the extra is not whole")

from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from service.telemetry.otel import OpenTelemetry

TRACE, PARENT = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
HEADERS = {"traceparent": f"00-{TRACE}-{PARENT}-01", "authorization": "Bearer a-secret"}


def exchange(status: int, reason: str) -> Exchange:
    told = Exchange("id-7", "POST", "preprocess", status=status, reason=reason)
    begin_s = told.began_s
    told.stages.laps += [
        Lap("receive", begin_s, begin_s + 0.25),
        Lap("decode", begin_s + 0.25, begin_s + 0.75),
        Lap("decode", begin_s + 0.25, begin_s + 0.5),
    ]
    return told


def spans(told: Exchange, headers: dict[str, str]) -> list[ReadableSpan]:
    exporter = InMemorySpanExporter()
    traces = OpenTelemetry("0.1.0", exporter)
    traces.tell(told, headers)
    traces.close()
    return list(exporter.get_finished_spans())


def test_a_request_is_a_span_under_the_caller_s_with_a_child_for_each_stretch() -> None:
    *stages, request = spans(exchange(200, ""), HEADERS)
    assert request.name == "POST /preprocess"
    assert request.parent
    assert f"{request.context.trace_id:032x}" == TRACE
    assert f"{request.parent.span_id:016x}" == PARENT
    assert [stage.name for stage in stages] == ["receive", "decode", "decode"]
    for stage in stages:
        assert stage.parent
        assert stage.parent.span_id == request.context.span_id
    assert stages[0].start_time == pytest.approx(request.start_time, abs=2000)
    long, short = stages[1:]
    assert long.start_time == short.start_time
    assert long.end_time
    assert short.end_time
    assert long.end_time - short.end_time == pytest.approx(250_000_000, abs=2000)
    assert request.attributes
    assert request.attributes["http.response.status_code"] == 200
    assert request.attributes["patchmill.request_id"] == "id-7"
    assert "a-secret" not in str(request.to_json())
    assert request.resource.attributes["service.name"] == "patchmill"


def test_without_a_caller_s_trace_it_begins_one() -> None:
    request = spans(exchange(200, ""), {})[-1]
    assert request.parent is None


@pytest.mark.parametrize(("status", "is_error"), [(422, False), (500, True)])
def test_only_a_fault_of_ours_is_an_error(status: int, is_error: bool) -> None:  # noqa: FBT001
    request = spans(exchange(status, "some_code"), {})[-1]
    assert request.status.is_ok is not is_error
    assert request.attributes
    assert request.attributes["error.type"] == "some_code"


def test_the_operator_s_name_goes_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_SERVICE_NAME", "mill-of-the-east")
    request = spans(exchange(200, ""), {})[-1]
    assert request.resource.attributes["service.name"] == "mill-of-the-east"


def test_a_caller_that_does_not_sample_gets_no_span() -> None:
    assert spans(exchange(200, ""), {"traceparent": f"00-{TRACE}-{PARENT}-00"}) == []
