"""Every way a call can fail, drawn as one tree.

    PatchmillError
    ├── InvalidInput              what was given cannot be sent; nothing was sent
    ├── MissingPackage            torch or Pillow is needed and not installed
    ├── AlreadyNormalized         normalize() on elements that have it already
    ├── UndefinedShuffle          a pixel shuffle that cannot be done
    │   ├── BadFactor
    │   ├── UnknownVersion
    │   ├── UnevenGrid            sides that are no multiples of patch or factor
    │   └── LengthMismatch        x and the sizes disagree
    ├── UnsafeRequest             an engine would die of it, or answer wrongly; not to be sent
    │   ├── WrongElements         dtype, layout or family that the engine does not take
    │   │   └── NormalizedTwice   normalised elements for an engine that normalises
    │   ├── BadFeatures           lists, keys and modalities that disagree
    │   ├── BadPlaceholder        a range that does not lie on its item's placeholders
    │   ├── BadTensor             an item whose tensors cannot be read or do not agree
    │   └── UnknownHash           no tensor, and nobody said that the engine has it
    ├── TransportError            no whole answer came
    │   ├── ConnectFailed
    │   ├── ConnectionLost
    │   ├── TimedOut
    │   └── DeadlineExceeded
    ├── BadAnswer                 an answer came that cannot be used
    │   ├── UnexpectedAnswer      a redirect, another content type, an error page
    │   ├── AnswerOverLimit       larger than this client takes
    │   └── LyingAnswer           it contradicts itself, the request or the format
    │       └── TruncatedAnswer
    └── Refusal                   a problem document (RFC 9457), by family of status
        ├── RequestRefused        other 4xx
        │   ├── BadRequest 400, Unauthorized 401, Forbidden 403, NotFound 404
        │   ├── MethodNotAllowed 405, SlowRequest 408, BodyTooLarge 413
        │   ├── Unsupported 415, Unprocessable 422
        │   └── TooManyRequests 429
        └── ServiceFault          other 5xx
            └── Unavailable 503, GatewayFault 502 and 504

`repeatable` says whether the same call may succeed later: sending it again is
always safe, because preprocessing is a pure function of the request.
"""

from typing import ClassVar


class PatchmillError(Exception):
    """The root. `request_id` finds the call in the service's log, `attempts` counts sendings."""

    repeatable: bool = False
    retry_after_s: float | None = None

    def __init__(self, detail: str) -> None:
        super().__init__(detail)
        self.detail = detail
        self.request_id: str | None = None
        self.attempts = 0

    def __reduce__(self) -> tuple[object, ...]:
        """Errors cross processes, whatever their constructors ask for."""
        return (_rebuilt, (type(self), self.args, self.__dict__))


def _rebuilt(
    kind: type[PatchmillError], args: tuple[object, ...], state: dict[str, object]
) -> PatchmillError:
    error = kind.__new__(kind, *args)
    error.__dict__.update(state)
    return error


# before anything is sent, and after everything came


class InvalidInput(PatchmillError, ValueError):
    """What was given cannot be sent; `item` is the index of the item at fault."""

    def __init__(self, detail: str, item: int | None = None) -> None:
        super().__init__(detail)
        self.item = item


class MissingPackage(PatchmillError, ImportError):
    """A package that this call needs is not installed."""


class AlreadyNormalized(PatchmillError, TypeError):
    """The elements are normalised; doing it twice would spoil them."""


# a pixel shuffle that cannot be done


class UndefinedShuffle(PatchmillError, ValueError):
    """A pixel shuffle that cannot be done with what was given."""


class BadFactor(UndefinedShuffle):
    """`scale_factor` is not one divided by a whole number."""


class UnknownVersion(UndefinedShuffle):
    """A `version` other than v1 and v2."""


class UnevenGrid(UndefinedShuffle):
    """Sides that are no multiples of the patch or of the factor; `item` is the image's index."""

    def __init__(self, detail: str, item: int | None) -> None:
        super().__init__(detail)
        self.item = item


class LengthMismatch(UndefinedShuffle):
    """The tensor and its sizes disagree, in patches or in axes."""

    def __init__(self, detail: str, expected: int, actual: int) -> None:
        super().__init__(detail)
        self.expected = expected
        self.actual = actual


# a request to an engine


MAX_DETAIL_CHARS = 300


class UnsafeRequest(PatchmillError, ValueError):
    """An engine would die of this request, or answer wrongly; `field` is where."""

    def __init__(self, field: str, detail: str) -> None:
        if len(detail) > MAX_DETAIL_CHARS:  # it may quote a client's value, and that be megabytes
            detail = f"{detail[: MAX_DETAIL_CHARS - 1]}…"
        super().__init__(f"{field}: {detail}")
        self.field = field


class WrongElements(UnsafeRequest):
    """Elements of another dtype, layout, order or model family than the engine takes."""


class NormalizedTwice(WrongElements):
    """Normalised elements for an engine that will normalise them again, whatever their type."""


class BadFeatures(UnsafeRequest):
    """Lists, keys or modalities that disagree, or a field of another type."""


class BadPlaceholder(UnsafeRequest):
    """A range that is not exactly the placeholder tokens of its item."""


class BadTensor(UnsafeRequest):
    """An item that cannot be read, or whose tensors contradict each other or the model."""


class UnknownHash(UnsafeRequest):
    """An item without tensors whose hash was not said to be known to the engine."""


# no whole answer


class TransportError(PatchmillError):
    """No whole answer came."""


class ConnectFailed(TransportError):
    """Nobody answers at the address."""

    repeatable = True


class ConnectionLost(TransportError):
    """The connection ended before the answer did."""

    repeatable = True


class TimedOut(TransportError):
    """Connecting, sending or receiving stood still for too long."""

    repeatable = True


class DeadlineExceeded(TransportError):
    """The whole call, with its repetitions, took longer than it was given."""


# an answer that cannot be used


class BadAnswer(PatchmillError):
    """An answer came, and it cannot be used."""


class UnexpectedAnswer(BadAnswer):
    """Not an answer of this service: a redirect, another content type, a proxy's error page."""

    def __init__(self, detail: str, status: int) -> None:
        super().__init__(detail)
        self.status = status


class AnswerOverLimit(BadAnswer):
    """The answer is larger than `max_answer_bytes`; nothing of that size was allocated."""

    def __init__(self, detail: str, limit: int, actual: int) -> None:
        super().__init__(detail)
        self.limit = limit
        self.actual = actual


class LyingAnswer(BadAnswer):
    """The answer contradicts itself, the request or the format; `field` is where."""

    def __init__(self, field: str, detail: str) -> None:
        super().__init__(f"{field}: {detail}")
        self.field = field


class TruncatedAnswer(LyingAnswer):
    """The body ended before its own head says that it does."""

    repeatable = True


# the service says no


class Refusal(PatchmillError):
    """The service's own word on why not; the fields are those of its problem document."""

    repeatable_unsaid: ClassVar[bool] = False
    """Whether to repeat where the answer does not say."""

    def __init__(
        self,
        detail: str,
        *,
        status: int,
        code: str,
        title: str = "",
        retryable: bool | None = None,
        item: int | None = None,
        limit: int | None = None,
        actual: int | None = None,
        setting: str | None = None,
    ) -> None:
        super().__init__(detail)
        self.status = status
        self.code = code
        self.title = title
        self.repeatable = self.repeatable_unsaid if retryable is None else retryable
        self.item = item
        self.limit = limit
        self.actual = actual
        self.setting = setting

    @property
    def retryable(self) -> bool:
        """The problem document's word for `repeatable`."""
        return self.repeatable

    def __str__(self) -> str:
        where = "" if self.item is None else f" (item {self.item})"
        return f"{self.status} {self.code}{where}: {self.detail or self.title}"


class RequestRefused(Refusal):
    """4xx: the request is at fault."""


class BadRequest(RequestRefused):
    """400: the body or the request is malformed."""


class Unauthorized(RequestRefused):
    """401"""


class Forbidden(RequestRefused):
    """403"""


class NotFound(RequestRefused):
    """404"""


class MethodNotAllowed(RequestRefused):
    """405"""


class SlowRequest(RequestRefused):
    """408: the body came too slowly."""

    repeatable_unsaid = True


class BodyTooLarge(RequestRefused):
    """413"""


class Unsupported(RequestRefused):
    """415: a format or an encoding that is not read."""


class Unprocessable(RequestRefused):
    """422: a parameter, a limit or a picture."""


class TooManyRequests(RequestRefused):
    """429: the queue is full; `retry_after_s` says when there will be room."""

    repeatable_unsaid = True


class ServiceFault(Refusal):
    """5xx: the service is at fault."""


class Unavailable(ServiceFault):
    """503: starting, stopping or overloaded."""

    repeatable_unsaid = True


class GatewayFault(ServiceFault):
    """502, 504: a proxy got no answer, or the service no time."""

    repeatable_unsaid = True


BY_STATUS: dict[int, type[Refusal]] = {
    400: BadRequest,
    401: Unauthorized,
    403: Forbidden,
    404: NotFound,
    405: MethodNotAllowed,
    408: SlowRequest,
    413: BodyTooLarge,
    415: Unsupported,
    422: Unprocessable,
    429: TooManyRequests,
    502: GatewayFault,
    503: Unavailable,
    504: GatewayFault,
}


def class_for(status: int) -> type[Refusal]:
    """The class for a status of 400 to 599; the family's own where it has no class."""
    return BY_STATUS.get(status, RequestRefused if status < 500 else ServiceFault)
