"""The NaViT size rule of the Kimi family: from a picture's size to its patch grid.

Sizes and integers go in, a `Plan` comes out; no pixel is touched. A picture is
never enlarged. It is shrunk until its patches fit a limit in all and a limit
along each side, then padded with zero pixels right and below to whole tokens.

The arithmetic is the reference's in Python integers and floats, operation for
operation, because a scale that differs in its last bit moves a side by a
pixel. Source: the checkpoint's media utilities, by way of the facts that its
public ports share; held by the 1200 rows of tests/golden/kimi/plan_*.csv.
"""

import math

from service.errors import TooManyFrames
from service.plan.profiles import NavitSizes, Profile
from service.types import Grid, ItemType, Plan, Size


def plan(size: Size, kind: ItemType, frames: int, profile: Profile) -> Plan:
    """Plan one item of `frames` frames, each of the upright `size`.

    Raises TooManyFrames when the model does not merge that many in one chunk.
    """
    sizes = profile.sizes
    assert isinstance(sizes, NavitSizes)
    if frames > sizes.temporal_merge_kernel_size:
        raise TooManyFrames(
            f"a video chunk of {profile.name} has at most {sizes.temporal_merge_kernel_size} "
            f"frames, this one has {frames}",
            limit=sizes.temporal_merge_kernel_size,
            actual=frames,
        )
    side_limit_px = sizes.patch_limit_on_one_side * profile.patch_px
    patch_limit = _patch_limit(kind, frames, sizes)
    resized = _shrunk(size, patch_limit, side_limit_px, profile.patch_px)
    token_px = profile.patch_px * profile.merge
    token_rows = math.ceil(resized.height / token_px)
    token_columns = math.ceil(resized.width / token_px)
    return Plan(
        resized=resized,
        grid=Grid(frames, token_rows * profile.merge, token_columns * profile.merge),
        patch_px=profile.patch_px,
        # The model pools over time: tokens do not multiply by the frames.
        num_tokens=token_rows * token_columns,
    )


def _patch_limit(kind: ItemType, frames: int, sizes: NavitSizes) -> int:
    """How many patches one picture, or one frame of a chunk, may have before padding."""
    if kind is ItemType.IMAGE:
        return sizes.in_patch_limit
    if sizes.in_patch_limit_video is None:
        return sizes.in_patch_limit_each_frame
    return min(round(sizes.in_patch_limit_video / frames), sizes.in_patch_limit_each_frame)


def _shrunk(size: Size, patch_limit: int, side_limit_px: int, patch_px: int) -> Size:
    whole_patches = max(1.0, size.width // patch_px) * max(1.0, size.height // patch_px)
    scale = min(
        1.0,
        math.sqrt(patch_limit / whole_patches),
        side_limit_px / size.width,
        side_limit_px / size.height,
    )
    return Size(
        height=min(max(1, int(size.height * scale)), side_limit_px),
        width=min(max(1, int(size.width * scale)), side_limit_px),
    )
