"""Coverage-guided fuzz of everything that parses a stranger's bytes.

    python -m tests.hostile.fuzz [--seconds 60] [--found FOLDER]

Inputs are mutated; one that makes the parser take a way (from one line to another) that
none took before joins the corpus. A target may raise our own faults and nothing else, and
may not take long. What breaks that is written to the folder: it becomes a row of a test.
"""

import argparse
import importlib
import json
import random
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import msgpack

from service.codec.sniff import sniff, sniff_head
from service.errors import PatchmillError
from service.http import json_body, msgpack_body, multipart_body
from service.types import Dtype, Grid
from service.wire.pack import pack
from tests.codec.makers import LIMITS
from tests.codec.test_mutations import SEEDS, mutated
from tests.wire.test_pack import joined, patches

Target = tuple[Callable[[bytes], object], list[bytes], str]
"""What is run, what it is first run with, and which files' ways count."""
MAX_SECONDS_AN_INPUT = 1.0
MAX_BYTES = 1 << 16
FORM = (
    b'--b\r\nContent-Disposition: form-data; name="images"; filename="a"\r\n'
    b"Content-Type: image/png\r\n\r\nxyz\r\n--b\r\n"
    b'Content-Disposition: form-data; name="dtype"\r\n\r\nuint8\r\n--b--\r\n'
)
ITEMS = [{"type": "image", "data": b"abc"}, {"type": "video_chunk", "frames": [b"abc", b""]}]
JSON = {
    "items": [
        {"type": "image", "data": "YWJj"},
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,YWJj", "detail": "a"}},
        {"type": "video_chunk", "frames": ["YW Jj", "data:;base64,"]},
    ],
    "model": "kimi-k3",
}


def _sniff(data: bytes) -> None:
    try:
        sniff_head(data)
    finally:
        sniff(data, LIMITS)


def _client_target() -> Target:
    """What the client makes of an answer: a batch whose tensor it can see, or its own fault.

    The client is a distribution of its own, which is not installed here.
    """
    sys.path.append(str(Path(__file__).parents[2] / "client"))
    package = importlib.import_module("patchmill_client")
    received = importlib.import_module("patchmill_client.batch").received
    body_reader = importlib.import_module("patchmill_client.buffer").BodyReader

    def run(data: bytes) -> None:
        reader = body_reader(None, 1 << 28, len(data))
        try:
            for start in range(0, len(data), 1 << 12):
                reader.feed(data[start : start + (1 << 12)])
            batch = received(reader.finish(), None)
        except package.PatchmillError:
            return
        assert batch.numpy().nbytes == batch.data.nbytes <= len(data)

    grids = [Grid(1, 2, 2), Grid(1, 4, 2)]
    seeds = [joined(pack(patches(dtype, grids), {})) for dtype in Dtype]
    return run, seeds, "patchmill_client/"


def _multipart(data: bytes) -> None:
    """In two pieces, whose border is a byte of the input itself."""
    parser = multipart_body.Parser("b", LIMITS)
    at = data[0] if data else 0
    for piece in (data[:at], data[at:]):
        if piece:
            parser.feed(piece)
    parser.finish()


TARGETS: dict[str, Target] = {
    "sniff": (_sniff, [data for seeds in SEEDS.values() for data in seeds[:3]], "service/codec/"),
    "json": (
        lambda data: json_body.parse(data, LIMITS),
        [json.dumps(JSON).encode()],
        "service/http/",
    ),
    "msgpack": (
        lambda data: msgpack_body.parse(data, LIMITS),
        [msgpack.packb({"items": ITEMS, "dtype": "uint8"})],
        "service/http/",
    ),
    "multipart": (_multipart, [FORM], "multipart"),
    "client": _client_target(),
}


class Ways:
    """Which (file, line, next line) have been taken, of the files that matter."""

    def __init__(self, where: str) -> None:
        self._where = where
        self.known: set[tuple[str, int, int]] = set()
        self.grew = False

    def new_in(self, run: Callable[[], object]) -> bool:
        """Whether the call takes a way that none took before."""
        before = len(self.known)
        sys.settrace(self._enter)
        try:
            run()
        finally:
            sys.settrace(None)
            self.grew = len(self.known) > before
        return self.grew

    def _enter(self, frame: FrameType, _event: str, _value: Any) -> Any:
        if self._where not in frame.f_code.co_filename:
            return None
        name, last = frame.f_code.co_filename, frame.f_lineno

        def line(frame: FrameType, event: str, _value: Any) -> Any:
            nonlocal last
            if event == "line":
                self.known.add((name, last, frame.f_lineno))
                last = frame.f_lineno
            return line

        return line


def fuzz(target: Target, source: random.Random, inputs: int, ends_s: float) -> list[bytes]:
    """Run so many inputs, or until the time is over; the inputs that broke the promise."""
    run, seeds, where = target
    corpus, ways, found = list(seeds), Ways(where), list[bytes]()
    for number in range(inputs):
        if time.monotonic() > ends_s:
            break
        data = mutated(source.choice(corpus), source)[:MAX_BYTES] if number >= len(seeds) else (
            seeds[number]
        )  # fmt: skip
        begun_s = time.monotonic()
        try:
            ways.new_in(lambda data=data: run(data))
        except PatchmillError as fault:
            if not 400 <= fault.status < 500 or len(fault.detail) > 200:
                found.append(data)
        except Exception:  # noqa: BLE001 - this is what is looked for
            found.append(data)
        if ways.grew and 0 < len(data) < MAX_BYTES:
            corpus.append(data)
        if time.monotonic() - begun_s > MAX_SECONDS_AN_INPUT:
            found.append(data)
    print(f"{len(ways.known)} ways, a corpus of {len(corpus)}, {len(found)} found")
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--found", type=Path, default=Path("build/fuzz"))
    options = parser.parse_args()
    any_found = False
    for name, target in TARGETS.items():
        print(f"{name}: ", end="", flush=True)
        ends_s = time.monotonic() + options.seconds / len(TARGETS)
        for number, data in enumerate(fuzz(target, random.Random(time.time()), 1 << 40, ends_s)):
            options.found.mkdir(parents=True, exist_ok=True)
            (options.found / f"{name}-{number}").write_bytes(data)
            any_found = True
    return 1 if any_found else 0


if __name__ == "__main__":
    sys.exit(main())
