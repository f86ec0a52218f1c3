"""The pixel shuffle beside a plain clone and the forms that came before it; needs torch.

    python -m benchmarks.shuffle [--rounds 9] [--device cpu] [--json FILE]

Every way runs in turn, for so many rounds; told are medians of the rounds'
ratios. Every way allocates its answer, as the clone does, so all pay for fresh
pages alike; on a CPU that is most of the time, unless THP_MEM_ALLOC_ENABLE=1
lets torch ask for huge ones. Bytes and launches are counted by torch's
profiler, once.
"""

import argparse
import json
import os
import statistics
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")  # or waiting threads spin in the next turn
os.environ.setdefault("KINETO_LOG_LEVEL", "99")  # the profiler tells each start and stop

import torch
from patchmill_client.pixel_shuffle import pixel_shuffle, pixel_shuffle_packed

IMAGES, HIDDEN, PATCH = (1, 8, 64), 1280, 16
GRIDS = {  # tokens: two grids of patches with so many; images of a packed sequence alternate
    256: ((32, 32), (16, 64)),
    1024: ((64, 64), (32, 128)),
    3328: ((104, 128), (128, 104)),
}
DTYPES = (torch.float32, torch.bfloat16)
PEAK = 3
"""Tensors of the input's size alive at once, at most: input, a step, the answer."""
RATIOS = (
    ("shuffle/clone", "shuffle", "clone"),
    ("earlier/shuffle", "earlier", "shuffle"),
    ("packed/clone", "packed", "clone"),
    ("split/packed", "split", "packed"),
    ("gather/packed", "gather", "packed"),
)
Way = Callable[[], torch.Tensor]


@dataclass(frozen=True)
class Result:
    """One case: milliseconds and ratios are medians, bytes are read and written."""

    images: int
    tokens: int
    dtype: str
    input_bytes: int
    milliseconds: dict[str, float]
    ratios: dict[str, float]
    launches: dict[str, int]
    moved_bytes: dict[str, int]


def earlier(x: torch.Tensor) -> torch.Tensor:
    """(n, h, w, c) in two steps, each laid out in memory."""
    n, h, w, c = x.shape
    x = x.view(n, h, w // 2, 2 * c).permute(0, 2, 1, 3).contiguous()
    return x.view(n, w // 2, h // 2, 4 * c).permute(0, 2, 1, 3).contiguous()


def split(x: torch.Tensor, grids: list[tuple[int, int]]) -> torch.Tensor:
    """(B, L, c): cut by image, shuffle each with one copy, join."""
    parts = torch.split(x, [h * w for h, w in grids], dim=1)
    folded = [
        pixel_shuffle(part.unflatten(1, grid)).flatten(1, 2)
        for part, grid in zip(parts, grids, strict=True)
    ]
    return torch.cat(folded, dim=1)


def index_of(grids: list[tuple[int, int]]) -> torch.Tensor:
    """(L,): for each patch of the answer its place in the input."""
    places = torch.arange(sum(h * w for h, w in grids))
    return split(places.view(1, -1, 1), grids).flatten()


def gather(x: torch.Tensor, index: torch.Tensor) -> torch.Tensor:
    """(B, L, c) through an index that was made before."""
    return x.index_select(1, index).view(x.shape[0], -1, 4 * x.shape[2])


def ways(x: torch.Tensor, grids: list[tuple[int, int]]) -> dict[str, Way]:
    """By name; `shuffle` and `earlier` take images of one size, the packed ones alternate."""
    equal = x.view(len(grids), *grids[0], x.shape[2])
    sizes = [(h * PATCH, w * PATCH) for h, w in grids]
    index = index_of(grids).to(x.device)
    return {
        "clone": x.clone,
        "shuffle": lambda: pixel_shuffle(equal),
        "earlier": lambda: earlier(equal),
        "packed": lambda: pixel_shuffle_packed(x, sizes, patch_size=PATCH),
        "split": lambda: split(x, grids),
        "gather": lambda: gather(x, index),
    }


def check() -> None:
    """All forms give the same tokens."""
    grids = [GRIDS[256][n % 2] for n in range(3)]
    x = torch.arange(3 * 1024 * 2).view(1, -1, 2)
    made = {name: way() for name, way in ways(x, grids).items()}
    assert torch.equal(made["shuffle"], made["earlier"])  # noqa: S101
    assert torch.equal(made["packed"], made["split"])  # noqa: S101
    assert torch.equal(made["packed"], made["gather"])  # noqa: S101


def measured(images: int, tokens: int, dtype: torch.dtype, device: str, rounds: int) -> Result:
    grids = [GRIDS[tokens][n % 2] for n in range(images)]
    x = torch.ones(1, images * tokens * 4, HIDDEN, dtype=dtype, device=device)
    each = ways(x, grids)
    times: dict[str, list[float]] = {name: [] for name in each}
    for n in range(rounds + 1):
        for name, way in each.items():
            took_ms = timed(way, device)
            if n > 0:  # the first round warms
                times[name].append(took_ms)
    counts = {name: counted(way, device) for name, way in each.items()}
    return Result(
        images,
        tokens,
        str(dtype).removeprefix("torch."),
        x.nbytes,
        {name: statistics.median(values) for name, values in times.items()},
        {
            ratio: statistics.median(a / b for a, b in zip(times[over], times[under], strict=True))
            for ratio, over, under in RATIOS
        },
        {name: launches for name, (launches, _) in counts.items()},
        {name: moved for name, (_, moved) in counts.items()},
    )


def timed(way: Way, device: str) -> float:
    """Milliseconds until the answer is there; its memory goes after the clock has stopped."""
    if device == "cuda":
        torch.cuda.synchronize()
    start = time.perf_counter()
    kept = way()
    if device == "cuda":
        torch.cuda.synchronize()
    took_ms = (time.perf_counter() - start) * 1e3
    del kept
    return took_ms


def counted(way: Way, device: str) -> tuple[int, int]:
    """Launches (on a CPU: passes over memory), and bytes: what was allocated, read and written."""
    activities = [torch.profiler.ProfilerActivity.CPU]
    if device == "cuda":
        activities.append(torch.profiler.ProfilerActivity.CUDA)
    with torch.profiler.profile(activities=activities, profile_memory=True) as profile:
        way()
        if device == "cuda":
            torch.cuda.synchronize()
    events: list[Any] = list(profile.events())
    if device == "cuda":
        launches = sum(event.device_type == torch.autograd.DeviceType.CUDA for event in events)
        allocated = sum(max(0, event.self_device_memory_usage) for event in events)
    else:
        passes = ("aten::copy_", "aten::cat", "aten::index_select")
        launches = sum(event.name in passes for event in events)
        allocated = sum(max(0, event.self_cpu_memory_usage) for event in events)
    return launches, 2 * allocated


def room_bytes(device: str) -> int:
    """Memory that is free now."""
    if device == "cuda":
        return torch.cuda.mem_get_info()[0]
    lines = Path("/proc/meminfo").read_text().splitlines()
    [free] = [line.split()[1] for line in lines if line.startswith("MemAvailable")]
    return int(free) * 1024


def run(device: str, rounds: int) -> Iterator[Result]:
    check()
    print(f"{'images':>6} {'tokens':>6} {'dtype':8} {'clone ms':>9}", end="")
    print("".join(f"{ratio:>17}" for ratio, _, _ in RATIOS), " launches, input's bytes moved")
    for images in IMAGES:
        for tokens in GRIDS:
            for dtype in DTYPES:
                size_bytes = images * tokens * 4 * HIDDEN * dtype.itemsize
                if PEAK * size_bytes > 0.8 * room_bytes(device):
                    print(f"{images:6} {tokens:6} {dtype} left out: {size_bytes / 1e9:.1f} GB")
                    continue
                result = measured(images, tokens, dtype, device, rounds)
                yield result
                print(line(result), flush=True)


def line(result: Result) -> str:
    counts = " ".join(
        f"{name} {launches}, {result.moved_bytes[name] / result.input_bytes:.1f};"
        for name, launches in result.launches.items()
    )
    return (
        f"{result.images:6} {result.tokens:6} {result.dtype:8} {result.milliseconds['clone']:9.2f}"
        + "".join(f"{ratio:17.2f}" for ratio in result.ratios.values())
        + f"  {counts}"
    )


def about(device: str) -> str:
    if device == "cuda":
        return f"cuda: {torch.cuda.get_device_name()}"
    pages = "huge" if os.environ.get("THP_MEM_ALLOC_ENABLE") == "1" else "small"
    return f"cpu: {torch.get_num_threads()} threads, {pages} pages"


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--device", choices=("cpu", "cuda"))
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    warnings.filterwarnings("ignore", module="torch.profiler")
    found = ["cpu", "cuda"] if torch.cuda.is_available() else ["cpu"]
    told = {}
    for device in [options.device] if options.device else found:
        print(f"== {about(device)}, torch {torch.__version__}, hidden {HIDDEN}")
        told[device] = [asdict(result) for result in run(device, options.rounds)]
    if "cuda" not in told:
        print("no GPU was measured")
    if options.json:
        options.json.write_text(json.dumps(told, indent=2) + "\n")


if __name__ == "__main__":
    main()
