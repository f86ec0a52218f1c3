"""The words of the interface as types: what an answer says about itself.

Every value here is frozen. Those that describe an answer are made by `wire`
alone, after its checks: holding one is the proof that they were made. Sizes are
(height, width) in pixels. This module does no work.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

import numpy as np


class Dtype(StrEnum):
    """Element types of an answer; `UINT8` is not normalised."""

    UINT8 = "uint8"
    FLOAT16 = "float16"
    BFLOAT16 = "bfloat16"
    FLOAT32 = "float32"

    @property
    def storage(self) -> np.dtype[np.generic]:
        """What NumPy holds: the same type, but the bits of a bfloat16 as uint16."""
        names = {"uint8": "u1", "float16": "<f2", "bfloat16": "<u2", "float32": "<f4"}
        return np.dtype(names[self])

    @property
    def itemsize_bytes(self) -> int:
        return self.storage.itemsize


class ItemType(StrEnum):
    """What an item of a request is."""

    IMAGE = "image"
    VIDEO_CHUNK = "video_chunk"


class Layout(StrEnum):
    """What the elements make up: patches, or pictures that are not cut."""

    PATCHES = "patches"
    IMAGE = "image"


class Order(StrEnum):
    """The order of a picture's patches: row by row over its grid, or token by token."""

    RASTER = "raster"
    MERGE = "merge"


class Size(NamedTuple):
    """A height and a width in pixels."""

    height: int
    width: int


class Grid(NamedTuple):
    """Patches along time, height and width."""

    t: int
    h: int
    w: int

    @property
    def patches(self) -> int:
        return self.t * self.h * self.w


Shape = tuple[int, ...]
"""Of an item's elements: (N, 3, P, P); not cut (3, H, W), of frames and tiles (T, 3, H, W)."""


@dataclass(frozen=True, slots=True)
class SourcePicture:
    """The picture as it was sent; of a chunk its first frame. `size` is upright."""

    format: str
    size: Size
    orientation: int
    more_frames: bool


@dataclass(frozen=True, slots=True)
class Item:
    """One item of an answer, all but its elements.

    `patch_offset` and `offset_bytes` count from the start of the answer's data,
    also after `Batch.split`.
    """

    index: int
    type: ItemType
    digest: str
    source: SourcePicture
    resized: Size
    grid_thw: Grid
    num_tokens: int
    patch_offset: int
    shape: Shape
    offset_bytes: int
    length_bytes: int
    notes: tuple[str, ...]
    image_size: Size
    """A picture of it, or each of its frames or tiles, resized and padded, in pixels."""

    @property
    def num_patches(self) -> int:
        return self.grid_thw.patches

    @property
    def elements(self) -> int:
        return math.prod(self.shape)


Channels = tuple[float, float, float]
"""One number for each of red, green and blue."""


@dataclass(frozen=True, slots=True)
class Normalization:
    """`(x / 255 - mean) / std`, and whether the elements have it already."""

    applied: bool
    mean: Channels
    std: Channels


@dataclass(frozen=True, slots=True)
class Head:
    """Everything of an answer before its data; every length in it has been checked."""

    model: str
    layout: Layout
    order: Order
    numerics: str
    items: tuple[Item, ...]
    normalization: Normalization
    timings_ms: Mapping[str, float]
    dtype: Dtype
    head_bytes: int
    data_bytes: int

    @property
    def body_bytes(self) -> int:
        return self.head_bytes + self.data_bytes


@dataclass(frozen=True, slots=True)
class Expected:
    """What a request asked for, so that its answer can be held to it."""

    types: tuple[ItemType, ...]
    dtype: Dtype
    layout: Layout = Layout.PATCHES
    order: Order = Order.RASTER
