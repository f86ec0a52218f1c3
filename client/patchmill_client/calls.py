"""A call before any I/O: what is sent, and what reads its answer."""

import operator
import re
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from patchmill_client import bodies, inputs
from patchmill_client.batch import Batch
from patchmill_client.errors import InvalidInput
from patchmill_client.exchange import REQUEST_ID, BatchReader, JsonReader, Reader
from patchmill_client.values import Dtype, Expected, Layout, Order

ACCEPTABLE_ID = re.compile(r"[A-Za-z0-9._-]{1,128}")
"""What the service takes over; any other it would replace by its own."""

TEXTS = ("model", "background", "model_id")
INTEGERS = ("max_model_len", "text_len", "min_num_patches", "max_num_patches")

LARGEST_INTEGER = 2**63 - 1
"""What is larger the service refuses anyhow."""

Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class Call(Generic[Result]):
    """A request, the same at every repetition; `reader` is made anew for each answer."""

    method: str
    path: str
    parameters: Mapping[str, str]
    headers: Mapping[str, str]
    content: bytes | None
    reader: Callable[[Mapping[str, str]], Reader[Result]]

    @property
    def request_id(self) -> str:
        return self.headers[REQUEST_ID]


@dataclass(frozen=True, slots=True)
class Options:
    """The parameters of `POST /preprocess` (docs/http.md); None is the service's default."""

    model: str | None
    dtype: str
    background: str | None
    form: str | None
    layout: str = Layout.PATCHES
    order: str = Order.RASTER
    max_model_len: int | None = None
    text_len: int | None = None
    min_num_patches: int | None = None
    max_num_patches: int | None = None
    model_id: str | None = None

    def __post_init__(self) -> None:
        if self.dtype not in list(Dtype):
            raise InvalidInput(f"{self.dtype!r} is no dtype; {', '.join(Dtype)} are")
        if self.layout not in list(Layout):
            raise InvalidInput(f"{self.layout!r} is no layout; {', '.join(Layout)} are")
        if self.order not in list(Order):
            raise InvalidInput(f"{self.order!r} is no order; {', '.join(Order)} are")
        if self.form is not None and self.form not in list(bodies.Form):
            raise InvalidInput(f"{self.form!r} is no form of body; {', '.join(bodies.Form)} are")
        for name in TEXTS:
            value = getattr(self, name)
            if value is not None and not value.isascii():
                raise InvalidInput(f"{name} is not ASCII")
        for name in INTEGERS:
            _digits(name, getattr(self, name))


def preprocess(
    sources: inputs.Sources, options: Options, request_id: str | None, max_answer_bytes: int
) -> Call[Batch]:
    """`POST /preprocess`. Reads and encodes the pictures, so it may block; raises InvalidInput."""
    headers = _headers(request_id, "application/msgpack, application/problem+json")
    items = inputs.gather(sources)
    body = bodies.encode(items, options.form)
    dtype = Dtype(options.dtype)
    layout, order = Layout(options.layout), Order(options.order)
    expected = Expected(tuple(item.type for item in items), dtype, layout, order)
    given = {
        "model": options.model,
        "dtype": str(dtype),
        "background": options.background,
        # What a service does by itself is not asked for.
        "layout": None if layout is Layout.PATCHES else str(layout),
        "order": None if order is Order.RASTER else str(order),
        "hash": None if options.model_id is None else "vllm",
        "model_id": options.model_id,
        **{name: _digits(name, getattr(options, name)) for name in INTEGERS},
    }
    return Call(
        method="POST",
        path="/preprocess",
        parameters={name: value for name, value in given.items() if value is not None},
        headers={**headers, "Content-Type": body.content_type},
        content=body.content,
        reader=lambda answered: BatchReader(answered, expected, max_answer_bytes),
    )


def _digits(name: str, number: Any) -> str | None:
    """An integer of any type as text; raises InvalidInput for what would have to be rounded."""
    if number is None:
        return None
    if isinstance(number, bool):  # an int to Python, and an error to whoever wrote it
        raise InvalidInput(f"{name} is {number}, must be an integer")
    try:
        whole = operator.index(number)
    except TypeError as error:
        told = f"{number!r:.100}"
        raise InvalidInput(
            f"{name} is {told} ({type(number).__name__}), must be an integer"
        ) from error
    if abs(whole) > LARGEST_INTEGER:  # Python itself refuses to write out the very large
        raise InvalidInput(f"{name} has {whole.bit_length()} bits, must have at most 63")
    return str(whole)


def get(path: str) -> Call[dict[str, Any]]:
    """A GET of JSON."""
    headers = _headers(None, "application/json, application/problem+json")
    return Call("GET", path, {}, headers, None, JsonReader)


def _headers(request_id: str | None, accept: str) -> dict[str, str]:
    """With the caller's request id, or with a new one."""
    if request_id is None:
        request_id = uuid.uuid4().hex
    if not ACCEPTABLE_ID.fullmatch(request_id):
        raise InvalidInput("a request id is 1 to 128 letters, digits, dots, dashes or underscores")
    return {REQUEST_ID: request_id, "Accept": accept}
