"""Pictures a second of one core, by size and format: what a deployment is sized by.

    python -m benchmarks.sizing [--seconds 2]

One picture a request, two connections. The rate is by the service's own CPU time, so
that neither the generator's share nor other work on the machine is in it.
"""

import argparse
import statistics

from benchmarks import load
from benchmarks.pictures import encoded, jpeg
from benchmarks.service import Service, started

SIZES = {
    "640x480": (480, 640),
    "1280x720": (720, 1280),
    "2048x2048": (2048, 2048),
    "4000x3000": (3000, 4000),
}
FORMATS = ("JPEG", "PNG", "WebP")
DTYPES = ("uint8", "bfloat16")
ROUNDS = 3
CONNECTIONS = 2


def pictures(format_: str, height: int, width: int) -> list[bytes]:
    """Two, so that none is a favourite of the caches."""
    if format_ == "JPEG":
        return [jpeg(height, width, seed) for seed in range(2)]
    return [encoded(format_, height, width, seed) for seed in range(2)]


def per_cpu_second(service: Service, requests: list[bytes], seconds: float) -> float:
    begun_s = service.cpu_s()
    done = load.run(service.port, requests, CONNECTIONS, seconds)
    return done.requests / (service.cpu_s() - begun_s)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--seconds", type=float, default=2)
    options = parser.parse_args()
    print("| pictures per CPU second |", " | ".join(SIZES), "|")
    with started(lambda port: ["service", "serve", "--port", str(port)]) as service:
        for format_ in FORMATS:
            files = {name: pictures(format_, *size) for name, size in SIZES.items()}
            for dtype in DTYPES:
                path = f"/preprocess?dtype={dtype}"
                cells = []
                for data in files.values():
                    asked = [load.request(path, each) for each in data]
                    rates = [per_cpu_second(service, asked, options.seconds) for _ in range(ROUNDS)]
                    cells.append(f"{statistics.median(rates):.3g}")
                print(f"| {format_} to {dtype} |", " | ".join(cells), "|", flush=True)


if __name__ == "__main__":
    main()
