"""The answer's layout: what docs/wire.md promises, for any mix of items."""

import msgpack
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernels.tables import STORAGE
from service.types import (
    Colour,
    Dtype,
    Format,
    Frame,
    Grid,
    Header,
    ItemType,
    Layout,
    Order,
    Part,
    Patches,
    Plan,
    Size,
    Tile,
)
from service.wire.pack import pack

KEYS = [
    "version",
    "model",
    "layout",
    "order",
    "numerics",
    "items",
    "grid_thws",
    "imgs_sizes",
    "normalization",
    "timings_ms",
    "pad",
    "pixel_values",
]
ITEM_KEYS = [
    "index",
    "type",
    "digest",
    "source",
    "resized",
    "grid_thw",
    "num_patches",
    "num_tokens",
    "patch_offset",
    "shape",
    "offset_bytes",
    "length_bytes",
    "notes",
]

HEADER = Header(Format.JPEG, Size(24, 16), 8, Colour.YCBCR, 6, False, False, 1)
grids = st.builds(Grid, st.integers(1, 4), st.integers(1, 6), st.integers(1, 6))


def patches(
    dtype: Dtype,
    grids: list[Grid],
    model: str = "kimi-k2.5",
    layout: Layout = Layout.PATCHES,
    tiles: tuple[Tile, ...] = (),
) -> Patches:
    parts = tuple(
        Part(ItemType.IMAGE, "0" * 64, HEADER, Plan(Size(5, 6), grid, 14, 1, tiles), ())
        for grid in grids
    )
    total = sum(part.plan.elements for part in parts)
    elements = np.arange(total).astype(STORAGE[dtype.value])
    middle = (0.5, 0.5, 0.5)
    return Patches(model, "pillow-u8", middle, middle, dtype, layout, Order.RASTER, parts, elements)


def joined(frame: Frame) -> bytes:
    return frame.head + bytes(frame.data)


@given(
    st.sampled_from(Dtype),
    st.lists(grids, min_size=1, max_size=5),
    st.text("ab", min_size=1, max_size=128),
    st.dictionaries(st.text("abc", min_size=1), st.floats(0, 1e6), max_size=8),
)
def test_the_data_starts_on_a_64_byte_boundary_and_ends_the_body(
    dtype: Dtype, grids: list[Grid], model: str, timings: dict[str, float]
) -> None:
    frame = pack(patches(dtype, grids, model), timings)
    assert len(frame.head) % 64 == 0
    body = joined(frame)
    assert len(body) == frame.length_bytes
    answer = msgpack.unpackb(body)
    assert body.endswith(answer["pixel_values"]["data"])
    assert answer["timings_ms"] == timings


@given(st.sampled_from(Dtype), st.lists(grids, min_size=1, max_size=5))
def test_items_follow_each_other_without_gap_or_overlap(dtype: Dtype, grids: list[Grid]) -> None:
    made = patches(dtype, grids)
    answer = msgpack.unpackb(joined(pack(made, {})))
    data = answer["pixel_values"]["data"]
    offset = patch = 0
    for index, (item, grid) in enumerate(zip(answer["items"], grids, strict=True)):
        assert (item["index"], item["offset_bytes"], item["patch_offset"]) == (index, offset, patch)
        assert item["grid_thw"] == [grid.t, grid.h, grid.w] == answer["grid_thws"][index]
        assert item["shape"] == [item["num_patches"], 3, 14, 14]
        assert item["length_bytes"] == np.prod(item["shape"]) * dtype.itemsize_bytes
        offset += item["length_bytes"]
        patch += item["num_patches"]
    assert offset == len(data)
    assert answer["pixel_values"]["shape"] == [patch, 3, 14, 14]
    assert data == made.elements.tobytes()


def test_the_keys_stand_in_the_documented_order() -> None:
    answer = msgpack.unpackb(joined(pack(patches(Dtype.UINT8, [Grid(1, 2, 2)]), {})))
    assert list(answer) == KEYS
    assert list(answer["items"][0]) == ITEM_KEYS
    assert list(answer["pixel_values"]) == ["dtype", "shape", "data"]


@pytest.mark.parametrize("dtype", Dtype)
def test_only_uint8_is_said_to_be_not_normalised(dtype: Dtype) -> None:
    answer = msgpack.unpackb(joined(pack(patches(dtype, [Grid(1, 2, 2)]), {})))
    applied = answer["normalization"]["applied"]
    assert applied is (dtype is not Dtype.UINT8)
    assert answer["pixel_values"]["dtype"] == dtype.value


def test_the_source_is_told_upright() -> None:
    source = msgpack.unpackb(joined(pack(patches(Dtype.UINT8, [Grid(1, 2, 2)]), {})))["items"][0][
        "source"
    ]
    assert source == {
        "format": "jpeg",
        "height": 16,
        "width": 24,
        "orientation": 6,
        "more_frames": False,
    }


def test_the_data_is_a_view_and_no_copy() -> None:
    made = patches(Dtype.FLOAT32, [Grid(1, 2, 2)])
    assert np.shares_memory(np.frombuffer(pack(made, {}).data, np.float32), made.elements)


def test_a_plain_msgpack_reader_needs_no_extension_types() -> None:
    def refuse(code: int, _: bytes) -> None:
        raise AssertionError(f"extension type {code}")

    msgpack.unpackb(joined(pack(patches(Dtype.BFLOAT16, [Grid(1, 2, 2)]), {})), ext_hook=refuse)


TILES = (Tile(Size(28, 28), 0, 0),)
# The grids of the items, their tiles; each item's shape, and that of all.
IMAGES = {
    "one picture": ([Grid(1, 2, 4)], (), [[3, 28, 56]], [3, 28, 56]),
    "pictures of one size": (
        [Grid(1, 2, 4), Grid(1, 2, 4)],
        (),
        [[3, 28, 56], [3, 28, 56]],
        [2, 3, 28, 56],
    ),
    "pictures of two sizes": (
        [Grid(1, 2, 4), Grid(1, 2, 2)],
        (),
        [[3, 28, 56], [3, 28, 28]],
        [12 * 588],
    ),
    "a chunk": ([Grid(3, 2, 4)], (), [[3, 3, 28, 56]], [3, 3, 28, 56]),
    "a chunk and a picture": (
        [Grid(3, 2, 4), Grid(1, 2, 4)],
        (),
        [[3, 3, 28, 56], [3, 28, 56]],
        [4, 3, 28, 56],
    ),
    "one tile": ([Grid(1, 2, 2)], TILES, [[1, 3, 28, 28]], [1, 3, 28, 28]),
    "tiles": (
        [Grid(3, 2, 2), Grid(1, 2, 2)],
        TILES,
        [[3, 3, 28, 28], [1, 3, 28, 28]],
        [4, 3, 28, 28],
    ),
}


@pytest.mark.parametrize(("grids", "tiles", "shapes", "packed"), IMAGES.values(), ids=IMAGES)
def test_pictures_that_are_not_cut_have_three_planes(
    grids: list[Grid], tiles: tuple[Tile, ...], shapes: list[list[int]], packed: list[int]
) -> None:
    made = patches(Dtype.UINT8, grids, layout=Layout.IMAGE, tiles=tiles)
    answer = msgpack.unpackb(joined(pack(made, {})))
    assert answer["layout"] == "image"
    assert [item["shape"] for item in answer["items"]] == shapes
    assert answer["pixel_values"]["shape"] == packed
    assert len(answer["pixel_values"]["data"]) == np.prod(packed)


@pytest.mark.parametrize("layout", Layout)
def test_the_sizes_are_those_of_the_padded_pictures(layout: Layout) -> None:
    made = patches(Dtype.UINT8, [Grid(1, 2, 4), Grid(3, 1, 1)], layout=layout)
    answer = msgpack.unpackb(joined(pack(made, {})))
    assert answer["imgs_sizes"] == [[28, 56], [14, 14]]
