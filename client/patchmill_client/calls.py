"""A call before any I/O: what is sent, and what reads its answer."""

import re
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from patchmill_client import bodies, inputs
from patchmill_client.batch import Batch
from patchmill_client.errors import InvalidInput
from patchmill_client.exchange import REQUEST_ID, BatchReader, JsonReader, Reader
from patchmill_client.values import Dtype, Expected

ACCEPTABLE_ID = re.compile(r"[A-Za-z0-9._-]{1,128}")
"""What the service takes over; any other it would replace by its own."""

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

    def __post_init__(self) -> None:
        if self.dtype not in list(Dtype):
            raise InvalidInput(f"{self.dtype!r} is no dtype; {', '.join(Dtype)} are")
        if self.form is not None and self.form not in list(bodies.Form):
            raise InvalidInput(f"{self.form!r} is no form of body; {', '.join(bodies.Form)} are")
        for name, value in (("model", self.model), ("background", self.background)):
            if value is not None and not value.isascii():
                raise InvalidInput(f"{name} is not ASCII")


def preprocess(
    sources: inputs.Sources, options: Options, request_id: str | None, max_answer_bytes: int
) -> Call[Batch]:
    """`POST /preprocess`. Reads and encodes the pictures, so it may block; raises InvalidInput."""
    headers = _headers(request_id, "application/msgpack, application/problem+json")
    items = inputs.gather(sources)
    body = bodies.encode(items, options.form)
    dtype = Dtype(options.dtype)
    expected = Expected(tuple(item.type for item in items), dtype)
    given = {"model": options.model, "dtype": str(dtype), "background": options.background}
    return Call(
        method="POST",
        path="/preprocess",
        parameters={name: value for name, value in given.items() if value is not None},
        headers={**headers, "Content-Type": body.content_type},
        content=body.content,
        reader=lambda answered: BatchReader(answered, expected, max_answer_bytes),
    )


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
