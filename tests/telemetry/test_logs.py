"""Log lines: one map or one line a record, with the request's id, and nothing by accident."""

import json
import logging
import warnings
from collections.abc import Iterator

import pytest

from service.telemetry import logs


@pytest.fixture(autouse=True)
def as_before() -> Iterator[None]:
    """Give the test runner its handlers back."""
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    kept = {name: logging.getLogger(name).level for name in (*logs.TALKATIVE, logs.access.name)}
    yield
    logging.captureWarnings(capture=False)
    root.handlers[:], root.level = handlers, level
    for name, before in kept.items():
        logging.getLogger(name).setLevel(before)


@pytest.fixture
def with_id() -> Iterator[None]:
    token = logs.request_id.set("id-7")
    yield
    logs.request_id.reset(token)


def lines(capsys: pytest.CaptureFixture[str]) -> list[dict[str, object]]:
    return [json.loads(line) for line in capsys.readouterr().err.splitlines()]


def test_a_record_is_one_json_map_with_its_facts(capsys: pytest.CaptureFixture[str]) -> None:
    logs.configure("info", "json", "off")
    log = logging.getLogger("patchmill")
    log.info("listening on %s", "here\nand there", extra={"facts": {"status": 200}, "secret": 1})
    [line] = lines(capsys)
    assert line.pop("time")
    assert line == {
        "level": "INFO",
        "logger": "patchmill",
        "message": "listening on here\nand there",
        "status": 200,
    }


@pytest.mark.usefixtures("with_id")
def test_every_line_of_a_request_carries_its_id_and_a_fault_its_stack(
    capsys: pytest.CaptureFixture[str],
) -> None:
    logs.configure("info", "json", "off")
    try:
        raise RuntimeError("ours")
    except RuntimeError:
        logging.getLogger("elsewhere").exception("it failed")
    [line] = lines(capsys)
    assert line["request_id"] == "id-7"
    assert str(line["stack"]).startswith("Traceback")
    assert "RuntimeError: ours" in str(line["stack"])


@pytest.mark.usefixtures("with_id")
def test_text_is_one_line_that_a_client_s_word_cannot_break(
    capsys: pytest.CaptureFixture[str],
) -> None:
    logs.configure("info", "text", "off")
    logging.getLogger("patchmill").warning("a\nb", extra={"facts": {"status": 200}})
    [line] = capsys.readouterr().err.splitlines()
    assert line.endswith(r"WARNING patchmill: a\nb request_id=id-7 status=200")


def test_warnings_come_as_lines_too(capsys: pytest.CaptureFixture[str]) -> None:
    logs.configure("info", "json", "off")
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        logging.captureWarnings(capture=False)
        logging.captureWarnings(capture=True)
        warnings.warn("a library's word", stacklevel=1)
    [line] = lines(capsys)
    assert line["logger"] == "py.warnings"
    assert "a library's word" in str(line["message"])


@pytest.mark.parametrize(("setting", "count"), [("off", 0), ("on", 1)])
def test_the_access_log_is_silent_unless_it_is_asked_for(
    capsys: pytest.CaptureFixture[str], setting: str, count: int
) -> None:
    logs.configure("info", "json", setting)
    logs.access.info("answered")
    assert len(lines(capsys)) == count


@pytest.mark.parametrize("name", logs.TALKATIVE)
def test_libraries_that_write_what_pictures_hold_stay_silent_at_debug(
    capsys: pytest.CaptureFixture[str], name: str
) -> None:
    logs.configure("debug", "json", "off")
    logging.getLogger(f"{name}.Plugin").debug("the picture's own text")
    assert lines(capsys) == []
