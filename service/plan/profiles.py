"""Profiles: one data file per model family, read and validated at start.

A profile holds every constant of a family with its source, so that no size,
mean or limit is written in code. In comes a folder of TOML files (ours, and
one of the operator's if set), out comes a `Profiles` that finds a profile by
name or alias. Nothing is read after start.
"""

import tomllib
from collections.abc import Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from service.errors import UnknownModel

BUILT_IN = Path(__file__).parent / "profiles"

Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._/-]*$", max_length=128)]
Patches = Annotated[int, Field(ge=1, le=2**24)]
Mean = Annotated[float, Field(ge=-10, le=10)]
Std = Annotated[float, Field(ge=1e-3, le=100)]
"""Both so that no normalised value exceeds what float16 can hold (65504)."""


class NavitSizes(BaseModel):
    """Constants of the NaViT size rule, under the names that checkpoints publish."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    rule: Literal["navit"]
    in_patch_limit: Patches
    patch_limit_on_one_side: Annotated[int, Field(ge=1, le=2**16)]
    in_patch_limit_each_frame: Patches
    in_patch_limit_video: Patches | None = None
    temporal_merge_kernel_size: Annotated[int, Field(ge=1, le=64)]
    sample_fps: Annotated[float, Field(gt=0, le=1000)]


class Profile(BaseModel):
    """A model family: how its pictures are sized, normalised and cut.

    `mean` and `std` are per channel in units of the 0..1 range; `merge` is the
    edge in patches of the square that becomes one token.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: Name
    aliases: tuple[Name, ...] = ()
    source: Annotated[str, Field(min_length=1)]
    numerics: Literal["pillow-u8"]
    patch_px: Annotated[int, Field(ge=1, le=256)]
    merge: Annotated[int, Field(ge=1, le=16)]
    mean: tuple[Mean, Mean, Mean]
    std: tuple[Std, Std, Std]
    sizes: NavitSizes

    @cached_property
    def fingerprint(self) -> str:
        """All of it that decides elements, as one string; made once, part of every digest."""
        return self.model_dump_json(exclude={"aliases", "source"})


class ProfileFault(ValueError):
    """Some profile files are wrong; one line for each fault."""


class Profiles:
    """All profiles of this service, found by name or alias in any case."""

    def __init__(self, profiles: Sequence[Profile], default: str) -> None:
        self._profiles = tuple(profiles)
        self._by_name = {
            name.casefold(): profile
            for profile in profiles
            for name in (profile.name, *profile.aliases)
        }
        self.default = self.find(default)

    def find(self, name: str) -> Profile:
        """The profile of this name or alias; UnknownModel otherwise."""
        try:
            return self._by_name[name.casefold()]
        except KeyError:
            names = ", ".join(profile.name for profile in self._profiles)
            raise UnknownModel(f"model is none of: {names} (or an alias, see /models)") from None

    def __iter__(self) -> Iterator[Profile]:
        return iter(self._profiles)


def load_all(further: Path | None, default: str) -> Profiles:
    """The built-in profiles and those of a folder of the operator's own; raises as `load`."""
    return load([BUILT_IN, *([further] if further else [])], default)


def load(folders: Sequence[Path], default: str) -> Profiles:
    """Read every *.toml of the folders, in order of folder and file name.

    Raises ProfileFault with all faults at once: unreadable or invalid files,
    a name or alias that two profiles claim, a default that none has.
    """
    faults: list[str] = []
    profiles: list[Profile] = []
    claimed: dict[str, str] = {}
    for path in _files(folders, faults):
        profile = _read(path, faults)
        if profile is None:
            continue
        for name in {n.casefold(): n for n in (profile.name, *profile.aliases)}.values():
            holder = claimed.setdefault(name.casefold(), path.name)
            if holder != path.name:
                faults.append(f"{path.name}: {holder} already claims the name {name}")
        profiles.append(profile)
    if default.casefold() not in claimed:
        faults.append(f"default_model: no profile is named {default}")
    if faults:
        raise ProfileFault("\n".join(faults))
    return Profiles(profiles, default)


def _files(folders: Sequence[Path], faults: list[str]) -> Iterator[Path]:
    for folder in folders:
        if not folder.is_dir():
            faults.append(f"{folder}: no such folder")
        yield from sorted(folder.glob("*.toml"))


def _read(path: Path, faults: list[str]) -> Profile | None:
    try:
        return Profile.model_validate(tomllib.loads(path.read_text("utf-8")), strict=False)
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        faults.append(f"{path.name}: {error}")
    except ValidationError as error:
        faults.extend(
            f"{path.name}: {'.'.join(map(str, fault['loc']))}: {fault['msg']}"
            for fault in error.errors()
        )
    return None
