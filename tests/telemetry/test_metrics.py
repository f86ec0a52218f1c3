"""One process's metrics: what is counted under which name, and read back."""

import itertools

import pytest

from service.telemetry import shared
from service.telemetry.exchange import Exchange, Phase
from service.telemetry.metrics import BUCKETS_S, Metrics
from tests.service.scrape import Scrape


@pytest.fixture
def metrics() -> Metrics:
    assert not shared.is_shared()
    return Metrics({"version": "1"})


def exchange(route: str, status: int, reason: str = "") -> Exchange:
    return Exchange("id", "POST", route, status=status, reason=reason)


def test_the_facts_of_a_route_leave_out_those_of_others(metrics: Metrics) -> None:
    metrics.began(exchange("preprocess", 200))
    metrics.began(exchange("preprocess", 422, "corrupt_image"))
    metrics.began(exchange("live", 200))
    metrics.began(exchange("ready", 503, "not_ready"))
    metrics.unreadable(400, "bad_request", 7)
    metrics.left(Phase.WORK)
    assert metrics.facts("preprocess") == {
        "answered": 1,
        "refused": {"corrupt_image": 1, "bad_request": 1},
        "left": {"work": 1},
    }


def test_buckets_are_geometric_from_half_a_millisecond(metrics: Metrics) -> None:
    assert BUCKETS_S[0] == 0.0005
    assert {later / earlier for earlier, later in itertools.pairwise(BUCKETS_S)} == {2}
    metrics.answered("kimi-k2.5", ["png", "png", "jpeg"], {"decode": 0.0007, "send": 60.0})
    found = Scrape(metrics.exposition().decode())
    decode = found.by("patchmill_stage_seconds_bucket", "le", stage="decode")
    assert "0.0005" not in decode
    assert decode["0.001"] == decode["+Inf"] == 1
    assert found.by("patchmill_stage_seconds_bucket", "le", stage="send") == {"+Inf": 1}
    assert found.by("patchmill_pictures_total", "format") == {"png": 2, "jpeg": 1}


def test_phases_and_stages_are_there_before_the_first_of_them(metrics: Metrics) -> None:
    text = metrics.exposition().decode()
    assert 'patchmill_disconnects_total{phase="upload"} 0.0' in text
    assert 'patchmill_stage_seconds_count{stage="pack"} 0.0' in text


def test_numbers_are_shared_only_within_the_block() -> None:
    with shared.folder():
        assert shared.is_shared()
    assert not shared.is_shared()
