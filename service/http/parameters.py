"""Parameters: from the words of a query, a form or a map to typed values.

A parameter may come by query and in the body, but not with different values.
One that is unknown, or that has a value outside its table, is refused by name;
nothing is ignored.
"""

import re
from collections.abc import Iterable, Sequence

from service.errors import BadParameter
from service.plan.profiles import LARGEST
from service.types import (
    WHITE,
    AnswerFormat,
    Background,
    Budget,
    Drop,
    Dtype,
    Hash,
    Layout,
    Order,
    Rgb,
    Wanted,
)

MAX_ECHO_CHARS = 40
HEX_COLOUR = re.compile(r"#[0-9a-fA-F]{6}")

ALLOWED: dict[str, tuple[str, ...]] = {
    "dtype": tuple(Dtype),
    "format": tuple(AnswerFormat),
    "layout": tuple(Layout),
    "order": tuple(Order),
    "hash": tuple(Hash),
}
"""Parameters with a fixed set of values."""

INTEGERS: dict[str, tuple[int, int]] = {
    "max_model_len": (1, LARGEST),
    "text_len": (0, LARGEST),
    "min_num_patches": (1, LARGEST),
    "max_num_patches": (0, LARGEST),
}
"""Parameters that are integers, each with its least and greatest."""
MAX_DIGITS = 10

MODEL_ID = re.compile(r"[\x21-\x7e]{1,256}")
"""An engine's name for its model: a repository or a path."""
KNOWN = "known_hashes"
HASH = re.compile(r"[0-9a-f]{64}")
MAX_KNOWN = 1024

NAMES = ("model", "background", "model_id", KNOWN, *ALLOWED, *INTEGERS)
OF_PLANS = tuple(name for name in NAMES if name not in ("hash", "model_id", KNOWN))
"""Those that decide what an answer will come to."""


def parse(pairs: Iterable[tuple[str, object]], names: Sequence[str] = NAMES) -> Wanted:
    """Check (name, value) pairs from every source at once, of these names; raises BadParameter."""
    given: dict[str, str] = {}
    integers: dict[str, int] = {}
    known: list[frozenset[str]] = []
    for name, value in pairs:
        if name not in names:
            raise BadParameter(f"unknown parameter {_echo(name)}; docs/http.md lists them")
        if name == KNOWN:
            known.append(_hashes(value))
            same = known[0] == known[-1]
        elif name in INTEGERS:
            number = _integer(name, value)
            same = integers.setdefault(name, number) == number
        elif isinstance(value, str):
            same = given.setdefault(name, value) == value
        else:
            raise BadParameter(f"{name} must be a string")
        if not same:
            raise BadParameter(f"{name} is given twice, with different values")
    for name, allowed in ALLOWED.items():
        if name in given and given[name] not in allowed:
            raise BadParameter(f"{name}={_echo(given[name])} is none of {', '.join(allowed)}")
    return Wanted(
        model=given.get("model"),
        format=AnswerFormat(given.get("format", AnswerFormat.MSGPACK)),
        dtype=Dtype(given["dtype"]) if "dtype" in given else None,
        background=_background(given.get("background", "white")),
        layout=Layout(given["layout"]) if "layout" in given else None,
        order=Order(given.get("order", Order.RASTER)),
        budget=Budget(**integers),
        hash=Hash(given.get("hash", Hash.PATCHMILL)),
        model_id=_model_id(given.get("model_id")),
        known_hashes=known[0] if known else frozenset(),
    )


def _integer(name: str, value: object) -> int:
    """A number of a map, or the digits of a query or form."""
    least, greatest = INTEGERS[name]
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) <= MAX_DIGITS:
        value = int(value)
    if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= greatest:
        raise BadParameter(f"{name} must be an integer from {least} to {greatest}")
    return value


def _hashes(value: object) -> frozenset[str]:
    """A list of a map, or the words of a query or form between commas."""
    words = value.split(",") if isinstance(value, str) else value
    if not isinstance(words, list) or len(words) > MAX_KNOWN:
        raise BadParameter(f"{KNOWN} must be a list of at most {MAX_KNOWN} hashes")
    if not all(isinstance(word, str) and HASH.fullmatch(word) for word in words):
        raise BadParameter(f"{KNOWN} must hold hashes of 64 hex digits, in lower case")
    return frozenset(words)


def _model_id(value: str | None) -> str | None:
    if value is not None and not MODEL_ID.fullmatch(value):
        raise BadParameter("model_id must be 1 to 256 printable ASCII characters without spaces")
    return value


def _background(value: str) -> Background:
    if value == "white":
        return WHITE
    if value == Drop.DROP:
        return Drop.DROP
    if not HEX_COLOUR.fullmatch(value):
        raise BadParameter(f"background={_echo(value)} is none of white, drop, #rrggbb")
    return Rgb(*bytes.fromhex(value[1:]))


def _echo(text: str) -> str:
    """A client's own word, short and printable, so that it can find its mistake."""
    return ascii(text[:MAX_ECHO_CHARS])[:MAX_ECHO_CHARS]
