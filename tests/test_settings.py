"""Settings: ranges, all faults at once, and the link to the limits."""

import dataclasses
import os

import pytest

from service.settings import PREFIX, Settings, SettingsFault, load, misspelt, variable
from service.types import Limits


@pytest.fixture(autouse=True)
def _no_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in list(os.environ):
        if name.startswith(PREFIX):
            monkeypatch.delenv(name)


def test_all_faults_are_told_at_once_each_with_its_variable(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("PATCHMILL_PORT", "tcp://10.0.0.1:80")
    monkeypatch.setenv("PATCHMILL_MAX_PIXELS", "0")
    monkeypatch.setenv("PATCHMILL_KERNEL", "fast")
    with pytest.raises(SettingsFault) as refusal:
        load({})
    assert [line.partition("=")[0] for line in str(refusal.value).splitlines()] == [
        "PATCHMILL_PORT",
        "PATCHMILL_KERNEL",
        "PATCHMILL_MAX_PIXELS",
    ]


def test_what_is_given_wins_over_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATCHMILL_PORT", "1")
    assert load({}).port == 1
    assert load({"port": "2"}).port == 2


def test_a_misspelt_variable_is_told_with_its_neighbour() -> None:
    lines = misspelt({"PATCHMILL_MAX_PIXELZ": "1", "PATCHMILL_HOST": "", "HOME": ""})
    assert lines == ["PATCHMILL_MAX_PIXELZ is not a setting; PATCHMILL_MAX_PIXELS is"]


def test_the_case_of_a_variable_does_not_matter(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("patchmill_max_items", "5")
    assert load({}).max_items == 5
    assert misspelt({"patchmill_max_items": "5"}) == []


def test_an_empty_variable_is_as_good_as_none(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("PATCHMILL_PROFILES_DIR", "PATCHMILL_UDS", "PATCHMILL_HOST", "PATCHMILL_PORT"):
        monkeypatch.setenv(name, "")
    settings = load({})
    assert (settings.profiles_dir, settings.uds, settings.host) == (None, None, "127.0.0.1")


def test_every_limit_is_a_setting_of_the_same_name() -> None:
    limits = load({}).limits
    for field in dataclasses.fields(Limits):
        assert getattr(limits, field.name) == Settings.model_fields[field.name].default


def test_an_answer_fits_the_32_bit_length_of_the_wire_format() -> None:
    with pytest.raises(SettingsFault, match=variable("max_answer_bytes")):
        load({"max_answer_bytes": 2**32})


def test_zero_threads_means_one_for_each_usable_cpu() -> None:
    assert load({}).thread_count >= 1
    assert load({"threads": 3}).thread_count == 3
