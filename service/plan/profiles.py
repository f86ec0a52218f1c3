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

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from service.errors import UnknownModel
from service.types import Dtype, Layout

BUILT_IN = Path(__file__).parent / "profiles"

Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._/-]*$", max_length=128)]
LARGEST = 2**24
"""Of every count of patches or tokens."""
Patches = Annotated[int, Field(ge=1, le=LARGEST)]
Tokens = Annotated[int, Field(ge=1, le=LARGEST)]
OrNone = Annotated[int, Field(ge=0, le=LARGEST)]
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


class DynamicSizes(BaseModel):
    """Constants of the dynamic resolution rule: a budget that all pictures of a request share."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    rule: Literal["dynamic"]
    min_num_patches: Patches
    max_num_patches: OrNone
    max_model_len: Tokens
    text_len: OrNone
    reserved_tokens: OrNone


class TileSizes(BaseModel):
    """Constants of the tile rule: squares of one size in the grid nearest in aspect."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    rule: Literal["tiles"]
    tile_px: Annotated[int, Field(ge=1, le=2**13)]
    max_num_tiles: Annotated[int, Field(ge=1, le=64)]
    use_thumbnail: bool


class Vllm(BaseModel):
    """How vLLM takes a family's pictures; the first of `dtypes` is what it takes by default."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    modality: Literal["vision_chunk", "image"]
    dtypes: Annotated[tuple[Dtype, ...], Field(min_length=1)]

    @property
    def layout(self) -> Layout:
        """A vision chunk is cut into patches by the sender, an image by the model itself."""
        return Layout.PATCHES if self.modality == "vision_chunk" else Layout.IMAGE


RULES = {"vision_chunk": NavitSizes, "image": DynamicSizes}
"""The size rule whose plans a modality can tell."""


class Profile(BaseModel):
    """A model family: how its pictures are sized, normalised and cut.

    `mean` and `std` are per channel in units of the 0..1 range; `merge` is the
    edge in patches of the square that becomes one token.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: Name
    aliases: tuple[Name, ...] = ()
    source: Annotated[str, Field(min_length=1)]
    numerics: Literal["pillow-u8", "float32"]
    patch_px: Annotated[int, Field(ge=1, le=256)]
    merge: Annotated[int, Field(ge=1, le=16)]
    mean: tuple[Mean, Mean, Mean]
    std: tuple[Std, Std, Std]
    sizes: Annotated[NavitSizes | DynamicSizes | TileSizes, Field(discriminator="rule")]
    vllm: Vllm | None = None

    @model_validator(mode="after")
    def _tiles_are_whole_tokens(self) -> "Profile":
        if isinstance(self.sizes, TileSizes):
            if self.sizes.tile_px % (self.patch_px * self.merge):
                raise ValueError("tile_px is not a whole number of tokens")
            if self.numerics != "float32":
                raise ValueError("tiles are resized in float32 alone")
        return self

    @model_validator(mode="after")
    def _vllm_fits(self) -> "Profile":
        if self.vllm is None:
            return self
        if not isinstance(self.sizes, RULES[self.vllm.modality]):
            raise ValueError(f"no {self.vllm.modality} has sizes of the rule {self.sizes.rule}")
        if set(self.vllm.dtypes) - set(self.dtypes):
            raise ValueError("vllm.dtypes has one that the numerics cannot give")
        return self

    @property
    def dtypes(self) -> tuple[Dtype, ...]:
        """What an answer can have: floats are not rounded to bytes, so then not uint8."""
        floats = self.numerics == "float32"
        return tuple(dtype for dtype in Dtype if not (floats and dtype is Dtype.UINT8))

    @cached_property
    def fingerprint(self) -> str:
        """All of it that decides elements, as one string; made once, part of every digest."""
        return self.model_dump_json(exclude={"aliases", "source", "vllm"})


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

    def find(self, name: str | None) -> Profile:
        """The profile of this name or alias, None the default; UnknownModel otherwise."""
        if name is None:
            return self.default
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
