"""Requests, ready to send, each with what must come of it.

The corpus goes in, by kind a deck of posts with their weights comes out. All bodies are
made before the load begins, so that sending costs the generator little.
"""

import base64
import json
import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import accumulate

import msgpack

from traffic import hostile
from traffic.corpus import Corpus, Entry
from traffic.judge import Patches, Tokens, Wanted
from traffic.kinds import Kind

DTYPES = {"uint8": 70, "bfloat16": 15, "float32": 15}
"""Share of each element type, in percent: who sends pictures over a network sends bytes."""

BATCH = 4
BATCHES = 40
"""How many different batches there are."""

BOUNDARY = "patchmill-load-7f3a"


@dataclass(frozen=True)
class Post:
    """One request. `path` holds its query."""

    path: str
    content_type: str
    body: bytes
    wanted: Wanted


@dataclass(frozen=True)
class Deck:
    """Posts of one kind, drawn by weight."""

    posts: tuple[Post, ...]
    cumulative: tuple[float, ...] = field(repr=False)

    def draw(self, rng: random.Random) -> Post:
        return rng.choices(self.posts, cum_weights=self.cumulative)[0]


def decks(corpus: Corpus, seed: int) -> Mapping[Kind, Deck]:
    """A deck for each kind, the same for the same seed."""
    weighed = {
        Kind.SINGLE: _singles(corpus),
        Kind.BATCH: _batches(corpus, random.Random(seed)),
        Kind.PARTS: _parts(corpus),
        Kind.CHUNK: _chunks(corpus),
        Kind.PLAN: _plans(corpus, random.Random(seed)),
        Kind.HOSTILE: _hostile(corpus),
    }
    return {kind: _deck(list(posts)) for kind, posts in weighed.items()}


def _deck(weighed: list[tuple[float, Post]]) -> Deck:
    weights = accumulate(weight for weight, _ in weighed)
    return Deck(tuple(post for _, post in weighed), tuple(weights))


def _preprocess(
    entries: tuple[Entry, ...], weight: float, content_type: str, body: bytes
) -> Iterator[tuple[float, Post]]:
    """The same body once for each element type."""
    for dtype, share in DTYPES.items():
        wanted = Patches(tuple(each.digests[dtype] for each in entries))
        yield weight * share, Post(f"/preprocess?dtype={dtype}", content_type, body, wanted)


def _singles(corpus: Corpus) -> Iterator[tuple[float, Post]]:
    for entry in corpus.pictures:
        yield from _preprocess((entry,), entry.weight, "application/octet-stream", entry.files[0])


def _batches(corpus: Corpus, rng: random.Random) -> Iterator[tuple[float, Post]]:
    weights = [each.weight for each in corpus.pictures]
    for _ in range(BATCHES):
        entries = tuple(rng.choices(corpus.pictures, weights, k=BATCH))
        body = multipart([entry.files[0] for entry in entries])
        yield from _preprocess(entries, 1, multipart_type(), body)


def _parts(corpus: Corpus) -> Iterator[tuple[float, Post]]:
    for entry in corpus.pictures:
        # The type in the URL is a hint at most: the bytes decide the format.
        url = "data:image/jpeg;base64," + base64.b64encode(entry.files[0]).decode()
        items = [{"type": "image_url", "image_url": {"url": url}}]
        body = json.dumps({"items": items}).encode()
        yield from _preprocess((entry,), entry.weight, "application/json", body)


def _chunks(corpus: Corpus) -> Iterator[tuple[float, Post]]:
    for entry in corpus.chunks:
        body: bytes = msgpack.packb({"items": [{"type": "video_chunk", "frames": entry.files}]})
        yield from _preprocess((entry,), entry.weight, "application/msgpack", body)


def _plans(corpus: Corpus, rng: random.Random) -> Iterator[tuple[float, Post]]:
    for _ in range(BATCHES):
        entries = rng.choices(corpus.pictures, k=rng.randint(1, BATCH))
        images = [{"width": each.width, "height": each.height} for each in entries]
        body = json.dumps({"images": images}).encode()
        wanted = Tokens(tuple(each.tokens for each in entries))
        yield 1, Post("/plan", "application/json", body, wanted)


def _hostile(corpus: Corpus) -> Iterator[tuple[float, Post]]:
    innocent = max(corpus.pictures, key=lambda each: each.weight).files[0]
    for row in hostile.rows(innocent):
        yield 1, Post(row.path, row.content_type, row.body, row.refusal)


def multipart(files: list[bytes]) -> bytes:
    """A form with a field `images` for each file."""
    head = (
        f"--{BOUNDARY}\r\n"
        'Content-Disposition: form-data; name="images"; filename="picture"\r\n'
        "Content-Type: application/octet-stream\r\n\r\n"
    ).encode()
    parts = [head + data + b"\r\n" for data in files]
    return b"".join([*parts, f"--{BOUNDARY}--\r\n".encode()])


def multipart_type() -> str:
    return f"multipart/form-data; boundary={BOUNDARY}"
