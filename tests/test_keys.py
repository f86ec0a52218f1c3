"""API keys: what is taken as one, who is let in, and what happens when the file changes."""

import hashlib
import logging
import os
from pathlib import Path

import pytest

from service import keys
from service.keys import Keys, KeysFault

FIRST, SECOND = "first-key-of-the-test", "second-key-of-the-test"
HASH = "sha256:" + hashlib.sha256(SECOND.encode()).hexdigest()


def bearer(key: str) -> str:
    return f"Bearer {key}"


def test_without_keys_nobody_is_asked() -> None:
    assert not Keys("", None).wanted


@pytest.mark.parametrize("given", [f"{FIRST},{SECOND}", f"{FIRST}, {HASH}", f"{HASH},{FIRST}"])
def test_every_key_is_let_in_as_itself_or_by_its_hash(given: str) -> None:
    known = Keys(given, None)
    assert known.wanted
    assert known.allow(bearer(FIRST))
    assert known.allow(bearer(SECOND))
    assert known.allow(f"bearer  {FIRST}")


@pytest.mark.parametrize(
    "authorization",
    [
        "",
        "Bearer",
        "Bearer ",
        bearer("another-key-of-the-test"),
        bearer(FIRST[:-1]),
        bearer(FIRST + "x"),
        bearer(FIRST.upper()),
        bearer(HASH),
        bearer(HASH.removeprefix("sha256:")),
        bearer("\xff\udcff"),
        f"Basic {FIRST}",
        FIRST,
    ],
)
def test_nobody_else_is_let_in(authorization: str) -> None:
    assert not Keys(f"{FIRST},{HASH}", None).allow(authorization)


@pytest.mark.parametrize(
    ("given", "told"),
    [
        (f"{FIRST},", "key 2: shorter than 16 characters"),
        ("pa55word", "key 1: shorter"),
        ("a key with spaces in it", "key 1: not a bearer token"),
        ("sha256:0123456789abcdef", "key 1: not a bearer token"),
    ],
)
def test_a_bad_key_is_told_by_its_number_and_never_by_its_value(given: str, told: str) -> None:
    with pytest.raises(KeysFault, match=told) as caught:
        Keys(given, None)
    assert given.split(",", maxsplit=1)[0] not in str(caught.value)


@pytest.mark.parametrize("text", ["", "# nothing\n\n", "short\n", "\xff"])
def test_a_file_without_usable_keys_is_refused_at_start(tmp_path: Path, text: str) -> None:
    file = tmp_path / "keys"
    file.write_text(text, "latin-1")
    with pytest.raises(KeysFault, match="PATCHMILL_API_KEYS_FILE"):
        Keys("", file)


def test_a_file_may_begin_with_a_byte_order_mark(tmp_path: Path) -> None:
    path = tmp_path / "keys"
    path.write_text(FIRST, "utf-8-sig")
    assert Keys("", path).allow(bearer(FIRST))


def test_a_missing_file_is_refused_at_start(tmp_path: Path) -> None:
    with pytest.raises(KeysFault, match="cannot be read"):
        Keys("", tmp_path / "none")


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file with one key, looked at again at every request."""
    monkeypatch.setattr(keys, "LOOK_AGAIN_S", 0.0)
    path = tmp_path / "keys"
    path.write_text(f"# of the front end\n{FIRST}  # until May\n\n")
    return path


def replace(file: Path, text: str) -> None:
    """As an editor or an orchestrator does it: another file under the name."""
    new = file.with_suffix(".new")
    new.write_text(text)
    new.replace(file)


def test_a_changed_file_is_read_again(file: Path) -> None:
    known = Keys("", file)
    assert known.allow(bearer(FIRST))
    replace(file, HASH + "\n")
    assert not known.allow(bearer(FIRST))
    assert known.allow(bearer(SECOND))


def test_keys_of_the_variable_and_of_the_file_hold_together(file: Path) -> None:
    known = Keys(HASH, file)
    assert known.allow(bearer(FIRST))
    assert known.allow(bearer(SECOND))


@pytest.mark.parametrize("spoil", ["empty", "gone", "short", "folder"])
def test_a_file_that_is_spoilt_leaves_the_last_keys_in_force_and_is_logged_once(
    file: Path, caplog: pytest.LogCaptureFixture, spoil: str
) -> None:
    known = Keys("", file)
    if spoil in ("gone", "folder"):
        file.unlink()
    if spoil == "folder":
        file.mkdir()
    if spoil in ("empty", "short"):
        replace(file, "" if spoil == "empty" else "short\n")
    with caplog.at_level(logging.INFO):
        for _ in range(3):
            assert known.allow(bearer(FIRST))
    assert [record.levelname for record in caplog.records] == ["ERROR"]
    if spoil == "folder":
        file.rmdir()
    replace(file, SECOND + "\n")
    assert known.allow(bearer(SECOND))
    assert not known.allow(bearer(FIRST))


def test_a_file_is_not_looked_at_for_every_request(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(keys, "LOOK_AGAIN_S", 3600.0)
    known = Keys("", file)
    os.truncate(file, 0)
    assert known.allow(bearer(FIRST))
