"""Ours beside an installed vLLM's own loading and processor: file to float32 patches.

Both get the same JPEGs in turn, ours in this process with all threads and vLLM's in a child
with as many, and must give the same bytes. Which interpreter has vLLM is told by
BENCH_VLLM_PYTHON; without it, this one is asked.
"""

import hashlib
import importlib.util
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.pictures import jpeg
from kernels.dispatch import Engine
from kernels.tables import table
from service.buffers import Buffers
from service.codec.decode import decode
from service.codec.sniff import sniff
from service.plan import navit, profiles
from service.settings import load
from service.types import WHITE, ItemType, SixteenBit

CHILD = Path(__file__).parent / "vllm_process.py"
SIZES = ((720, 1280), (2048, 2048), (3000, 4000))


@dataclass(frozen=True)
class Row:
    """Median milliseconds of one picture, and how many times faster ours is."""

    name: str
    ours_ms: float
    vllm_ms: float
    ours_cpu_ms: float
    vllm_cpu_ms: float
    ratio: float
    cpu_ratio: float


def python() -> str | None:
    """The interpreter that has vLLM, or None."""
    given = os.environ.get("BENCH_VLLM_PYTHON")
    return given or (sys.executable if importlib.util.find_spec("vllm") else None)


def run(engine: Engine, rounds: int, interpreter: str) -> list[Row]:
    """Raises RuntimeError when the two do not give the same bytes."""
    threads = len(os.sched_getaffinity(0))
    child = subprocess.Popen(
        [interpreter, "-P", str(CHILD)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env={
            **{name: value for name, value in os.environ.items() if name != "PYTHONPATH"},
            "NUMBA_NUM_THREADS": str(threads),
        },
    )
    try:
        with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(threads) as pool:
            return [
                _row(engine, _picture(Path(folder), *size), rounds, child, pool) for size in SIZES
            ]
    finally:
        child.kill()
        child.wait()


def _row(
    engine: Engine,
    path: Path,
    rounds: int,
    child: "subprocess.Popen[str]",
    pool: ThreadPoolExecutor,
) -> Row:
    ours = _ours(engine, path, pool)
    spent: dict[str, list[tuple[float, float]]] = {"ours": [], "vllm": []}
    for number in range(rounds + 1):
        begun_s, begun_cpu_s = time.perf_counter(), time.process_time()
        patches = ours()
        mine = (time.perf_counter() - begun_s, time.process_time() - begun_cpu_s)
        theirs = _asked(child, path)
        if hashlib.sha256(patches.tobytes()).hexdigest() != theirs["sha256"]:
            raise RuntimeError(f"{path.name}: ours and vLLM's patches differ")
        if number:  # the first round warms
            spent["ours"].append((mine[0] * 1e3, mine[1] * 1e3))
            spent["vllm"].append((theirs["ms"], theirs["cpu_ms"]))
    wall, cpu = ([[each[i] for each in spent[who]] for who in ("ours", "vllm")] for i in (0, 1))
    row = Row(
        f"{path.stem} JPEG to float32 patches, {pool._max_workers} threads: vLLM's processor",
        *(statistics.median(each) for each in (*wall, *cpu)),
        ratio=statistics.median(b / a for a, b in zip(*wall, strict=True)),
        cpu_ratio=statistics.median(b / a for a, b in zip(*cpu, strict=True)),
    )
    print(
        f"{row.name}: {row.ours_ms:.2f} and {row.vllm_ms:.2f} ms, {row.ratio:.2f}x; "
        f"CPU {row.ours_cpu_ms:.2f} and {row.vllm_cpu_ms:.2f} ms, {row.cpu_ratio:.2f}x"
    )
    return row


def _picture(folder: Path, height: int, width: int) -> Path:
    path = folder / f"{width}x{height}.jpg"
    path.write_bytes(jpeg(height, width, 1))
    return path


def _asked(child: "subprocess.Popen[str]", path: Path) -> dict[str, Any]:
    if child.stdin is None or child.stdout is None:
        raise RuntimeError("the child was started without pipes")
    child.stdin.write(f"{path}\n")
    child.stdin.flush()
    line = child.stdout.readline()
    if not line:
        raise RuntimeError(f"vLLM's process ended with {child.wait()}")
    told: dict[str, Any] = json.loads(line)
    return told


def _ours(engine: Engine, path: Path, pool: ThreadPoolExecutor) -> Callable[[], Any]:
    """From the file's bytes to patches, as a request does it: sniff, plan, decode, write."""
    data, limits, buffers = path.read_bytes(), load({}).limits, Buffers(2**30)
    profile = profiles.load([profiles.BUILT_IN], "kimi-k2.5").default
    lut = table("float32", profile.mean, profile.std)

    def made() -> Any:
        header = sniff(data, limits)
        plan = navit.plan(header.size, ItemType.IMAGE, 1, profile)
        pixels = decode(data, header, WHITE, SixteenBit.COMPAT, buffers).array
        flat = buffers.take(plan.elements * 4).view(np.float32)
        out = flat.reshape(plan.grid.h, plan.grid.w, 3, plan.patch_px, plan.patch_px)
        resized = (plan.resized.height, plan.resized.width)
        parts = engine.split(pixels, resized, lut, out, pool._max_workers)
        list(pool.map(lambda part: part(), parts))
        return flat

    return made
