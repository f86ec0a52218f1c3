"""multipart/form-data, parsed as it arrives and kept in memory.

Each part named `images` is one picture, in order; every other part is a
parameter. File names and part types are read by nobody.
"""

from multipart import MultipartError, MultipartSegment, ParserLimitReached, PushMultipartParser

from service.errors import BadMultipart, EmptyBody, TooManyItems
from service.http.items import Pairs
from service.http.parameters import NAMES
from service.types import Item, ItemType, Limits

PICTURES = "images"
MAX_BOUNDARY_CHARS = 70
"""RFC 2046, section 5.1.1."""
MAX_HEADER_LINE_BYTES = 16 * 1024
"""Room for any file name that a browser sends; the name itself is not looked at."""
MAX_PARAMETER_BYTES = 65_536


class Parser:
    """Fed with chunks of a body, finished into items and parameter pairs."""

    def __init__(self, boundary: str, limits: Limits) -> None:
        if not 1 <= len(boundary) <= MAX_BOUNDARY_CHARS:
            raise BadMultipart(
                f"the Content-Type needs a boundary of 1 to {MAX_BOUNDARY_CHARS} characters"
            )
        self._limits = limits
        self._items: list[Item] = []
        self._pairs: list[tuple[str, object]] = []
        self._name = ""
        self._part = bytearray()
        try:
            self._parser = PushMultipartParser(
                boundary,
                max_header_size=MAX_HEADER_LINE_BYTES,
                max_segment_count=limits.max_items + len(NAMES) + 1,
            )
        except (MultipartError, UnicodeError) as error:
            raise BadMultipart("the boundary holds characters that it must not") from error

    def feed(self, chunk: bytes) -> None:
        """Parse one non-empty chunk; raises BadMultipart, TooManyItems."""
        try:
            for event in self._parser.parse(chunk):
                self._take(event)
        except ParserLimitReached as error:
            raise BadMultipart(f"too many or too long parts: {error}") from error
        except MultipartError as error:
            raise BadMultipart(str(error)) from error

    def finish(self) -> tuple[tuple[Item, ...], Pairs]:
        """The items and pairs; raises BadMultipart when the closing boundary is missing."""
        try:
            self._parser.close()
        except MultipartError as error:
            raise BadMultipart("the body ends before its closing boundary") from error
        if not self._items:
            raise EmptyBody(f"the form has no part named {PICTURES}")
        return tuple(self._items), tuple(self._pairs)

    def _take(self, event: MultipartSegment | bytes | None) -> None:
        if isinstance(event, MultipartSegment):
            self._name = event.name or ""
            self._part = bytearray()
            if self._name == PICTURES and len(self._items) == self._limits.max_items:
                raise TooManyItems(
                    f"at most {self._limits.max_items} items are taken",
                    limit=self._limits.max_items,
                    actual=self._limits.max_items + 1,
                    setting="max_items",
                )
        elif event is not None:
            self._part += event
            if self._name != PICTURES and len(self._part) > MAX_PARAMETER_BYTES:
                raise BadMultipart(
                    f"a part that is not named {PICTURES} is a parameter and has at most "
                    f"{MAX_PARAMETER_BYTES} bytes"
                )
        elif self._name == PICTURES:
            self._items.append(Item(ItemType.IMAGE, (bytes(self._part),)))
        else:
            self._pairs.append((self._name, _text(self._part)))


def _text(value: bytearray) -> str:
    try:
        return value.decode("utf-8")
    except UnicodeDecodeError as error:
        raise BadMultipart("a parameter is not UTF-8 text") from error
