"""The error tree: each is told apart, crosses processes and says what to do."""

import copy
import pickle

import pytest

from patchmill_client import errors
from patchmill_client.errors import PatchmillError, Refusal

EXAMPLES: list[PatchmillError] = [
    errors.InvalidInput("a detail", 3),
    errors.MissingPackage("a detail"),
    errors.AlreadyNormalized("a detail"),
    errors.BadFactor("a detail"),
    errors.UnknownVersion("a detail"),
    errors.UnevenGrid("a detail", 2),
    errors.LengthMismatch("a detail", 16, 24),
    errors.TimedOut("a detail"),
    errors.UnexpectedAnswer("a detail", 302),
    errors.AnswerOverLimit("a detail", 10, 20),
    errors.TruncatedAnswer("body", "a detail"),
    errors.TooManyRequests("a detail", status=429, code="queue_full", retryable=False, limit=7),
]


@pytest.mark.parametrize("error", EXAMPLES, ids=lambda error: type(error).__name__)
def test_an_error_crosses_processes_with_all_its_facts(error: PatchmillError) -> None:
    error.request_id, error.attempts, error.retry_after_s = "an-id", 4, 1.5
    for twin in (pickle.loads(pickle.dumps(error)), copy.copy(error)):  # noqa: S301 - our own bytes
        assert type(twin) is type(error)
        assert str(twin) == str(error)
        assert vars(twin) == vars(error)


def test_our_errors_are_python_s_too_where_python_has_one() -> None:
    assert issubclass(errors.InvalidInput, ValueError)
    assert issubclass(errors.UndefinedShuffle, ValueError)
    assert issubclass(errors.MissingPackage, ImportError)
    assert issubclass(errors.AlreadyNormalized, TypeError)


@pytest.mark.parametrize("status", range(400, 600))
def test_every_status_of_an_error_has_a_class_of_its_side(status: int) -> None:
    kind = errors.class_for(status)
    side = errors.RequestRefused if status < 500 else errors.ServiceFault
    assert issubclass(kind, side)
    assert isinstance(kind("", status=status, code="x"), Refusal)


@pytest.mark.parametrize("status", sorted(errors.BY_STATUS))
def test_where_nobody_says_only_what_may_pass_is_repeatable(status: int) -> None:
    error = errors.class_for(status)("", status=status, code="x")
    assert error.repeatable is error.retryable is (status in {408, 429, 502, 503, 504})
    for said in (True, False):
        assert (
            errors.class_for(status)("", status=status, code="x", retryable=said).repeatable is said
        )
