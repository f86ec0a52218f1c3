"""Plans a second of one core: from sizes, and from the first 64 KiB of files.

    python -m benchmarks.plan [--seconds 3]

One connection, one plan a request and 16 a request. The rate is by the service's own
CPU time, so that the generator's share is not in it.
"""

import argparse
import json
import statistics

import msgpack

from benchmarks import load
from benchmarks.pictures import jpeg
from benchmarks.service import Service, started

ROUNDS = 5
MANY = 16
HEAD_BYTES = 64 * 1024


def request(path: str, kind: str, body: bytes) -> bytes:
    plain = load.request(path, body)
    return plain.replace(b"application/octet-stream", kind.encode(), 1)


def requests() -> dict[str, tuple[int, bytes]]:
    """By name: plans in it, and the bytes of the request."""
    head = jpeg(2048, 2048, 1)[:HEAD_BYTES]
    heads = msgpack.packb({"items": [{"type": "image", "data": head}] * MANY, "head": True})
    size = {"width": 1280, "height": 720}
    return {
        "a size a request": (1, _sizes([size])),
        f"{MANY} sizes a request": (MANY, _sizes([size] * MANY)),
        "a head a request": (1, load.request("/plan?head=true", head)),
        f"{MANY} heads a request": (MANY, request("/plan", "application/msgpack", heads)),
    }


def _sizes(images: list[dict[str, int]]) -> bytes:
    return request("/plan", "application/json", json.dumps({"images": images}).encode())


def per_cpu_second(service: Service, plans: int, bytes_: bytes, seconds: float) -> float:
    begun_s = service.cpu_s()
    done = load.run(service.port, [bytes_], 1, seconds)
    return done.requests * plans / (service.cpu_s() - begun_s)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--seconds", type=float, default=2)
    options = parser.parse_args()
    with started(lambda port: ["service", "serve", "--port", str(port)]) as service:
        for name, (plans, bytes_) in requests().items():
            rates = [per_cpu_second(service, plans, bytes_, options.seconds) for _ in range(ROUNDS)]
            print(f"{name:22} {statistics.median(rates):8.0f} plans per CPU second")


if __name__ == "__main__":
    main()
