"""Every way a request can fail, drawn as one tree.

A leaf is one stable `code` with its HTTP status and a public sentence; nothing
else in the project writes a status number. An error carries facts for the
caller: a detail of at most 200 characters, and where one applies the limit,
the actual value, the setting that moves the limit and the index of the item at
fault. It never carries payload, a path or a stack. `setting` is the field's name in
`settings.Settings`, without the prefix.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import ClassVar

MAX_DETAIL_CHARS = 200


class PatchmillError(Exception):
    """The root: a fault with a status, a code and facts."""

    status: ClassVar[int]
    code: ClassVar[str]
    title: ClassVar[str]
    retryable: ClassVar[bool] = False

    def __init__(
        self,
        detail: str,
        *,
        limit: int | None = None,
        actual: int | None = None,
        setting: str | None = None,
        item: int | None = None,
    ) -> None:
        super().__init__(detail)
        self.detail = detail[:MAX_DETAIL_CHARS]
        self.limit = limit
        self.actual = actual
        self.setting = setting
        self.item = item
        self.retry_after_s: int | None = None


class ClientLeft(Exception):
    """Nobody waits for the answer any more: no fault, and nothing to answer."""


@contextmanager
def at_item(index: int) -> Iterator[None]:
    """Name the item at fault in any error of ours that leaves the block."""
    try:
        yield
    except PatchmillError as error:
        error.item = index
        raise


# 400: the request itself is malformed


class MalformedRequest(PatchmillError):
    status = 400


class BadRequest(MalformedRequest):
    code = "bad_request"
    title = "The request could not be read."


class EmptyBody(MalformedRequest):
    code = "empty_body"
    title = "The body holds no picture."


class BadBase64(MalformedRequest):
    code = "bad_base64"
    title = "A picture is not sound base64."


class BadJson(MalformedRequest):
    code = "bad_json"
    title = "The body is not the JSON map that this service takes."


class BadMsgpack(MalformedRequest):
    code = "bad_msgpack"
    title = "The body is not the msgpack map that this service takes."


class BadMultipart(MalformedRequest):
    code = "bad_multipart"
    title = "The body is not well-formed multipart/form-data."


# 401: no key


class Unauthorized(PatchmillError):
    status = 401
    code = "unauthorized"
    title = "This service answers those who have a key."


# 404, 405: the path or the method


class NotFound(PatchmillError):
    status = 404
    code = "not_found"
    title = "There is nothing at this path."


class MethodNotAllowed(PatchmillError):
    status = 405
    code = "method_not_allowed"
    title = "This path does not take this method."


# 408: the client is too slow


class SlowRequest(PatchmillError):
    status = 408
    code = "slow_request"
    title = "The request did not arrive in time."
    retryable = True


# 413: more bytes than allowed


class BodyTooLarge(PatchmillError):
    status = 413
    code = "body_too_large"
    title = "The body is larger than this service takes."


# 415: a format or an encoding that is not read here


class Unsupported(PatchmillError):
    status = 415


class UnsupportedEncoding(Unsupported):
    code = "unsupported_encoding"
    title = "Bodies are taken as they are, without a content encoding."


class UnsupportedFormat(Unsupported):
    code = "unsupported_format"
    title = "The bytes are not a picture in a format that this service reads."


class UnsupportedSampleFormat(Unsupported):
    code = "unsupported_sample_format"
    title = "The picture's samples are of a kind that has no 8-bit meaning."


# 422: parameters


class Unprocessable(PatchmillError):
    status = 422


class BadParameter(Unprocessable):
    code = "bad_parameter"
    title = "A parameter is unknown or has a value that is not allowed."


class UnknownModel(Unprocessable):
    code = "unknown_model"
    title = "No profile has this name."


# 422: what a request asks for in all


class RemoteUrl(Unprocessable):
    code = "remote_url"
    title = "Pictures are sent, not linked: this service fetches nothing."


class TooManyItems(Unprocessable):
    code = "too_many_items"
    title = "The request holds more items than this service takes."


class TooManyFrames(Unprocessable):
    code = "too_many_frames"
    title = "The model takes fewer frames in a video chunk, or no video chunks at all."


class EmptyItem(Unprocessable):
    code = "empty_item"
    title = "An item holds no bytes."


class AnswerTooLarge(Unprocessable):
    code = "answer_too_large"
    title = "The answer would be larger than this service sends."


class OverBudget(Unprocessable):
    code = "over_budget"
    title = "The request alone needs more than the service has for all requests together."


# 422: a picture


class TooManyPixels(Unprocessable):
    code = "too_many_pixels"
    title = "There are more pixels than this service decodes."


class SideTooLong(Unprocessable):
    code = "side_too_long"
    title = "A side of the picture is longer than this service takes."


class TooManyScans(Unprocessable):
    code = "too_many_scans"
    title = "The JPEG would be decoded over more scans than this service allows."


class TruncatedImage(Unprocessable):
    code = "truncated_image"
    title = "The picture ends before its data does."


class CorruptImage(Unprocessable):
    code = "corrupt_image"
    title = "The picture is damaged."


class UnplannableSize(Unprocessable):
    code = "unplannable_size"
    title = "The model's size rule leaves nothing of a picture of this size."


class FramesDiffer(Unprocessable):
    code = "frames_differ"
    title = "The frames of a video chunk differ in size."


# 429: too much at once


class TooMuchAtOnce(PatchmillError):
    status = 429
    retryable = True


class QueueFull(TooMuchAtOnce):
    code = "queue_full"
    title = "As many requests are in progress as this service takes."


class BodiesFull(TooMuchAtOnce):
    code = "bodies_full"
    title = "The bodies in progress fill the memory that is set aside for them."


# 5xx: our side


class InternalFault(PatchmillError):
    status = 500
    code = "internal"
    title = "The service failed; the request may be sound."
    retryable = True


class NotReady(PatchmillError):
    status = 503
    code = "not_ready"
    title = "The service is not ready yet."
    retryable = True


class Draining(PatchmillError):
    status = 503
    code = "draining"
    title = "This worker is about to end; another takes its place."
    retryable = True


class DeadlineExceeded(PatchmillError):
    status = 504
    code = "deadline"
    title = "The request could not be answered in time."
    retryable = True
