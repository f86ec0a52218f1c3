"""Prometheus and Grafana are told of metrics that exist, where they can be read."""

import json
import re
from collections.abc import Iterator
from typing import Any

import promql_parser
import pytest
import yaml

from service.http.paths import Route
from service.telemetry.stages import STAGES
from tests.deploy.composed import ROOT, SERVICES, listens
from tests.docs.test_docs_complete import metrics
from tests.test_errors import leaves

CONFIG = yaml.safe_load((ROOT / "deploy/prometheus/prometheus.yml").read_text("utf-8"))
[ALERT_FILE] = CONFIG["rule_files"]
ALERTS = [
    rule
    for group in yaml.safe_load((ROOT / "deploy/prometheus" / ALERT_FILE).read_text("utf-8"))[
        "groups"
    ]
    for rule in group["rules"]
]
DASHBOARD = json.loads((ROOT / "deploy/grafana/dashboards/patchmill.json").read_text("utf-8"))
PANELS = [panel for panel in DASHBOARD["panels"] if panel["type"] != "row"]

EXPRESSIONS = {
    **{rule["alert"]: rule["expr"] for rule in ALERTS},
    **{
        f"{panel['title']}, {target['refId']}": target["expr"]
        .replace("$instance", "any")
        .replace("$__rate_interval", "1m")
        for panel in PANELS
        for target in panel["targets"]
    },
}

# Label -> every value that it can have.
VALUES = {
    "route": {route.value for route in Route},
    "reason": {leaf.code for leaf in leaves()},
    "stage": set(STAGES),
    "kernel": {"simd", "portable", "numpy"},
    "job": {CONFIG["scrape_configs"][0]["job_name"]},
    "status": {str(leaf.status) for leaf in leaves()} | {"200"},
}
SCRAPER_S = {"instance", "job"}
"""Labels that Prometheus adds."""


def selectors(node: Any) -> Iterator[Any]:
    """Every metric that an expression reads, with its matchers."""
    if isinstance(node, promql_parser.VectorSelector):
        yield node
    for name in ("lhs", "rhs", "expr", "vector_selector", "args"):
        below = getattr(node, name, None)
        for each in below if isinstance(below, list) else [below] if below is not None else []:
            yield from selectors(each)


def scraped() -> dict[str, set[str]]:
    """Name of a series -> its labels."""
    found: dict[str, set[str]] = {"up": set()}
    for name, told in metrics().items():
        bare, labels = name.strip("`"), set(re.findall(r"`(\w+)`", told))
        found[bare] = labels
        if bare == "patchmill_stage_seconds":
            del found[bare]
            found |= {f"{bare}_{part}": labels for part in ("count", "sum")}
            found[f"{bare}_bucket"] = labels | {"le"}
    return found


@pytest.mark.parametrize("expression", EXPRESSIONS.values(), ids=EXPRESSIONS)
def test_every_expression_reads_metrics_labels_and_values_that_exist(expression: str) -> None:
    known = scraped()
    read = list(selectors(promql_parser.parse(expression)))
    assert read
    for selector in read:
        assert selector.name in known
        for matcher in selector.matchers.matchers:
            assert matcher.name in known[selector.name] | SCRAPER_S
            if matcher.name in VALUES:
                assert set(matcher.value.split("|")) <= VALUES[matcher.name]


def test_every_metric_is_on_the_dashboard() -> None:
    shown = " ".join(EXPRESSIONS.values())
    assert [name for name in scraped() if name not in shown and not name.endswith("_count")] == []


def test_every_alert_says_how_urgent_it_is_and_what_to_do() -> None:
    page = (ROOT / "docs/operations.md").read_text("utf-8")
    assert re.findall(r"^### (Patchmill\w+)$", page, re.MULTILINE) == [
        rule["alert"] for rule in ALERTS
    ]
    for rule in ALERTS:
        assert rule["labels"]["severity"] in ("page", "ticket")
        assert rule["annotations"]["summary"]


def test_the_target_is_the_service_s_own_port_for_metrics() -> None:
    [job] = CONFIG["scrape_configs"]
    [target] = [target for found in job["static_configs"] for target in found["targets"]]
    name, port = target.split(":")
    assert int(port) == SERVICES[name]["environment"]["PATCHMILL_METRICS_PORT"]
    assert int(port) in listens(name)
    assert set(SERVICES[name]["networks"]) & set(SERVICES["prometheus"]["networks"])


def test_grafana_asks_the_prometheus_beside_it() -> None:
    folder = ROOT / "deploy/grafana/provisioning"
    [source] = yaml.safe_load((folder / "datasources/prometheus.yml").read_text("utf-8"))[
        "datasources"
    ]
    [(host, port)] = re.findall(r"^http://([\w.-]+):(\d+)$", source["url"])
    assert int(port) in listens(host)
    assert set(SERVICES[host]["networks"]) & set(SERVICES["grafana"]["networks"])
    assert {panel["datasource"]["uid"] for panel in PANELS} == {source["uid"]}


def test_grafana_finds_the_dashboard_where_it_is_mounted() -> None:
    provider = ROOT / "deploy/grafana/provisioning/dashboards/patchmill.yml"
    [told] = yaml.safe_load(provider.read_text("utf-8"))["providers"]
    mounts = dict(mount.split(":")[:2] for mount in SERVICES["grafana"]["volumes"])
    assert mounts["./deploy/grafana/dashboards"] == told["options"]["path"]
    home = SERVICES["grafana"]["environment"]["GF_DASHBOARDS_DEFAULT_HOME_DASHBOARD_PATH"]
    assert home == f"{told['options']['path']}/patchmill.json"


def test_no_panel_lies_on_another() -> None:
    taken: set[tuple[int, int]] = set()
    for panel in DASHBOARD["panels"]:
        at = panel["gridPos"]
        cells = {
            (x, y)
            for x in range(at["x"], at["x"] + at["w"])
            for y in range(at["y"], at["y"] + at["h"])
        }
        assert not cells & taken
        taken |= cells
    assert len({panel["id"] for panel in DASHBOARD["panels"]}) == len(DASHBOARD["panels"])
