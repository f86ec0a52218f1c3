"""What callers have becomes encoded items, or is refused with the item at fault."""

import io
import pathlib
from typing import Any

import pytest

from patchmill_client import InvalidInput, ItemType
from patchmill_client.inputs import gather

PIL = pytest.importorskip("PIL", reason="Pillow is not installed")
from PIL import Image, ImageOps  # noqa: E402 - after the skip

SIZE = (5, 3)


@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview])
def test_bytes_of_any_kind_go_out_as_they_are(kind: type) -> None:
    [item] = gather(kind(b"encoded"))
    assert (item.type, item.frames) == (ItemType.IMAGE, (b"encoded",))
    assert type(item.frames[0]) is bytes


def test_bytes_are_not_copied() -> None:
    data = b"encoded" * 100
    assert gather(data)[0].frames[0] is data


def test_a_file_goes_out_as_it_is(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "picture"
    path.write_bytes(b"from a file")
    for given in (path, str(path)):
        assert gather(given)[0].frames == (b"from a file",)


def test_a_sequence_is_items_and_a_sequence_in_it_is_a_chunk() -> None:
    items = gather([b"one", [b"a", b"b"], (b"c",), b"two"])
    assert [(item.type.value, item.frames) for item in items] == [
        ("image", (b"one",)),
        ("video_chunk", (b"a", b"b")),
        ("video_chunk", (b"c",)),
        ("image", (b"two",)),
    ]


@pytest.mark.parametrize(
    ("sources", "item"),
    [
        ([], None),
        (7, None),
        (None, None),
        (iter([b"x"]), None),
        ({b"x"}, None),
        (b"", 0),
        ([b"x", b""], 1),
        ([b"x", []], 1),
        ([b"x", [b"y", b""]], 1),
        ([b"x", [b"y", 7]], 1),
        ([b"x", [[b"y"]]], 1),
        ([b"x", 7], 1),
        ([b"x", "/no/such/file"], 1),
        ([b"x", "/"], 1),
        ("with a \x00", 0),
        ("http://host/picture.jpg", 0),
    ],
)
def test_what_cannot_be_sent_is_refused_with_its_place(sources: Any, item: int | None) -> None:
    with pytest.raises(InvalidInput) as refusal:
        gather(sources)
    assert refusal.value.item == item


def image(mode: str) -> Any:
    """A picture of chance pixels."""
    samples = bytes((37 * place + 11) % 256 for place in range(SIZE[0] * SIZE[1] * 4))
    return Image.frombytes("RGBA", SIZE, samples).convert(mode)


def sent(source: Any) -> Any:
    [item] = gather(source)
    return Image.open(io.BytesIO(item.frames[0]))


@pytest.mark.parametrize("mode", ["1", "L", "LA", "P", "RGB", "RGBA", "I;16"])
def test_an_image_of_pillow_goes_out_as_png_without_loss(mode: str) -> None:
    given = image("L").convert("I").convert("I;16") if mode == "I;16" else image(mode)
    found = sent(given)
    assert (found.format, found.size) == ("PNG", SIZE)
    # Pillow opens 16-bit PNG as I;16 or, before 11, as I.
    wide = "I" if mode == "I;16" else "RGBA"
    assert found.convert(wide).tobytes() == given.convert(wide).tobytes()


def test_a_transparent_palette_stays_transparent() -> None:
    given = image("RGB").convert("P")
    given.info["transparency"] = given.getpixel((0, 0))
    assert sent(given).convert("RGBA").tobytes() == given.convert("RGBA").tobytes()


@pytest.mark.parametrize("mode", ["CMYK", "YCbCr", "F", "HSV", "LAB", "RGBa"])
def test_a_mode_that_png_does_not_hold_is_refused(mode: str) -> None:
    with pytest.raises(InvalidInput, match="convert it to RGB") as refusal:
        gather([b"x", Image.new(mode, SIZE)])
    assert refusal.value.item == 1


@pytest.mark.parametrize("format_", ["PNG", "TIFF", "JPEG"])
@pytest.mark.parametrize("orientation", range(1, 9))
def test_an_orientation_that_is_still_to_be_applied_goes_along(
    orientation: int, format_: str
) -> None:
    file = io.BytesIO()
    exif = Image.Exif()
    exif[0x0112] = orientation
    exif[0x010E] = "a description that stays here"
    image("RGB").save(file, format_, exif=exif)
    upright = ImageOps.exif_transpose(Image.open(file))
    found = sent(Image.open(file))
    assert 0x010E not in found.getexif()
    assert ImageOps.exif_transpose(found).tobytes() == upright.tobytes()
    assert sent(upright).tobytes() == upright.tobytes()
    assert 0x0112 not in sent(upright).getexif()


def test_a_colour_profile_and_other_metadata_stay_here() -> None:
    given = image("RGB")
    given.info["icc_profile"] = b"a profile"
    given.info["comment"] = "a comment"
    assert not {"icc_profile", "comment"} & set(sent(given).info)


def test_frames_may_be_images() -> None:
    [item] = gather([[image("RGB"), b"encoded"]])
    assert item.type is ItemType.VIDEO_CHUNK
    assert item.frames[0].startswith(b"\x89PNG")


@pytest.mark.parametrize("damage", [100, 60, 40])
def test_an_image_that_cannot_be_decoded_is_refused(damage: int) -> None:
    file = io.BytesIO()
    Image.effect_noise((64, 64), 50).save(file, "PNG")
    broken = Image.open(io.BytesIO(file.getvalue()[: len(file.getvalue()) * damage // 101]))
    with pytest.raises(InvalidInput, match="cannot be encoded"):
        gather(broken)


def test_an_image_without_pixels_is_refused() -> None:
    with pytest.raises(InvalidInput):
        gather(Image.new("RGB", (0, 0)))
