"""The head of an answer: every field read, compared and only then believed.

In come the first bytes of a body and what the request asked for, out comes a
`Head`. The format is docs/wire.md. Nothing here reads the data or allocates
anything of its size; the caller allocates after the head has been checked.
"""

import math
import re
from dataclasses import replace

from patchmill_client.cursor import Cursor, MoreNeeded
from patchmill_client.errors import AnswerOverLimit, LyingAnswer
from patchmill_client.values import (
    Channels,
    Dtype,
    Expected,
    Grid,
    Head,
    Item,
    ItemType,
    Layout,
    Normalization,
    Order,
    Size,
    SourcePicture,
)

VERSION = 1
ALIGNMENT_BYTES = 64
"""The data starts on a multiple of this from the start of the body."""
CHANNELS = 3

MAX_ITEMS = 4096
"""The most that a service can be set to take."""
MAX_TIMINGS = 64
MAX_NOTES = 64
MAX_ORIENTATION = 8
FLOAT16_MAX = 65504.0
"""Every normalised value must fit the narrowest type; the service holds its profiles to it."""

BASE_BYTES = 16 * 1024
ITEM_BYTES = 2 * 1024
"""An item's part of the head is about 450 bytes; with long notes a little more."""

DIGEST = re.compile(r"[0-9a-f]{64}")


def max_head_bytes(expected: Expected | None) -> int:
    """What a head can need at most; beyond it the search for its end is given up."""
    return BASE_BYTES + ITEM_BYTES * (len(expected.types) if expected else MAX_ITEMS)


def read_head(start: memoryview, expected: Expected | None, max_answer_bytes: int) -> Head:
    """The head that stands at the start of a body.

    `expected` None reads an answer whose request is not known. Raises MoreNeeded
    when `start` ends inside the head, LyingAnswer for anything that docs/wire.md
    forbids or that `expected` contradicts, AnswerOverLimit for more data than
    `max_answer_bytes`.
    """
    allowed = max_head_bytes(expected)
    try:
        return _read(Cursor(start[:allowed]), expected, max_answer_bytes)
    except MoreNeeded:
        if len(start) >= allowed:
            raise LyingAnswer("body", f"the head has more than {allowed} bytes") from None
        raise


def _read(cursor: Cursor, expected: Expected | None, max_answer_bytes: int) -> Head:
    cursor.map_of(12, "body")
    cursor.key("version", "version")
    if (version := cursor.integer("version")) != VERSION:
        raise LyingAnswer("version", f"{version} is not known here, {VERSION} is")
    model = _text(cursor, "model")
    layout = Layout(_word(cursor, "layout", Layout, expected.layout if expected else None))
    order = Order(_word(cursor, "order", Order, expected.order if expected else None))
    if layout is not Layout.PATCHES and order is not Order.RASTER:
        raise LyingAnswer("order", f"{order} of no patches")
    numerics = _text(cursor, "numerics")
    cursor.key("items", "items")
    items = _items(cursor, expected)
    _grid_thws(cursor, items)
    items = _imgs_sizes(cursor, items, layout)
    cursor.key("normalization", "normalization")
    normalization = _normalization(cursor)
    cursor.key("timings_ms", "timings_ms")
    timings_ms = _timings(cursor)
    cursor.key("pad", "pad")
    cursor.filler(ALIGNMENT_BYTES - 1, "pad")
    cursor.key("pixel_values", "pixel_values")
    cursor.map_of(3, "pixel_values")
    dtype = _dtype(cursor, expected)
    shape = _packed_shape(cursor)
    cursor.key("data", "pixel_values.data")
    data_bytes = cursor.data_length("pixel_values.data")
    head = Head(
        model=model,
        layout=layout,
        order=order,
        numerics=numerics,
        items=items,
        normalization=normalization,
        timings_ms=timings_ms,
        dtype=dtype,
        head_bytes=cursor.position,
        data_bytes=data_bytes,
    )
    _check_data(head, shape, max_answer_bytes)
    return head


def _items(cursor: Cursor, expected: Expected | None) -> tuple[Item, ...]:
    if expected is None:
        count = cursor.array_up_to(MAX_ITEMS, "items")
    else:
        count = len(expected.types)
        cursor.array_of(count, "items")
    if not count:
        raise LyingAnswer("items", "there are none")
    items: list[Item] = []
    for index in range(count):
        item = _item(cursor, index)
        if expected and item.type is not expected.types[index]:
            raise LyingAnswer(f"items[{index}].type", f"{item.type} was not asked for")
        items.append(item)
    return tuple(items)


def _item(cursor: Cursor, index: int) -> Item:
    at = f"items[{index}]"
    cursor.map_of(13, at)
    if (said := _integer(cursor, f"{at}.index")) != index:
        raise LyingAnswer(f"{at}.index", f"{said} stands at place {index}")
    kind = _item_type(cursor, f"{at}.type")
    digest = _text(cursor, f"{at}.digest")
    if not DIGEST.fullmatch(digest):
        raise LyingAnswer(f"{at}.digest", "not 64 hex digits")
    cursor.key("source", f"{at}.source")
    source = _source(cursor, f"{at}.source")
    cursor.key("resized", f"{at}.resized")
    cursor.array_of(2, f"{at}.resized")
    resized = Size(*(cursor.integer(f"{at}.resized", 1) for _ in range(2)))
    cursor.key("grid_thw", f"{at}.grid_thw")
    grid = _grid(cursor, f"{at}.grid_thw")
    num_patches = _integer(cursor, f"{at}.num_patches")
    num_tokens = _integer(cursor, f"{at}.num_tokens")
    patch_offset = _integer(cursor, f"{at}.patch_offset")
    cursor.key("shape", f"{at}.shape")
    axes = cursor.array_up_to(4, f"{at}.shape")
    shape = tuple(cursor.integer(f"{at}.shape", 1) for _ in range(axes))
    item = Item(
        index=index,
        type=kind,
        digest=digest,
        source=source,
        resized=resized,
        grid_thw=grid,
        num_tokens=num_tokens,
        patch_offset=patch_offset,
        shape=shape,
        offset_bytes=_integer(cursor, f"{at}.offset_bytes"),
        length_bytes=_integer(cursor, f"{at}.length_bytes"),
        notes=_notes(cursor, f"{at}.notes"),
        image_size=resized,  # the answer tells it after all items; see `_imgs_sizes`
    )
    _check_item(item, num_patches, at)
    return item


def _check_item(item: Item, num_patches: int, at: str) -> None:
    """What an item says about itself must agree; its place is checked with the data's."""
    grid = item.grid_thw
    if num_patches != grid.patches:
        raise LyingAnswer(f"{at}.num_patches", f"{num_patches} patches in the grid {grid}")
    if not 1 <= item.num_tokens <= num_patches:
        raise LyingAnswer(f"{at}.num_tokens", f"{item.num_tokens} of {num_patches} patches")


def _check_size(item: Item, layout: Layout) -> None:
    """Grid, size and shape must agree."""
    at = f"items[{item.index}]"
    grid, size = item.grid_thw, item.image_size
    patch_px = size.height // grid.h
    if size != (grid.h * patch_px, grid.w * patch_px) or not patch_px:
        raise LyingAnswer(f"imgs_sizes[{item.index}]", f"{tuple(size)} for {tuple(grid)} patches")
    one = (CHANNELS, *size)
    allowed: tuple[tuple[int, ...], ...] = ((grid.t, *one),)
    if layout is Layout.PATCHES:
        allowed = ((grid.patches, CHANNELS, patch_px, patch_px),)
    elif grid.t == 1:
        allowed = (one, (1, *one))
    if item.shape not in allowed:
        raise LyingAnswer(f"{at}.shape", f"{item.shape} for {tuple(grid)} patches in {tuple(size)}")
    if not _covered(item):
        raise LyingAnswer(f"{at}.resized", f"{tuple(item.resized)} in {tuple(size)} x {grid.t}")


def _covered(item: Item) -> bool:
    """A frame fits its size; tiles cover the resized picture, perhaps with a thumbnail."""
    size, resized, count = item.image_size, item.resized, item.grid_thw.t
    if item.type is ItemType.VIDEO_CHUNK or count == 1:
        return resized.height <= size.height and resized.width <= size.width
    rows, rest_h = divmod(resized.height, size.height)
    columns, rest_w = divmod(resized.width, size.width)
    return not rest_h and not rest_w and rows * columns in (count, count - 1)


def _check_data(head: Head, shape: tuple[int, ...], max_answer_bytes: int) -> None:
    """Items follow each other without a gap and fill the data; nothing overlaps."""
    if head.normalization.applied != (head.dtype is not Dtype.UINT8):
        raise LyingAnswer("normalization.applied", f"{head.normalization.applied} for {head.dtype}")
    patches = offset_bytes = 0
    for item in head.items:
        at = f"items[{item.index}]"
        if item.patch_offset != patches:
            raise LyingAnswer(f"{at}.patch_offset", f"{item.patch_offset}, must be {patches}")
        if item.offset_bytes != offset_bytes:
            raise LyingAnswer(f"{at}.offset_bytes", f"{item.offset_bytes}, must be {offset_bytes}")
        length_bytes = item.elements * head.dtype.itemsize_bytes
        if item.length_bytes != length_bytes:
            raise LyingAnswer(f"{at}.length_bytes", f"{item.length_bytes}, must be {length_bytes}")
        patches += item.num_patches
        offset_bytes += length_bytes
    if shape != packed_shape(head.items):
        raise LyingAnswer("pixel_values.shape", f"{shape} does not hold the items")
    if head.data_bytes != offset_bytes:
        raise LyingAnswer("pixel_values.data", f"{head.data_bytes} bytes, must be {offset_bytes}")
    if head.head_bytes % ALIGNMENT_BYTES:
        raise LyingAnswer("pixel_values.data", f"starts at byte {head.head_bytes}")
    if head.data_bytes > max_answer_bytes:
        raise AnswerOverLimit(
            f"the answer has {head.data_bytes} bytes of data, at most {max_answer_bytes} are taken",
            max_answer_bytes,
            head.data_bytes,
        )


def packed_shape(items: tuple[Item, ...]) -> tuple[int, ...]:
    """Of one item its shape; of several (N, 3, …) when they agree but in N, else (elements,)."""
    if len(items) == 1:
        return items[0].shape
    tails = {item.shape[-3:] for item in items}
    if len(tails) == 1:
        return (sum(math.prod(item.shape[:-3]) for item in items), *tails.pop())
    return (sum(item.elements for item in items),)


def _source(cursor: Cursor, at: str) -> SourcePicture:
    cursor.map_of(5, at)
    named = _text(cursor, f"{at}.format")
    size = Size(_integer(cursor, f"{at}.height", 1), _integer(cursor, f"{at}.width", 1))
    cursor.key("orientation", f"{at}.orientation")
    orientation = cursor.integer(f"{at}.orientation", 1, MAX_ORIENTATION)
    cursor.key("more_frames", f"{at}.more_frames")
    return SourcePicture(named, size, orientation, cursor.flag(f"{at}.more_frames"))


def _grid_thws(cursor: Cursor, items: tuple[Item, ...]) -> None:
    """The list says again what the items said."""
    cursor.key("grid_thws", "grid_thws")
    cursor.array_of(len(items), "grid_thws")
    for item in items:
        if _grid(cursor, f"grid_thws[{item.index}]") != item.grid_thw:
            raise LyingAnswer(f"grid_thws[{item.index}]", "differs from the item's grid")


def _imgs_sizes(cursor: Cursor, items: tuple[Item, ...], layout: Layout) -> tuple[Item, ...]:
    """The items with their sizes."""
    cursor.key("imgs_sizes", "imgs_sizes")
    cursor.array_of(len(items), "imgs_sizes")
    sized = []
    for item in items:
        field = f"imgs_sizes[{item.index}]"
        cursor.array_of(2, field)
        size = Size(cursor.integer(field, 1), cursor.integer(field, 1))
        sized.append(replace(item, image_size=size))
        _check_size(sized[-1], layout)
    return tuple(sized)


def _grid(cursor: Cursor, field: str) -> Grid:
    cursor.array_of(3, field)
    return Grid(*(cursor.integer(field, 1) for _ in range(3)))


def _notes(cursor: Cursor, field: str) -> tuple[str, ...]:
    cursor.key("notes", field)
    return tuple(cursor.text(field) for _ in range(cursor.array_up_to(MAX_NOTES, field)))


def _normalization(cursor: Cursor) -> Normalization:
    cursor.map_of(3, "normalization")
    cursor.key("applied", "normalization.applied")
    applied = cursor.flag("normalization.applied")
    mean = _channels(cursor, "mean")
    std = _channels(cursor, "std")
    for centre, scale in zip(mean, std, strict=True):
        if scale <= 0 or max(abs(centre), abs(1 - centre)) > FLOAT16_MAX * min(scale, 1):
            raise LyingAnswer("normalization", f"no type can hold mean {centre} and std {scale}")
    return Normalization(applied, mean, std)


def _channels(cursor: Cursor, name: str) -> Channels:
    field = f"normalization.{name}"
    cursor.key(name, field)
    cursor.array_of(CHANNELS, field)
    return (cursor.real(field), cursor.real(field), cursor.real(field))


def _timings(cursor: Cursor) -> dict[str, float]:
    timings: dict[str, float] = {}
    for _ in range(cursor.map_up_to(MAX_TIMINGS, "timings_ms")):
        stage = cursor.text("timings_ms")
        if stage in timings:
            raise LyingAnswer("timings_ms", f"names {stage} twice")
        timings[stage] = cursor.real("timings_ms")
    return timings


def _dtype(cursor: Cursor, expected: Expected | None) -> Dtype:
    field = "pixel_values.dtype"
    cursor.key("dtype", field)
    named = cursor.text(field)
    if named not in list(Dtype):
        raise LyingAnswer(field, f"{named!a} is none of {', '.join(Dtype)}")
    dtype = Dtype(named)
    if expected and dtype is not expected.dtype:
        raise LyingAnswer(field, f"{dtype}, though {expected.dtype} was asked for")
    return dtype


def _packed_shape(cursor: Cursor) -> tuple[int, ...]:
    field = "pixel_values.shape"
    cursor.key("shape", field)
    return tuple(cursor.integer(field, 1) for _ in range(cursor.array_up_to(4, field)))


def _item_type(cursor: Cursor, field: str) -> ItemType:
    named = _text(cursor, field)
    if named not in list(ItemType):
        raise LyingAnswer(field, f"{named!a} is none of {', '.join(ItemType)}")
    return ItemType(named)


def _word(cursor: Cursor, name: str, known: type[Layout] | type[Order], asked: str | None) -> str:
    """A field of few values; of one, where it was asked for."""
    found = _text(cursor, name)
    if found not in list(known):
        raise LyingAnswer(name, f"{found!a} is not known here, {', '.join(known)} are")
    if asked is not None and found != asked:
        raise LyingAnswer(name, f"{found}, though {asked} was asked for")
    return found


def _text(cursor: Cursor, field: str) -> str:
    cursor.key(field.rpartition(".")[2], field)
    return cursor.text(field)


def _integer(cursor: Cursor, field: str, least: int = 0) -> int:
    cursor.key(field.rpartition(".")[2], field)
    return cursor.integer(field, least)
