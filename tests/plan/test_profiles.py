"""Profiles: the built-in files, an operator's own, and every way such a file can be wrong."""

from pathlib import Path

import pytest

from service.errors import UnknownModel
from service.plan import profiles

GOOD = (profiles.BUILT_IN / "kimi-k2.5.toml").read_text()

ALIASES = {
    "kimi-k2.5": "kimi-k2.5",
    "moonshotai/Kimi-K2.5": "kimi-k2.5",
    "moonshotai/Kimi-K2.6": "kimi-k2.6",
    "moonshotai/Kimi-K2.7": "kimi-k2.7",
    "moonshotai/Kimi-K2.7-Code": "kimi-k2.7",
    "moonshotai/kimi-k3": "kimi-k3",
    "KIMI-K3": "kimi-k3",
    "nvidia/Nemotron-3-Nano-Omni-30B-A3B-Reasoning": "nemotron-nano-vl",
}


def own(name: str) -> str:
    return GOOD.replace('"kimi-k2.5"', f'"{name}"').replace('"moonshotai/Kimi-K2.5"', "")


@pytest.mark.parametrize(("given", "name"), ALIASES.items())
def test_a_profile_is_found_by_name_or_alias_in_any_case(given: str, name: str) -> None:
    assert profiles.load([profiles.BUILT_IN], "kimi-k2.5").find(given).name == name


def test_an_unknown_model_is_refused_with_the_names_that_exist() -> None:
    with pytest.raises(UnknownModel, match=r"kimi-k2\.5, kimi-k2\.6, kimi-k2\.7, kimi-k3"):
        profiles.load([profiles.BUILT_IN], "kimi-k2.5").find("gpt")


def test_every_built_in_profile_names_its_source() -> None:
    assert all(each.source for each in profiles.load([profiles.BUILT_IN], "kimi-k2.5"))


def test_an_operator_adds_profiles_in_a_folder_and_may_make_one_the_default(tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text(own("mine").replace("patch_px = 14", "patch_px = 16"))
    loaded = profiles.load([profiles.BUILT_IN, tmp_path], "mine")
    assert loaded.default.patch_px == 16
    assert loaded.find("kimi-k3").patch_px == 14


TILES = (profiles.BUILT_IN / "nemotron-nano-vl-tiles.toml").read_text()
TILES = TILES.replace('"nemotron-nano-vl-tiles"', '"a"')

FAULTS = {
    "tiles that are no whole tokens": (
        TILES.replace("tile_px = 512", "tile_px = 500"),
        "tile_px is not a whole number of tokens",
    ),
    "tiles of bytes": (TILES.replace('"float32"', '"pillow-u8"'), "resized in float32 alone"),
    "a dynamic rule with a side limit": (
        own("a").replace('"navit"', '"dynamic"'),
        "sizes.dynamic.in_patch_limit",
    ),
    "not toml": ("[[", "broken.toml"),
    "missing field": (own("a").replace("merge = 2\n", ""), "merge"),
    "unknown field": ("surprise = 1\n" + own("a"), "surprise"),
    "zero patch": (own("a").replace("patch_px = 14", "patch_px = 0"), "patch_px"),
    "zero std": (own("a").replace("std = [0.5,", "std = [0.0,"), "std.0"),
    "infinite mean": (own("a").replace("mean = [0.5,", "mean = [inf,"), "mean.0"),
    "two channels": (own("a").replace("mean = [0.5, 0.5, 0.5]", "mean = [0.5, 0.5]"), "mean"),
    "unknown rule": (own("a").replace('"navit"', '"guess"'), "sizes: Input tag 'guess'"),
    "name with spaces": (own("a b"), "name"),
    "a name already claimed": (own("kimi-k3"), "kimi-k3.toml already claims the name kimi-k3"),
}


@pytest.mark.parametrize(("text", "told"), FAULTS.values(), ids=FAULTS)
def test_a_wrong_file_is_refused_and_the_fault_is_named(
    tmp_path: Path, text: str, told: str
) -> None:
    (tmp_path / "broken.toml").write_text(text)
    with pytest.raises(profiles.ProfileFault) as refusal:
        profiles.load([profiles.BUILT_IN, tmp_path], "kimi-k2.5")
    assert "broken.toml" in str(refusal.value)
    assert told in str(refusal.value)


def test_all_faults_of_all_files_are_told_at_once(tmp_path: Path) -> None:
    (tmp_path / "a.toml").write_text("[[")
    (tmp_path / "b.toml").write_text(own("b").replace("merge = 2", "merge = 0"))
    with pytest.raises(profiles.ProfileFault) as refusal:
        profiles.load([profiles.BUILT_IN, tmp_path, tmp_path / "absent"], "kimi-k2.5")
    assert len(str(refusal.value).splitlines()) == 3


def test_a_default_that_no_profile_has_is_a_fault() -> None:
    with pytest.raises(profiles.ProfileFault, match="no profile is named gone"):
        profiles.load([profiles.BUILT_IN], "gone")
