"""API keys: who may come in, known by hashes alone.

Keys come from a variable, or from a file that is read again when it changes, so
that a key can be given or taken without a restart. A key is random and long, so
one round of SHA-256 keeps it: guessing 128 bits is hopeless at any speed, and a
slow hash would be a lever for whoever sends wrong keys. Nothing here ever says
a key or its hash.
"""

import hashlib
import hmac
import logging
import re
import time
from pathlib import Path

MIN_CHARS = 16
HASHED = re.compile(r"sha256:([0-9a-fA-F]{64})")
KEY = re.compile(r"[A-Za-z0-9._~+/-]+=*")
"""What a bearer token can be (RFC 6750, section 2.1)."""
LOOK_AGAIN_S = 1.0

log = logging.getLogger("patchmill")


class KeysFault(ValueError):
    """The keys cannot be used; says which by number, never by value."""


class Keys:
    """`given` are keys or `sha256:` hashes, separated by commas; `file` has one a line.

    Raises KeysFault. Without both, nobody is asked for a key.
    """

    def __init__(self, given: str, file: Path | None) -> None:
        self._given = _digests(given.split(","), "PATCHMILL_API_KEYS") if given else ()
        self._file = file
        self._seen: tuple[int, int, int] | None = None
        self._looked_s = time.monotonic()
        self._from_file: tuple[bytes, ...] = ()
        if file is not None:
            self._seen = _state(file)
            self._from_file = _read(file)

    @property
    def wanted(self) -> bool:
        """Whether a key is asked for at all."""
        return bool(self._given) or self._file is not None

    def allow(self, authorization: str) -> bool:
        """Whether an `Authorization` header holds one of the keys.

        Takes the same time for every wrong key, however much of it is right.
        """
        scheme, _, token = authorization.partition(" ")
        if scheme.lower() != "bearer":
            return False
        self._look_again()
        digest = hashlib.sha256(token.strip().encode("utf-8", "surrogateescape")).digest()
        found = False
        for known in (*self._given, *self._from_file):
            found |= hmac.compare_digest(known, digest)
        return found

    def _look_again(self) -> None:
        """Read a file that has changed; one that cannot be used leaves the last keys in force."""
        now_s = time.monotonic()
        if self._file is None or now_s - self._looked_s < LOOK_AGAIN_S:
            return
        self._looked_s = now_s
        state = _state(self._file)
        if state == self._seen:
            return
        self._seen = state
        try:
            self._from_file = _read(self._file)
        except KeysFault as fault:
            log.error("the API keys stay as they were: %s", fault)
        else:
            log.info("%d API keys read again", len(self._from_file))


def _state(file: Path) -> tuple[int, int, int] | None:
    """What changes when the file does; None when there is no reading it."""
    try:
        found = file.stat()
    except OSError:
        return None
    return found.st_ino, found.st_mtime_ns, found.st_size


def _read(file: Path) -> tuple[bytes, ...]:
    source = "PATCHMILL_API_KEYS_FILE"
    try:
        text = file.read_text("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "not text"
        raise KeysFault(f"{source} cannot be read: {reason}") from None
    lines = [line.partition("#")[0].strip() for line in text.splitlines()]
    return _digests([line for line in lines if line], source)


def _digests(entries: list[str], source: str) -> tuple[bytes, ...]:
    if not entries:
        raise KeysFault(f"{source} holds no key")
    return tuple(
        _digest(entry.strip(), f"{source}, key {number}") for number, entry in enumerate(entries, 1)
    )


def _digest(entry: str, place: str) -> bytes:
    if hashed := HASHED.fullmatch(entry):
        return bytes.fromhex(hashed[1])
    if len(entry) < MIN_CHARS:
        raise KeysFault(f"{place}: shorter than {MIN_CHARS} characters, which can be guessed")
    if not KEY.fullmatch(entry):
        raise KeysFault(f"{place}: not a bearer token, and not sha256: and 64 hex digits")
    return hashlib.sha256(entry.encode()).digest()
