"""Bytes as base64 and back: strict, and by pybase64 where it is installed.

Standard alphabet with its padding, nothing else. pybase64 takes about 1 ms for
20 MB, the standard library 40.
"""

import binascii
from functools import cache
from types import ModuleType

from patchmill_client.errors import BadTensor


@cache
def _find_pybase64() -> ModuleType | None:
    try:
        import pybase64
    except ImportError:
        return None
    found: ModuleType = pybase64
    return found


def to_base64(data: bytes) -> str:
    """Base64 without line ends."""
    found = _find_pybase64()
    if found is None:
        return binascii.b2a_base64(data, newline=False).decode("ascii")
    text: str = found.b64encode_as_string(data)
    return text


def from_base64(text: str, at: str) -> bytes:
    """The bytes; raises BadTensor for any character too many, which vLLM would skip."""
    found = _find_pybase64()
    try:
        raw = text.encode("ascii")
        if found is None:
            return binascii.a2b_base64(raw, strict_mode=True)
        data: bytes = found.b64decode(raw, validate=True)
    except ValueError as error:
        raise BadTensor(at, f"not base64: {error}") from error
    return data
