"""multipart/form-data: parts in order, in pieces of any size, and every broken form refused."""

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.errors import BadMultipart, EmptyBody, PatchmillError, TooManyItems
from service.http.multipart_body import Parser
from tests.http.limits import SMALL


def part(name: str, value: bytes, extra: str = "") -> bytes:
    head = f'--b\r\nContent-Disposition: form-data; name="{name}"{extra}\r\n\r\n'
    return head.encode() + value + b"\r\n"


END = b"--b--\r\n"
GOOD = part("images", b"one") + part("dtype", b"uint8") + part("images", b"\r\n--c") + END


def parse(body: bytes, piece_bytes: int = 1 << 16) -> tuple[list[bytes], list[tuple[str, object]]]:
    parser = Parser("b", SMALL)
    for start in range(0, len(body), piece_bytes):
        parser.feed(body[start : start + piece_bytes])
    items, pairs = parser.finish()
    return [bytes(item.frames[0]) for item in items], list(pairs)


@given(st.integers(1, len(GOOD)))
def test_parts_come_in_order_whatever_the_pieces(piece_bytes: int) -> None:
    assert parse(GOOD, piece_bytes) == ([b"one", b"\r\n--c"], [("dtype", "uint8")])


BROKEN = {
    "no closing boundary": (part("images", b"one"), BadMultipart),
    "cut inside a part": (GOOD[:-20], BadMultipart),
    "cut inside a header": (GOOD[:20], BadMultipart),
    "no boundary at all": (b"hello", BadMultipart),
    "other boundary": (GOOD.replace(b"--b", b"--x"), BadMultipart),
    "no name": (b"--b\r\nContent-Type: image/png\r\n\r\nx\r\n" + END, BadMultipart),
    "header line of 20 KB": (part("images", b"x", "; a=" + "y" * 20_000) + END, BadMultipart),
    "twenty headers": (part("images", b"x", "\r\nX-A: 1" * 20) + END, BadMultipart),
    "no pictures": (part("dtype", b"uint8") + END, EmptyBody),
    "only the end": (END, EmptyBody),
    "parameter of 65 KB": (part("dtype", b"u" * 65_537) + END, BadMultipart),
    "parameter that is not text": (
        part("dtype", b"\xff") + part("images", b"x") + END,
        BadMultipart,
    ),
    "one picture too many": (part("images", b"x") * 4 + END, TooManyItems),
    "2000 parts": (part("a", b"x") * 2000 + END, BadMultipart),
}


@pytest.mark.parametrize(("body", "fault"), BROKEN.values(), ids=BROKEN)
def test_a_broken_form_is_refused(body: bytes, fault: type[PatchmillError]) -> None:
    with pytest.raises(fault):
        parse(body)


@pytest.mark.parametrize("boundary", ["", "x" * 71, "x" * 10_000, "a\nb", "\udcff"])
def test_a_boundary_is_1_to_70_plain_characters(boundary: str) -> None:
    with pytest.raises(BadMultipart):
        Parser(boundary, SMALL)


def test_too_many_pictures_are_refused_with_both_numbers() -> None:
    with pytest.raises(TooManyItems) as refusal:
        parse(part("images", b"x") * 4 + END)
    assert (refusal.value.limit, refusal.value.actual) == (3, 4)


@given(st.binary(max_size=200), st.integers(0, len(GOOD)))
def test_no_bytes_make_the_parser_fail_otherwise(noise: bytes, at: int) -> None:
    with suppress(PatchmillError):
        parse(GOOD[:at] + noise + GOOD[at:])
