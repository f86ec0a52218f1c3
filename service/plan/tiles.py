"""The tile rule: a picture as squares of one size, in the grid nearest to its aspect.

A size goes in, a `Plan` comes out; no pixel is touched. The picture is
stretched to a grid of at most so many tiles; a picture of more than one tile
has itself, stretched to one, as its last. Source: InternVL's rule, as vLLM 0.32
applies it to checkpoints of the Nemotron Nano VL family without a minimum and
maximum of patches.
"""

from functools import lru_cache

from service.plan.profiles import Profile, TileSizes
from service.types import Grid, Plan, Size, Tile


def plan(size: Size, profile: Profile) -> Plan:
    """Plan one picture of the upright `size`: tiles row by row, then the thumbnail."""
    sizes = profile.sizes
    assert isinstance(sizes, TileSizes)
    edge = sizes.tile_px
    rows, columns = _nearest(size, edge, sizes.max_num_tiles)
    resized = Size(rows * edge, columns * edge)
    tiles = [
        Tile(resized, row * edge, column * edge) for row in range(rows) for column in range(columns)
    ]
    if sizes.use_thumbnail and len(tiles) > 1:
        tiles.append(Tile(Size(edge, edge), 0, 0))
    side = edge // profile.patch_px
    return Plan(
        resized=resized,
        grid=Grid(len(tiles), side, side),
        patch_px=profile.patch_px,
        num_tokens=len(tiles) * (side // profile.merge) ** 2,
        tiles=tuple(tiles),
    )


def _nearest(size: Size, edge: int, most: int) -> tuple[int, int]:
    """Rows and columns nearest in aspect; of two as near, the larger if half of it is filled."""
    aspect = size.width / size.height
    best, distance = (1, 1), float("inf")
    for rows, columns in _grids(most):
        apart = abs(aspect - columns / rows)
        if apart < distance:
            best, distance = (rows, columns), apart
        elif apart == distance and size.pixels > 0.5 * edge * edge * rows * columns:
            best = (rows, columns)
    return best


@lru_cache(maxsize=8)
def _grids(most: int) -> tuple[tuple[int, int], ...]:
    """All (rows, columns) of at most so many tiles, small ones first."""
    grids = [
        (rows, columns) for columns in range(1, most + 1) for rows in range(1, most // columns + 1)
    ]
    return tuple(sorted(grids, key=lambda grid: grid[0] * grid[1]))
