"""The values that cross a border between rooms.

Each is frozen and made by the one room that can vouch for it, so that holding
one is the proof that a check was made: a `Header` has an allowed format and
size, `Pixels` are upright RGB, a `Plan` has a known grid. Sizes are always
(height, width) in pixels. This module knows no room and does no work.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Buffer: TypeAlias = bytes | bytearray | memoryview
"""Encoded bytes of one picture, as they came from the client."""


@dataclass(frozen=True, slots=True)
class Size:
    """A picture's height and width in pixels."""

    height: int
    width: int

    @property
    def pixels(self) -> int:
        return self.height * self.width

    @property
    def longest(self) -> int:
        return max(self.height, self.width)

    def transposed(self) -> "Size":
        return Size(self.width, self.height)

    def __str__(self) -> str:
        return f"{self.width}x{self.height}"


class Format(StrEnum):
    """The picture formats that the service reads."""

    JPEG = "jpeg"
    PNG = "png"
    WEBP = "webp"
    GIF = "gif"
    BMP = "bmp"
    TIFF = "tiff"
    AVIF = "avif"


class Colour(StrEnum):
    """How a file stores colour, before any conversion to RGB."""

    GREY = "grey"
    PALETTE = "palette"
    RGB = "rgb"
    YCBCR = "ycbcr"
    CMYK = "cmyk"
    YCCK = "ycck"


@dataclass(frozen=True, slots=True)
class Limits:
    """What one request may cost; every field is a setting (`settings.py`)."""

    max_body_bytes: int
    max_items: int
    max_pixels: int
    max_request_pixels: int
    max_side_px: int
    max_scans: int
    max_scan_pixels: int
    max_answer_bytes: int


@dataclass(frozen=True, slots=True)
class Budgets:
    """What all requests of one worker may hold at once; every field is a worker's share.

    `queue_length` counts requests, from their headers to the end of their answer.
    """

    queue_length: int
    body_bytes: int
    pixels: int
    answer_bytes: int


@dataclass(frozen=True, slots=True)
class Timeouts:
    """How long each part of a request may take, in seconds; every field is a setting."""

    deadline_s: float
    header_timeout_s: float
    body_timeout_s: float
    write_timeout_s: float
    keep_alive_s: float
    stuck_after_s: float
    drain_delay_s: float
    grace_s: float


@dataclass(frozen=True, slots=True)
class Head:
    """What the bytes seen so far say about a picture; None is "cannot tell yet".

    `stored` is the size as coded in the file, before the orientation is
    applied. `bits` counts bits per sample.
    """

    format: Format
    stored: Size
    bits: int
    colour: Colour
    orientation: int | None
    alpha: bool | None
    more_frames: bool | None
    scans: int | None

    @property
    def size(self) -> Size | None:
        """The upright size, None while the orientation is not known and would matter."""
        if self.orientation is None:
            return self.stored if self.stored.height == self.stored.width else None
        return self.stored.transposed() if self.orientation >= 5 else self.stored


@dataclass(frozen=True, slots=True)
class Header:
    """A whole file's facts, of an allowed format and within the limits.

    Made by `codec.sniff` alone. `orientation` is the EXIF value 1..8 that
    brings the stored picture upright; `scans` is 1 for everything but
    multi-scan JPEG.
    """

    format: Format
    stored: Size
    bits: int
    colour: Colour
    orientation: int
    alpha: bool
    more_frames: bool
    scans: int

    @property
    def size(self) -> Size:
        """The upright size: orientations 5..8 swap height and width."""
        return self.stored.transposed() if self.orientation >= 5 else self.stored


@dataclass(frozen=True, slots=True)
class Rgb:
    """A background colour, each channel 0..255."""

    red: int
    green: int
    blue: int

    def __str__(self) -> str:
        return f"#{self.red:02x}{self.green:02x}{self.blue:02x}"


WHITE = Rgb(255, 255, 255)


class Drop(StrEnum):
    """The background that is none: alpha is dropped, not composited."""

    DROP = "drop"


Background: TypeAlias = Rgb | Drop


class SixteenBit(StrEnum):
    """How 16-bit grey becomes 8 bit: as Pillow (clipped), or scaled."""

    COMPAT = "compat"
    SCALE = "scale"


@dataclass(frozen=True, slots=True)
class Pixels:
    """An upright picture: `array` is (H, W, 3) RGB or (H, W, 4) RGBX uint8, C order.

    The fourth channel is filler and never read. `notes` name what a caller may
    want to know about the conversion (`"clipped_16_bit"`).
    """

    array: NDArray[np.uint8]
    notes: tuple[str, ...] = ()
    converted: bool = False
    """Whether the file's own pixels are of another form than RGB: grey, palette, alpha, CMYK."""

    @property
    def size(self) -> Size:
        return Size(self.array.shape[0], self.array.shape[1])


class Dtype(StrEnum):
    """Element types of an answer; `UINT8` is not normalised."""

    UINT8 = "uint8"
    FLOAT16 = "float16"
    BFLOAT16 = "bfloat16"
    FLOAT32 = "float32"

    @property
    def itemsize_bytes(self) -> int:
        return {Dtype.UINT8: 1, Dtype.FLOAT32: 4}.get(self, 2)


class ItemType(StrEnum):
    """What an item of a request is; the words of the body forms."""

    IMAGE = "image"
    VIDEO_CHUNK = "video_chunk"


@dataclass(frozen=True, slots=True)
class Item:
    """One picture (one frame) or a chunk of consecutive video frames, encoded."""

    type: ItemType
    frames: tuple[Buffer, ...]


@dataclass(frozen=True, slots=True)
class Sized:
    """What a plan needs of an item: its upright size, and how many frames of it there are."""

    type: ItemType
    size: Size
    frames: int


@dataclass(frozen=True, slots=True)
class Grid:
    """Patches along time, height and width."""

    t: int
    h: int
    w: int

    @property
    def patches(self) -> int:
        return self.t * self.h * self.w


class Layout(StrEnum):
    """What an answer's elements make up: patches, or pictures that are not cut."""

    PATCHES = "patches"
    IMAGE = "image"


class Order(StrEnum):
    """The order of a picture's patches: row by row over the whole grid, or token by token."""

    RASTER = "raster"
    MERGE = "merge"


@dataclass(frozen=True, slots=True)
class Arrangement:
    """How an answer's elements lie; `merge` is the edge in patches of a token."""

    layout: Layout
    order: Order
    merge: int


@dataclass(frozen=True, slots=True)
class Budget:
    """A request's own numbers for the size rule of its profile; None is the profile's."""

    max_model_len: int | None = None
    text_len: int | None = None
    min_num_patches: int | None = None
    max_num_patches: int | None = None


OF_THE_PROFILE = Budget()


class AnswerFormat(StrEnum):
    """How an answer is written: our own map, or the features that vLLM takes."""

    MSGPACK = "msgpack"
    VLLM = "vllm"


class Hash(StrEnum):
    """What an item's digest is: ours, or the one that vLLM itself would give."""

    PATCHMILL = "patchmill"
    VLLM = "vllm"


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a request asks for; None is what its profile and format call for."""

    model: str | None = None
    format: AnswerFormat = AnswerFormat.MSGPACK
    dtype: Dtype | None = None
    background: Background = WHITE
    layout: Layout | None = None
    order: Order = Order.RASTER
    budget: Budget = OF_THE_PROFILE
    hash: Hash = Hash.PATCHMILL
    model_id: str | None = None
    known_hashes: frozenset[str] = frozenset()

    def knows(self, digest: str) -> bool:
        """Whether the receiver has the elements of this digest of ours."""
        return self.hash is Hash.PATCHMILL and digest in self.known_hashes


@dataclass(frozen=True, slots=True)
class Tile:
    """One square of a picture: resize it to `resized` and begin at (`top`, `left`), in pixels."""

    resized: Size
    top: int
    left: int


@dataclass(frozen=True, slots=True)
class Plan:
    """The sizes of one item's answer, known before any pixel work.

    Each frame is resized to `resized`, padded with zero pixels right and below
    to the grid, and cut into patches of `patch_px`. A picture of `tiles` has
    them where a chunk has its frames. Made by `plan`.
    """

    resized: Size
    grid: Grid
    patch_px: int
    num_tokens: int
    tiles: tuple[Tile, ...] = ()

    @property
    def picture(self) -> Size:
        """A frame or tile, resized and padded."""
        return Size(self.grid.h * self.patch_px, self.grid.w * self.patch_px)

    def shape(self, layout: Layout) -> tuple[int, ...]:
        """(N, 3, P, P); not cut (3, H, W), or (T, 3, H, W) of several frames and of tiles."""
        if layout is Layout.PATCHES:
            return (self.grid.patches, 3, self.patch_px, self.patch_px)
        one = (3, self.picture.height, self.picture.width)
        return (self.grid.t, *one) if self.tiles or self.grid.t > 1 else one

    @property
    def elements(self) -> int:
        return self.grid.patches * 3 * self.patch_px * self.patch_px


@dataclass(frozen=True, slots=True)
class Part:
    """One item of an answer, all but its elements. `header` is its first frame's.

    `known` tells that its receiver has the elements already, and `made` whether they lie
    among the answer's none the less: whether they are known may come out too late.
    """

    type: ItemType
    digest: str
    header: Header
    plan: Plan
    notes: tuple[str, ...]
    known: bool = False
    made: bool = True


@dataclass(frozen=True, slots=True)
class Patches:
    """An answer before it is packed.

    `elements` is flat, C order, of the storage type of `dtype` (16-bit floats
    as their bits); the parts follow each other in it without gaps.
    """

    model: str
    numerics: str
    mean: tuple[float, float, float]
    std: tuple[float, float, float]
    dtype: Dtype
    layout: Layout
    order: Order
    parts: tuple[Part, ...]
    elements: NDArray[np.generic]


@dataclass(frozen=True, slots=True)
class Frame:
    """A packed answer: the body is `head`, then `data`, which nobody copies.

    `model` and `formats`, of every picture in order, are for whoever counts.
    """

    media_type: str
    head: bytes
    data: memoryview
    model: str = ""
    formats: tuple[Format, ...] = ()

    @property
    def length_bytes(self) -> int:
        return len(self.head) + len(self.data)
