"""The shuffle for nothing: patches in merge order, and a view where the shuffle was.

An encoder that takes each patch's place as an index, and attends, does not care
in which order its patches come. So the service may write the r x r patches of
one token together; the encoder then puts them out together, and folding them is
a view. A small random encoder shows it, and shows what does not allow it.
"""

import math
from typing import Any

import pytest

from patchmill_client import Grid
from patchmill_client.orders import merge_index

try:
    import torch

    from patchmill_client.pixel_shuffle import pixel_shuffle_packed
except ImportError:
    torch = None

pytestmark = pytest.mark.skipif(torch is None, reason="torch is not installed")

PATCH, CHANNELS, HEADS, SIDE = 4, 16, 2, 12
CASES = [
    ("one square", [(4, 4)], 2),
    ("one wide", [(2, 8)], 2),
    ("several of several sizes", [(4, 6), (2, 2), (8, 4), (8, 4)], 2),
    ("thirds", [(3, 9), (6, 3)], 3),
    ("nothing to merge", [(3, 5)], 1),
]


class Encoder:
    """Random, of vision transformers' parts: linear embedding, places by index, attention, MLP."""

    def __init__(self) -> None:
        draw = torch.Generator().manual_seed(7)

        def weights(*shape: int) -> Any:
            values = torch.randn(*shape, generator=draw, dtype=torch.float64)
            return values / math.sqrt(shape[0])

        self.embed = weights(3 * PATCH * PATCH, CHANNELS)
        self.places = weights(SIDE * SIDE, CHANNELS) * SIDE
        self.layers = [
            (
                weights(CHANNELS, 3 * CHANNELS),
                weights(CHANNELS, CHANNELS * 4),
                weights(64, CHANNELS),
            )
            for _ in range(2)
        ]

    def __call__(self, patches: Any, places: Any, images: Any) -> Any:
        """(L, 3 P P) patches, (L,) places in the grid, (L,) image numbers to (L, C)."""
        x = patches @ self.embed + self.places[places]
        same_image = images[:, None] == images[None, :]
        for qkv, up, down in self.layers:
            q, k, v = (
                part.unflatten(-1, (HEADS, -1)).transpose(0, 1) for part in (x @ qkv).chunk(3, -1)
            )
            attended = torch.nn.functional.scaled_dot_product_attention(
                q[None], k[None], v[None], attn_mask=same_image
            )
            x = x + attended[0].transpose(0, 1).flatten(1)
            x = x + torch.nn.functional.gelu(x @ up) @ down
        return x


def packed(grids: list[tuple[int, int]]) -> tuple[Any, Any, Any]:
    """Random patches in raster order, each one's place in its grid, and its image."""
    places = torch.cat(
        [(torch.arange(h)[:, None] * SIDE + torch.arange(w)[None, :]).flatten() for h, w in grids]
    )
    images = torch.cat([torch.full((h * w,), n) for n, (h, w) in enumerate(grids)])
    draw = torch.Generator().manual_seed(1)
    shape = (len(places), 3 * PATCH * PATCH)
    return torch.randn(shape, generator=draw, dtype=torch.float64), places, images


def merge_order(grids: list[tuple[int, int]], factor: int) -> Any:
    """(L,): at each place of merge order, the patch's index in raster order."""
    return torch.from_numpy(merge_index([Grid(1, h, w) for h, w in grids], factor))


def shuffled(x: Any, grids: list[tuple[int, int]], factor: int) -> Any:
    sizes = [(h * PATCH, w * PATCH) for h, w in grids]
    return pixel_shuffle_packed(x[None], sizes, patch_size=PATCH, scale_factor=1 / factor)[0]


@pytest.mark.parametrize(("name", "grids", "factor"), CASES)
def test_a_view_of_merge_order_is_the_shuffle_of_raster_order(
    name: str, grids: list[tuple[int, int]], factor: int
) -> None:
    encoder = Encoder()
    patches, places, images = packed(grids)
    wanted = shuffled(encoder(patches, places, images), grids, factor)

    order = merge_order(grids, factor)
    encoded = encoder(patches[order], places[order], images[order])
    free = encoded.view(-1, factor * factor * CHANNELS)

    assert free.data_ptr() == encoded.data_ptr(), name
    # Equal up to the order in which attention sums.
    torch.testing.assert_close(free, wanted, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize(("name", "grids", "factor"), CASES)
def test_without_an_encoder_the_two_are_equal_to_the_bit(
    name: str, grids: list[tuple[int, int]], factor: int
) -> None:
    patches, _, _ = packed(grids)
    free = patches[merge_order(grids, factor)].view(-1, factor * factor * patches.shape[1])
    assert torch.equal(free, shuffled(patches, grids, factor)), name


def test_places_that_stay_behind_spoil_it() -> None:
    grids = [(4, 6)]
    encoder = Encoder()
    patches, places, images = packed(grids)
    wanted = shuffled(encoder(patches, places, images), grids, 2)
    encoded = encoder(patches[merge_order(grids, 2)], places, images)
    assert not torch.allclose(encoded.view(wanted.shape), wanted, rtol=0.1, atol=0.1)
