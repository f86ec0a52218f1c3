"""The pictures that load tests send, and what the service must make of each.

A folder that `making` wrote goes in, its pictures and the digests of their tensors
come out. Needs the standard library only, so that a load generator can be any
Python with locust.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

RECIPE = 1
"""Raised when `making` makes other pictures: an older corpus is then made anew."""

MANIFEST = "manifest.json"


class NoCorpus(Exception):
    """There is no corpus of this recipe in the folder; the message says how to make one."""


@dataclass(frozen=True)
class Entry:
    """Pictures that are one item: one picture, or the frames of a chunk.

    `weight` is its share of the traffic. `digests` has, by dtype, the hex SHA-256 of
    the item's elements as an independent computation made them (`reference`).
    `height` and `width` are upright, in pixels.
    """

    name: str
    weight: float
    height: int
    width: int
    tokens: int
    digests: Mapping[str, str]
    files: tuple[bytes, ...]


@dataclass(frozen=True)
class Corpus:
    """Single pictures, and video chunks."""

    pictures: tuple[Entry, ...]
    chunks: tuple[Entry, ...]


def is_current(folder: Path) -> bool:
    """Whether the folder holds a corpus of this recipe."""
    manifest = folder / MANIFEST
    return manifest.exists() and json.loads(manifest.read_text("utf-8"))["recipe"] == RECIPE


def load(folder: Path) -> Corpus:
    """All of it, in memory. Raises NoCorpus."""
    if not is_current(folder):
        raise NoCorpus(f"no corpus of recipe {RECIPE} in {folder}; `make corpus` makes it")
    manifest = json.loads((folder / MANIFEST).read_text("utf-8"))
    entries = [_entry(folder, told) for told in manifest["entries"]]
    return Corpus(
        pictures=tuple(each for each in entries if len(each.files) == 1),
        chunks=tuple(each for each in entries if len(each.files) > 1),
    )


def _entry(folder: Path, told: Mapping[str, object]) -> Entry:
    names = told["files"]
    assert isinstance(names, list)
    files = tuple((folder / name).read_bytes() for name in names)
    return Entry(**{**told, "files": files})  # type: ignore[arg-type]  # as `making` wrote it
