"""Time the kernels beside their peers: a table of ratios against gate and aim.

    python -m benchmarks.kernels [--rounds 9] [--json FILE]

Each row runs its two sides in turn, for so many rounds, and tells the median of
the rounds' ratios with their quartiles, and each side's median. Ratios of one
run on one machine can be compared; milliseconds of two machines cannot.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

THREADS = 2
os.environ.setdefault("NUMBA_NUM_THREADS", str(THREADS))
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")  # or the peer's threads spin in our turn

import numpy as np  # noqa: E402
from PIL import Image  # noqa: E402

from benchmarks.kernels_peers import (  # noqa: E402
    MEAN,
    STD,
    numpy_style,
    per_element,
    per_element_parallel,
)
from benchmarks.pictures import photo  # noqa: E402
from kernels.dispatch import select  # noqa: E402
from kernels.tables import table  # noqa: E402

PATCH, MERGE = 14, 2
SQUARE, RESIZED = (2048, 2048), (1795, 1795)  # as the kimi-k2.5 profile plans it
FRAME = (720, 1280)
NORMALISATION = ((0.5, 0.5, 0.5), (0.5, 0.5, 0.5))
CLIP = ((0.48145466, 0.4578275, 0.40821073), (0.26862954, 0.26130258, 0.27577711))


@dataclass(frozen=True)
class Row:
    """Two sides, and what their ratio is to be; `gate` and `aim` of 0 are not asked for."""

    name: str
    peer: Callable[[], Any]
    ours: Callable[[], Any]
    gate: float = 0.0
    aim: float = 0.0
    inverse: bool = False
    """The ratio is our time by the peer's, and is to be low."""


@dataclass(frozen=True)
class Result:
    name: str
    peer_ms: float
    ours_ms: float
    ratio: float
    quartiles: tuple[float, float]
    gate: float
    aim: float
    inverse: bool

    def verdict(self) -> str:
        if not self.gate:
            return ""
        good = [self.ratio <= x if self.inverse else self.ratio >= x for x in (self.gate, self.aim)]
        return "aim met" if good[1] else "gate met" if good[0] else "GATE MISSED"


def rgbx(height: int, width: int, seed: int) -> np.ndarray:
    """(H, W, 4), as the decoder gives it."""
    pixels = np.zeros((height, width, 4), np.uint8)
    pixels[:, :, :3] = photo(height, width, seed)
    return pixels


def grid_of(size: tuple[int, int]) -> tuple[int, int]:
    height, width = (-(-side // (PATCH * MERGE)) * MERGE for side in size)
    return height, width


def rows() -> list[Row]:
    """The table; every buffer is made and touched before the clock starts."""
    engine = select()
    print(f"{engine.name} engine: {engine.reason}")
    threads = ThreadPoolExecutor(THREADS)

    def ours(pixels, size, dtype="float32", parts=1, constants=NORMALISATION):
        values = table(dtype, *constants)
        out = np.zeros((*grid_of(size), 3, PATCH, PATCH), values.dtype)

        def run():
            if parts == 1:
                engine.write_patches(pixels, size, values, out)
            else:
                work = engine.split(pixels, size, values, out, parts)
                list(threads.map(lambda part: part(), work))

        return run

    def peer(image, size, kernel):
        grid = grid_of(size)
        out = np.zeros(grid[0] * grid[1] * 3 * PATCH * PATCH, np.float32)

        def run():
            small = image if image.size == size[::-1] else resize(image, size)
            kernel(np.asarray(small), PATCH, grid[1], MEAN, STD, out)

        return run

    def each(runs):
        return lambda: list(threads.map(lambda run: run(), runs))

    def resize(image, size):
        return image.resize(size[::-1], Image.Resampling.BICUBIC)

    square, frame = rgbx(*SQUARE, 1), rgbx(*FRAME, 2)
    pictures = [rgbx(*SQUARE, seed) for seed in range(8)]
    image, *images = (
        Image.fromarray(np.ascontiguousarray(pixels[:, :, :3])) for pixels in (square, *pictures)
    )
    still = np.ascontiguousarray(frame[:, :, :3])
    still_out = np.zeros((*grid_of(FRAME), 3, PATCH, PATCH), np.float32)
    filled = still_out.copy()
    grid = grid_of(RESIZED)
    pillow_b = peer(image, RESIZED, per_element_parallel)

    def b_without_resize():
        per_element(still, PATCH, grid_of(FRAME)[1], MEAN, STD, filled.reshape(-1))

    def pillow_a():
        return numpy_style(np.asarray(resize(image, RESIZED)), grid, PATCH)

    def memcpy():
        np.copyto(still_out, filled)

    still_ours = ours(frame, FRAME)
    one_thread = ours(square, RESIZED)
    eight = [ours(pixels, RESIZED) for pixels in pictures]
    return [
        Row(
            "2048x2048 float32: Pillow + (b), 2 threads",
            pillow_b,
            ours(square, RESIZED, parts=2),
            14,
            22,
        ),
        Row(
            "8 x 2048x2048 float32: Pillow + (b), 2 threads",
            each([peer(each_image, RESIZED, per_element) for each_image in images]),
            each(eight),
            14,
            22,
        ),
        Row("1280x720 float32, no resize: (b), 1 thread", b_without_resize, still_ours, 25, 45),
        Row(
            "2048x2048 uint8: Pillow's resize alone, 1 thread",
            lambda: resize(image, RESIZED),
            ours(square, RESIZED, "uint8"),
            3.0,
            4.5,
        ),
        Row("1280x720 float32, no resize: memcpy (time)", memcpy, still_ours, 2.2, 1.4, True),
        Row("2048x2048 float32: Pillow + (a), 1 thread", pillow_a, one_thread),
        Row("2048x2048 float32: the same on 2 threads", one_thread, ours(square, RESIZED, parts=2)),
        Row(
            "2048x2048 float16: float32",
            one_thread,
            ours(square, RESIZED, "float16"),
        ),
        Row(
            "2048x2048 float32, looked up (CLIP): formula",
            one_thread,
            ours(square, RESIZED, constants=CLIP),
        ),
        Row(
            "2048x2048 float32 of RGB: of RGBX",
            one_thread,
            ours(np.ascontiguousarray(square[:, :, :3]), RESIZED),
        ),
    ]


def measured(row: Row, rounds: int) -> Result:
    times: dict[str, list[float]] = {"peer": [], "ours": []}
    for n in range(rounds + 1):
        for side, run in (("peer", row.peer), ("ours", row.ours)):
            start = time.perf_counter()
            run()
            if n > 0:  # the first round warms
                times[side].append((time.perf_counter() - start) * 1e3)
    ratios = [p / o for p, o in zip(times["peer"], times["ours"], strict=True)]
    if row.inverse:
        ratios = [1 / ratio for ratio in ratios]
    low, middle, high = statistics.quantiles(ratios, n=4)
    medians = (statistics.median(times[side]) for side in ("peer", "ours"))
    return Result(row.name, *medians, middle, (low, high), row.gate, row.aim, row.inverse)


def second_process() -> list[dict[str, Any]]:
    """What a process compiles after another has: the second of two, in a cache of their own."""
    script = (
        "import json, time; start = time.perf_counter()\n"
        "from kernels.dispatch import Choice; from kernels.warm import warm\n"
        "report = warm(Choice.AUTO, lambda _: None)\n"
        "print(json.dumps({'compiled': report.compiled, 'from_cache': report.from_cache,"
        " 'seconds': round(time.perf_counter() - start, 2)}))"
    )
    import tempfile  # noqa: PLC0415

    with tempfile.TemporaryDirectory() as folder:
        environment = os.environ | {"NUMBA_CACHE_DIR": folder}
        command = [sys.executable, "-c", script]
        told = []
        for _ in range(2):
            done = subprocess.run(
                command, env=environment, capture_output=True, text=True, check=True
            )
            told.append(json.loads(done.stdout))
        return told


def run(rounds: int, table: list[Row]) -> list[Result]:
    """Measure and print every row of a table."""
    results = []
    print(f"{'':50} {'peer ms':>9} {'ours ms':>9} {'ratio':>7} {'quartiles':>13}  gate   aim")
    for row in table:
        result = measured(row, rounds)
        results.append(result)
        spread = f"{result.quartiles[0]:.2f}–{result.quartiles[1]:.2f}"
        asked = f"{row.gate:5g} {row.aim:5g}  {result.verdict()}" if row.gate else ""
        print(
            f"{row.name:50} {result.peer_ms:9.2f} {result.ours_ms:9.2f} {result.ratio:7.2f}"
            f" {spread:>13}  {asked}",
            flush=True,
        )
    return results


def processes() -> list[dict[str, Any]]:
    """What the first and the second process of an empty cache compile, shown."""
    told = second_process()
    for name, each in zip(("first", "second"), told, strict=True):
        print(f"{name} process: {each['compiled']} compiled, ready after {each['seconds']} s")
    return told


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    results = [asdict(result) for result in run(options.rounds, rows())]
    told = {"rows": results, "processes": processes()}
    if options.json:
        options.json.write_text(json.dumps(told, indent=2) + "\n")


if __name__ == "__main__":
    main()
