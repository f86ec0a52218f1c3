"""Makes the corpus: pictures from a seed, whose sizes and entropy resemble real traffic.

    python -m traffic.making [--out loadtest/.corpus]

Sizes go from thumbnails to 12 megapixels, most in between; mostly JPEG, of several
qualities, some progressive, some turned by EXIF; screenshots as PNG; some WebP. Photographs
are noise with the spectrum of photographs (`benchmarks.pictures`): flat or white
pictures would flatter or punish a decoder. Beside them lies what the service must make of each.
"""

import argparse
import io
import json
import sys
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont

from benchmarks.pictures import photo
from traffic import corpus, reference

Pixels = NDArray[np.uint8]


def page(height: int, width: int, seed: int) -> Pixels:
    """(H, W, 3): a screenshot, lines of text and flat panels."""
    rng = np.random.default_rng(seed)
    image = Image.new("RGB", (width, height), (250, 250, 252))
    draw = ImageDraw.Draw(image)
    font = ImageFont.load_default(16)
    draw.rectangle((0, 0, width // 5, height), fill=(32, 40, 56))
    for top in range(12, height - 20, 24):
        words = ["".join(map(chr, rng.integers(97, 123, rng.integers(2, 11)))) for _ in range(40)]
        draw.text((width // 5 + 16, top), " ".join(words), fill=(30, 30, 30), font=font)
        draw.text((12, top), words[0], fill=(200, 210, 230), font=font)
    return np.asarray(image)


def camera(height: int, width: int, seed: int) -> Pixels:
    """(H, W, 3): a large photograph from four mirrored quarters, in a quarter of the time."""
    quarter = photo(height // 2, width // 2, seed)
    half = np.concatenate([quarter, quarter[:, ::-1]], axis=1)
    return np.concatenate([half, half[::-1]])


def jpeg(quality: int, pixels: Pixels, **options: object) -> bytes:
    return _saved(pixels, "JPEG", quality=quality, **options)


def turned(quality: int, pixels: Pixels) -> bytes:
    """As a camera held upright writes it: EXIF orientation 6."""
    exif = Image.Exif()
    exif[0x0112] = 6
    return jpeg(quality, pixels, exif=exif)


def png(pixels: Pixels) -> bytes:
    return _saved(pixels, "PNG")


def webp(quality: int, pixels: Pixels) -> bytes:
    return _saved(pixels, "WEBP", quality=quality, method=2)


def _saved(pixels: Pixels, form: str, **options: object) -> bytes:
    out = io.BytesIO()
    Image.fromarray(pixels).save(out, form, **options)
    return out.getvalue()


@dataclass(frozen=True)
class Row:
    """`many` pictures of one sort, which together are `weight` percent of the traffic."""

    name: str
    weight: float
    many: int
    height: int
    width: int
    draw: Callable[[int, int, int], Pixels]
    encode: Callable[[Pixels], bytes]


PICTURES = (
    Row("icon.png", 4, 2, 128, 128, photo, png),
    Row("thumbnail.jpg", 8, 3, 240, 320, photo, partial(jpeg, 80)),
    Row("small.jpg", 14, 3, 480, 640, photo, partial(jpeg, 85)),
    Row("square.webp", 6, 2, 512, 512, photo, partial(webp, 80)),
    Row("web.jpg", 12, 3, 600, 800, photo, partial(jpeg, 80, progressive=True)),
    Row("web.webp", 6, 2, 768, 1024, photo, partial(webp, 80)),
    Row("frame.jpg", 16, 4, 720, 1280, photo, partial(jpeg, 90)),
    Row("generated.jpg", 10, 2, 1024, 1024, photo, partial(jpeg, 90)),
    Row("laptop.png", 10, 2, 900, 1440, page, png),
    Row("screen.png", 4, 1, 1080, 1920, page, png),
    Row("screen.jpg", 8, 2, 1080, 1920, photo, partial(jpeg, 90)),
    Row("camera.jpg", 2, 1, 3024, 4032, camera, partial(turned, 92)),
)
CHUNK = Row("chunk.jpg", 100, 3, 480, 854, photo, partial(jpeg, 85))
FRAMES = 4


def entries() -> Iterator[corpus.Entry]:
    """All of the corpus, the same at every call."""
    for number, row in enumerate(PICTURES):
        for which in range(row.many):
            yield _entry(row, which, [1000 * number + which])
    for which in range(CHUNK.many):
        yield _entry(CHUNK, which, [100_000 + FRAMES * which + frame for frame in range(FRAMES)])


def _entry(row: Row, which: int, seeds: list[int]) -> corpus.Entry:
    files = tuple(row.encode(row.draw(row.height, row.width, seed)) for seed in seeds)
    known = reference.answer(files)
    return corpus.Entry(
        name=f"{which}-{row.name}",
        weight=row.weight / row.many,
        height=known.height,
        width=known.width,
        tokens=known.tokens,
        digests=known.digests,
        files=files,
    )


def make(folder: Path) -> None:
    """Write the corpus, unless it is there already. The manifest comes last."""
    if corpus.is_current(folder):
        return
    folder.mkdir(parents=True, exist_ok=True)
    told = []
    for entry in entries():
        names = [f"{number}-{entry.name}" for number in range(len(entry.files))]
        for name, data in zip(names, entry.files, strict=True):
            (folder / name).write_bytes(data)
        told.append({**asdict(entry), "files": names})
    manifest = {"recipe": corpus.RECIPE, "entries": told}
    (folder / corpus.MANIFEST).write_text(json.dumps(manifest, indent=1) + "\n", "utf-8")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path(__file__).parents[1] / ".corpus")
    options = parser.parse_args()
    make(options.out)
    files = [each for each in options.out.iterdir() if each.name != corpus.MANIFEST]
    size_mb = sum(each.stat().st_size for each in files) / 1e6
    sys.stdout.write(f"{len(files)} files, {size_mb:.1f} MB in {options.out}\n")
