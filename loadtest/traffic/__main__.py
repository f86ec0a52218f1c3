"""One load test from start to end: a service of its own, the load, the verdict.

    python -m traffic [--shape steady] [--rate 16] [--seconds 60]

Starts the service on a free port, waits until it is ready, runs locust (for `headline` the
lighter generator of that module), stops the service. Results are written to loadtest/results;
the exit code is 0 when all gates hold.
"""

import argparse
import subprocess
import sys
from pathlib import Path

from benchmarks.service import Service, started
from traffic import headline, making, memory, shapes

HOME = Path(__file__).parents[1]
RESULTS = HOME / "results"
SOAK_GROWTH = 0.05
"""By which memory may grow in a soak, after its first sixth."""


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--shape", choices=[*shapes.SHAPES, "headline"], default="steady")
    parser.add_argument("--rate", type=float, default=16, help="requests a second at the base")
    parser.add_argument("--seconds", type=float, default=0, help="0: as long as the shape lasts")
    parser.add_argument("--rounds", type=int, default=4, help="of the headline")
    parser.add_argument("--results", type=Path, default=RESULTS)
    options = parser.parse_args()
    if options.shape == "headline":
        passed = headline.run(options.seconds or 15, options.rounds, options.results)
        return 0 if passed else 1
    making.make(HOME / ".corpus")
    options.results.mkdir(parents=True, exist_ok=True)
    with started(lambda port: ["service", "serve", "--port", str(port)]) as service:
        before_s = service.cpu_s()
        with memory.watched(service) as samples:
            code = locust(service, options)
        cpu_s = service.cpu_s() - before_s
    print(f"service: {cpu_s:.1f} s of CPU, memory at most {max(samples):.0f} MiB (PSS)")
    grown = growth(samples)
    print(f"memory at the end, against its first sixth: {grown:+.1%}")
    if options.shape == "soak" and grown > SOAK_GROWTH:
        print(f"MISSED: it grew by more than {SOAK_GROWTH:.0%}")
        code = 1
    print(f"charts in {options.results / 'report.html'}")
    return code


def locust(service: Service, options: argparse.Namespace) -> int:
    """Run it against the service; its exit code is the verdict."""
    arguments = {
        "--locustfile": HOME / "locustfile.py",
        "--host": f"http://127.0.0.1:{service.port}",
        "--html": options.results / "report.html",
        "--results": options.results,
        "--shape": options.shape,
        "--rate": options.rate,
        "--seconds": options.seconds,
        "--stop-timeout": 10,
        "--loglevel": "WARNING",
    }
    command = [sys.executable, "-m", "locust", "--headless", "--only-summary"]
    for name, value in arguments.items():
        command += [name, str(value)]
    return subprocess.run(command, check=False).returncode


def growth(samples: list[float]) -> float:
    """Of the mean of the last sixth against that of the second sixth."""
    sixth = max(1, len(samples) // 6)
    early, late = samples[sixth : 2 * sixth] or samples, samples[-sixth:]
    return sum(late) / len(late) / (sum(early) / len(early)) - 1


if __name__ == "__main__":
    sys.exit(main())
