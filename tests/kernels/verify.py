"""Compare an engine with Pillow and the twin on many random cases.

    python -m tests.kernels.verify --cases 20000 --guarded

With --guarded every buffer, the kernels' own among them, lies between two
pages that may not be touched; with --streamed all answers are written as large
ones are. Prints how many cases of which kind were equal,
or the first one that was not, and fails.
"""

import argparse
import faulthandler
import sys
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np

from kernels.dispatch import Choice, Engine, select
from tests.kernels.cases import Case, random_case
from tests.kernels.guard import End, guarded


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cases", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--guarded", action="store_true")
    parser.add_argument("--streamed", action="store_true")
    parser.add_argument("--kernel", type=Choice, default=Choice.AUTO)
    options = parser.parse_args()
    faulthandler.enable()
    engine = select(options.kernel)
    print(f"{engine.name} engine: {engine.reason}", flush=True)
    if options.streamed:
        stream_all()
    if options.guarded:
        guard_scratch()
    check = checked_between_guards if options.guarded else checked
    start = time.perf_counter()
    kinds: Counter[str] = Counter()
    with ThreadPoolExecutor(options.threads) as threads:
        seeds = range(options.seed, options.seed + options.cases)
        for done, kind in enumerate(threads.map(lambda seed: _verify(engine, seed, check), seeds)):
            if kind.startswith("DIFFERS"):
                print(kind)
                return 1
            kinds[kind] += 1
            if done % 1000 == 999:
                print(f"{done + 1} equal after {time.perf_counter() - start:.0f} s", flush=True)
    for kind, count in sorted(kinds.items()):
        print(f"{count:6} {kind}")
    print(f"{options.cases} cases equal")
    return 0


def _verify(engine: Engine, seed: int, check: Callable[[Engine, Case, int], bool]) -> str:
    rng = np.random.default_rng(seed)
    case = random_case(rng)
    if not check(engine, case, int(rng.integers(1, 5))):
        return f"DIFFERS: seed {seed}, {case}"
    return kind_of(case)


def checked(engine: Engine, case: Case, parts: int) -> bool:
    """Are the bytes those of the definition, the work being split?"""
    out = case.junk()
    for part in engine.split(case.pixels, case.resized, case.values, out, parts):
        part()
    return out.tobytes() == case.wanted()


def checked_between_guards(engine: Engine, case: Case, parts: int) -> bool:
    """The same with the arrays at either end of their pages."""
    wanted = case.wanted()
    for end in End:
        pixels, values, out = (
            guarded(array, end) for array in (case.pixels, case.values, case.junk())
        )
        fenced = replace(case, pixels=pixels, values=values)
        for part in engine.split(fenced.pixels, fenced.resized, fenced.values, out, parts):
            part()
        if out.tobytes() != wanted:
            return False
    return True


def stream_all() -> None:
    """Have answers of all sizes go past the caches, not the large ones alone."""
    from kernels import fast  # noqa: PLC0415 - only where numba works

    fast.STREAMED_BYTES = 0


def guard_scratch() -> None:
    """Have the kernels' own buffers guarded as well: the weights and the scratch."""
    from kernels import fast  # noqa: PLC0415 - only where numba works

    planned = fast.plan_axis

    def plan_axis(*arguments: object) -> object:
        axis = planned(*arguments)
        starts, factors = (guarded(array, End.LAST) for array in (axis.starts, axis.factors))
        return replace(axis, starts=starts, factors=factors)

    fast.plan_axis = plan_axis
    fast._aligned = lambda size: guarded(np.full(size, 0x5A, np.uint8), End.LAST)


def kind_of(case: Case) -> str:
    """Which passes the case takes, and in which order."""
    before, after = case.pixels.shape[:2], case.resized
    lost_h, lost_w = before[0] - after[0], before[1] - after[1]
    if lost_h == 0 or lost_w == 0:
        return "no pass" if lost_h == lost_w else "one pass"
    return "vertical first" if lost_h > 0 and lost_h > 2 * lost_w else "horizontal first"


if __name__ == "__main__":
    sys.exit(main())
