"""All benchmarks in one run: tables on the screen, pictures and a JSON file in a folder.

    python -m benchmarks [--rounds 9] [--seconds 2] [--out benchmarks/results] [--peer vllm]

Peers run in the same minutes as ours, in turn. Ratios of one run can be
compared; milliseconds of two machines cannot. docs/performance.md shows a run.
"""

import argparse
import json
import os
import platform
import time
from dataclasses import asdict
from importlib.metadata import version
from pathlib import Path

from benchmarks import floats, kernels, plots, service, stages, vllm_peer
from kernels.dispatch import Choice, select

PACKAGES = ("patchmill", "numpy", "numba", "pillow", "simplejpeg", "fastapi", "uvicorn", "uvloop")


def machine() -> dict[str, object]:
    """What the numbers were measured on."""
    lines = Path("/proc/cpuinfo").read_text().splitlines() if Path("/proc/cpuinfo").exists() else []
    models = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return {
        "cpu": models[0] if models else platform.processor(),
        "cores": len(os.sched_getaffinity(0)),
        "python": platform.python_version(),
        "date": time.strftime("%Y-%m-%d"),
        "versions": {name: version(name) for name in PACKAGES},
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--seconds", type=float, default=2)
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results"))
    parser.add_argument("--peer", choices=["vllm"], help="an installed vLLM's processor as well")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    about = machine()
    print(f"{about['cpu']}, {about['cores']} cores, {about['date']}\n")
    print("== kernels")
    table = [*kernels.rows(), *floats.rows()]
    kernel_rows = [asdict(result) for result in kernels.run(options.rounds, table)]
    processes = kernels.processes()
    print("\n== stages of one picture, median ms")
    by_size = stages.run(select(Choice.AUTO), options.rounds)
    for each in by_size:
        values = {name: round(value, 2) for name, value in asdict(each).items()}
        print("  ".join(f"{name} {value}" for name, value in values.items()))
    vllm_rows: list[vllm_peer.Row] = []
    if options.peer:
        print("\n== vLLM's own processor")
        interpreter = vllm_peer.python()
        if interpreter:
            vllm_rows = vllm_peer.run(select(Choice.AUTO), options.rounds, interpreter)
        else:
            print("skipped: no vLLM is installed here, and BENCH_VLLM_PYTHON names none")
    print("\n== service")
    service_rows = [asdict(result) for result in service.run(options.seconds, options.rounds)]
    rates = service.rates(options.seconds)
    plots.ratios([*kernel_rows, *service_rows], options.out / "ratios.png")
    plots.stages(by_size, options.out / "stages.png")
    plots.scaling(by_size, options.out / "scaling.png")
    plots.load(rates, options.out / "load.png")
    told = {
        "machine": about,
        "kernels": kernel_rows,
        "processes": processes,
        "stages": [asdict(each) for each in by_size],
        "vllm": [asdict(each) for each in vllm_rows],
        "service": service_rows,
        "rates": rates,
    }
    (options.out / "results.json").write_text(json.dumps(told, indent=2) + "\n")
    print(f"\nwrote {options.out}/results.json and four pictures")


if __name__ == "__main__":
    main()
