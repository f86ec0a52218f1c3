"""Parameters: from the words of a query, a form or a map to typed values.

A parameter may come by query and in the body, but not with different values.
One that is unknown, or that has a value outside its table, is refused by name;
nothing is ignored.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass

from service.errors import BadParameter
from service.plan.profiles import LARGEST
from service.types import (
    OF_THE_PROFILE,
    WHITE,
    Background,
    Budget,
    Drop,
    Dtype,
    Layout,
    Order,
    Rgb,
)

MAX_ECHO_CHARS = 40
HEX_COLOUR = re.compile(r"#[0-9a-fA-F]{6}")

ALLOWED: dict[str, tuple[str, ...]] = {
    "dtype": tuple(Dtype),
    "format": ("msgpack",),
    "layout": tuple(Layout),
    "order": tuple(Order),
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

NAMES = ("model", "background", *ALLOWED, *INTEGERS)


@dataclass(frozen=True, slots=True)
class Parameters:
    """A request's parameters, each with the default of docs/http.md; model None is the default."""

    model: str | None = None
    dtype: Dtype = Dtype.FLOAT32
    background: Background = WHITE
    layout: Layout = Layout.PATCHES
    order: Order = Order.RASTER
    budget: Budget = OF_THE_PROFILE


def parse(pairs: Iterable[tuple[str, object]]) -> Parameters:
    """Check (name, value) pairs from every source at once; raises BadParameter."""
    given: dict[str, str] = {}
    integers: dict[str, int] = {}
    for name, value in pairs:
        if name not in NAMES:
            raise BadParameter(f"unknown parameter {_echo(name)}; known: {', '.join(NAMES)}")
        if name in INTEGERS:
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
    return Parameters(
        model=given.get("model"),
        dtype=Dtype(given.get("dtype", Dtype.FLOAT32)),
        background=_background(given.get("background", "white")),
        layout=Layout(given.get("layout", Layout.PATCHES)),
        order=Order(given.get("order", Order.RASTER)),
        budget=Budget(**integers),
    )


def _integer(name: str, value: object) -> int:
    """A number of a map, or the digits of a query or form."""
    least, greatest = INTEGERS[name]
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) <= MAX_DIGITS:
        value = int(value)
    if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= greatest:
        raise BadParameter(f"{name} must be an integer from {least} to {greatest}")
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
