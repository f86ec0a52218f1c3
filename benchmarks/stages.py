"""Where the time of one picture goes, and how it grows with the picture.

Each picture is decoded and written in this process, on one thread and on all,
beside Pillow's resize with the published style of kernel, in turn.
"""

import io
import os
import statistics
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
from PIL import Image

from benchmarks.kernels_peers import MEAN, STD, per_element_parallel
from benchmarks.pictures import jpeg
from kernels.dispatch import Engine
from kernels.tables import table
from service.buffers import Buffers
from service.codec.decode import decode
from service.codec.sniff import sniff
from service.plan import navit, profiles
from service.settings import load
from service.types import WHITE, ItemType, SixteenBit, Size

SIZES = ((480, 640), (720, 1280), (1080, 1920), (2048, 2048), (3000, 4000), (4000, 1400))


@dataclass(frozen=True)
class Stages:
    """Median milliseconds for one size; `share` is of the picture's work, on so many threads."""

    height: int
    width: int
    jpeg_bytes: int
    sniff_ms: float
    decode_ms: float
    patchify_1_ms: float
    patchify_all_ms: float
    memcpy_ms: float
    peer_decode_ms: float
    peer_patchify_ms: float

    @property
    def name(self) -> str:
        return f"{self.width}x{self.height}"


def run(engine: Engine, rounds: int) -> list[Stages]:
    return [_measured(engine, height, width, rounds) for height, width in SIZES]


def _measured(engine: Engine, height: int, width: int, rounds: int) -> Stages:
    data = jpeg(height, width, 1)
    limits = load({}).limits
    profile = profiles.load([profiles.BUILT_IN], "kimi-k2.5").default
    plan = navit.plan(Size(height, width), ItemType.IMAGE, 1, profile)
    resized = (plan.resized.height, plan.resized.width)
    buffers = Buffers(2**30)
    lut = table("float32", profile.mean, profile.std)
    out = np.zeros((plan.grid.h, plan.grid.w, 3, plan.patch_px, plan.patch_px), np.float32)
    copy = out.copy()
    header = sniff(data, limits)
    pixels = decode(data, header, WHITE, SixteenBit.COMPAT, buffers).array
    image = Image.open(io.BytesIO(data)).convert("RGB")
    threads = ThreadPoolExecutor(os.cpu_count() or 1)

    def all_threads() -> None:
        parts = engine.split(pixels, resized, lut, out, os.cpu_count() or 1)
        list(threads.map(lambda part: part(), parts))

    def peer() -> None:
        small = image.resize(resized[::-1], Image.Resampling.BICUBIC)
        flat = out.reshape(-1)
        per_element_parallel(np.asarray(small), plan.patch_px, plan.grid.w, MEAN, STD, flat)

    runs: dict[str, Callable[[], Any]] = {
        "sniff_ms": lambda: sniff(data, limits),
        "decode_ms": lambda: decode(data, header, WHITE, SixteenBit.COMPAT, buffers),
        "patchify_1_ms": lambda: engine.write_patches(pixels, resized, lut, out),
        "patchify_all_ms": all_threads,
        "memcpy_ms": lambda: np.copyto(out, copy),
        "peer_decode_ms": lambda: np.asarray(Image.open(io.BytesIO(data)).convert("RGB")),
        "peer_patchify_ms": peer,
    }
    times: dict[str, list[float]] = {name: [] for name in runs}
    for number in range(rounds + 1):
        for name, each in runs.items():
            begun_s = time.perf_counter()
            each()
            if number:  # the first round warms
                times[name].append((time.perf_counter() - begun_s) * 1e3)
    threads.shutdown()
    medians = {name: statistics.median(spent) for name, spent in times.items()}
    return Stages(height, width, len(data), **medians)
