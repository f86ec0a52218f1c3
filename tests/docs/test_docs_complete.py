"""The documents tell what the code does: every setting, code, key and parameter is in them."""

import re
from pathlib import Path

import pytest

from service.http.openapi import PARAMETER_SCHEMAS
from service.http.paths import Route
from service.plan import profiles
from service.settings import Settings, variable
from service.telemetry.exchange import Exchange, Phase
from service.telemetry.metrics import UNREADABLE, Metrics, Restarts
from service.telemetry.stages import STAGES
from service.types import Format
from tests.test_errors import leaves
from tests.wire.test_pack import ITEM_KEYS, KEYS

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", ROOT / "SECURITY.md", *sorted((ROOT / "docs").glob("*.md"))]


def page(name: str) -> str:
    return (ROOT / name).read_text("utf-8")


def rows(text: str) -> list[list[str]]:
    """The cells of every table row."""
    lines = [line for line in text.splitlines() if line.startswith("| `") or line.startswith("| 4")]
    lines += [line for line in text.splitlines() if line.startswith("| 5")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


@pytest.mark.parametrize("name", Settings.model_fields)
def test_every_setting_is_documented_with_its_default_and_meaning(name: str) -> None:
    field = Settings.model_fields[name]
    [row] = [row for row in rows(page("docs/configuration.md")) if row[0] == f"`{variable(name)}`"]
    default = "–" if field.default in (None, "") else f"`{field.default}`"
    assert row[1] == default
    assert row[3] == field.description


def test_no_setting_is_documented_that_does_not_exist() -> None:
    told = set(re.findall(r"PATCHMILL_[A-Z_0-9]+", "".join(map(Path.read_text, PAGES))))
    assert told <= {variable(name) for name in Settings.model_fields}


def test_every_error_code_is_documented_with_its_status() -> None:
    told = {(row[0], row[1]) for row in rows(page("docs/http.md")) if row[0].isdigit()}
    assert told == {(str(leaf.status), f"`{leaf.code}`") for leaf in leaves()}


def test_every_parameter_is_documented() -> None:
    section = page("docs/http.md").partition("## Parameters")[2].partition("## Refusals")[0]
    assert {row[0] for row in rows(section)} == {f"`{name}`" for name in PARAMETER_SCHEMAS}


@pytest.mark.parametrize(
    ("start", "end", "keys"),
    [("## The map", "## An item", KEYS), ("## An item", "## The data", ITEM_KEYS)],
)
def test_every_key_of_an_answer_is_documented_in_order(
    start: str, end: str, keys: list[str]
) -> None:
    section = page("docs/wire.md").partition(start)[2].partition(end)[0]
    assert [row[0] for row in rows(section)] == [f"`{key}`" for key in keys]


def test_every_format_is_named() -> None:
    assert all(f"`{each}`" in page("docs/wire.md") for each in Format)


def test_the_diagram_s_boxes_are_folders() -> None:
    diagram = page("README.md").partition("```text")[2].partition("```")[0]
    boxes = re.findall(r"│ (\w+) │", diagram)
    assert boxes == ["http", "pool", "codec", "plan", "kernels", "wire"]
    for box in boxes:
        assert (ROOT / box).is_dir() or (ROOT / "service" / box).is_dir()


def test_every_profile_and_alias_is_in_the_readme() -> None:
    for profile in profiles.load([profiles.BUILT_IN], "kimi-k2.5"):
        for name in (profile.name, *profile.aliases):
            assert f"`{name}`" in page("README.md")


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_every_link_between_the_pages_leads_somewhere(path: Path) -> None:
    for target in re.findall(r"\]\(([^)#:]+)\)", path.read_text("utf-8")):
        assert (path.parent / target).exists(), target


def test_every_make_target_of_the_readme_exists() -> None:
    targets = set(re.findall(r"^([a-z]+):", page("Makefile"), re.MULTILINE))
    assert set(re.findall(r"make ([a-z]+)", page("README.md"))) <= targets


def test_every_metric_is_documented_with_its_labels() -> None:
    told = {row[0]: row[1] for row in rows(page("docs/observability.md"))}
    for name, labels in metrics().items():
        assert name in told, name
        assert name == "`patchmill_build_info`" or told[name] == labels


def test_no_metric_is_documented_that_does_not_exist() -> None:
    told = {row[0] for row in rows(page("docs/observability.md")) if "patchmill_" in row[0]}
    assert told == set(metrics())


def metrics() -> dict[str, str]:
    """Name as it is scraped -> labels, of all that the service's own registries hold."""
    found = {}
    worker = Metrics({"version": "1"})
    exchange = Exchange("id", "POST", Route.PREPROCESS, status=422, reason="corrupt_image")
    worker.began(exchange)
    worker.moved(exchange)
    worker.answered("kimi-k2.5", [Format.PNG], {})
    worker.kernel("simd")
    for registry in (worker.registry, Restarts().registry):
        for family in registry.collect():
            name = family.name + ("_total" if family.type == "counter" else "")
            labels = {label: None for sample in family.samples for label in sample.labels}
            told = ", ".join(f"`{label}`" for label in labels if label != "le")
            found[f"`{name}`"] = told or "–"
    return found


def test_every_stage_route_and_phase_is_documented() -> None:
    text = page("docs/observability.md")
    assert all(f"`{name}`" in text for name in (*STAGES, *Route, *Phase, UNREADABLE))


def test_every_proof_of_the_threat_model_exists() -> None:
    proofs = re.findall(r"`((?:tests|scripts)/[\w./]+)`", page("docs/threat-model.md"))
    assert len(proofs) > 20
    for proof in proofs:
        assert (ROOT / proof).exists(), proof
