"""What a vLLM engine takes: a model family's fields, and the settings that change them.

An `Engine` says how the receiving engine was started; this module holds no
pixels and does no work. The values are those of vLLM 0.32, read in its source
and tried against a running engine.
"""

from dataclasses import dataclass
from enum import StrEnum

from patchmill_client.values import Dtype, Layout

CHANNELS = 3
GRID_AXES = 3
"""t, h, w."""
SIZE_AXES = 2
"""height, width."""


class Family(StrEnum):
    """Model families whose features are built and checked here."""

    KIMI = "kimi"
    """Kimi-K2.5 and its successors: patches and a grid, for pictures and video chunks."""
    NEMOTRON = "nemotron"
    """Nemotron Nano VL with dynamic resolution: whole pictures and their sizes."""


class NormalizedBy(StrEnum):
    """Who applies `(x / 255 - mean) / std`."""

    ENGINE = "engine"
    """The engine, on its device: vLLM's default (`--mm-device-do-normalize`)."""
    SENDER = "sender"
    """Whoever sends: the engine runs with `--no-mm-device-do-normalize`."""


@dataclass(frozen=True, slots=True)
class Traits:
    """What a family's features are made of. Edges and sides count pixels and patches."""

    modality: str
    layout: Layout
    patch_px: int
    merge: int
    max_side_patches: int
    max_frames: int
    pixels: str
    """The name of the tensor of elements."""
    normalizes: bool
    """Whether an engine can do it for this family."""


TRAITS = {
    Family.KIMI: Traits(
        modality="vision_chunk",
        layout=Layout.PATCHES,
        patch_px=14,
        merge=2,
        max_side_patches=512,  # the encoder's rotary table; one more is a failed assertion
        max_frames=4,  # the encoder's table of temporal positions
        pixels="pixel_values",
        normalizes=True,
    ),
    Family.NEMOTRON: Traits(
        modality="image",
        layout=Layout.IMAGE,
        patch_px=16,
        merge=2,
        max_side_patches=1 << 16,  # positions are interpolated; memory bounds the picture
        max_frames=1,
        pixels="pixel_values_flat",
        normalizes=False,
    ),
}


@dataclass(frozen=True, slots=True)
class Engine:
    """How the engine that gets a request was started.

    It cannot be asked, and does not look at what it is sent: it normalises
    floats a second time, and takes raw bytes for normalised values.
    """

    family: Family = Family.KIMI
    normalized_by: NormalizedBy = NormalizedBy.ENGINE
    model_dtype: Dtype = Dtype.BFLOAT16
    """vLLM's `--dtype`, where the sender normalises."""

    @property
    def traits(self) -> Traits:
        return TRAITS[self.family]

    @property
    def dtype(self) -> Dtype:
        """The elements that it takes; what to ask the service for."""
        normalizes = self.traits.normalizes and self.normalized_by is NormalizedBy.ENGINE
        return Dtype.UINT8 if normalizes else self.model_dtype


KIMI = Engine()
"""A Kimi engine as vLLM starts it: uint8, normalised on its device."""
NEMOTRON = Engine(Family.NEMOTRON)
"""A Nemotron Nano VL engine as vLLM starts it: bfloat16, normalised by the sender."""
