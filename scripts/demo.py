"""Starts the service on a free port, posts a picture, shows its patches, stops the service.

python scripts/demo.py [PICTURE]
"""

import os
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

import msgpack
import numpy as np

START_TIMEOUT_S = 180


def main(picture: Path) -> int:
    try:
        data = picture.read_bytes()
    except OSError as fault:
        sys.exit(f"{picture} cannot be read: {fault.strerror}")
    port = free_port()
    address = f"http://127.0.0.1:{port}"
    print(
        f"==> starting the service on {address} (the first start compiles its kernels: about 30 s)"
    )
    service = subprocess.Popen(
        [sys.executable, "-m", "service", "serve"],
        env={
            **{name: value for name, value in os.environ.items() if name[:10] != "PATCHMILL_"},
            "PATCHMILL_PORT": str(port),
            "PATCHMILL_DRAIN_DELAY_S": "0",
            "PATCHMILL_LOG_FORMAT": "text",
        },
    )
    try:
        wait_until_ready(service, address)
        print(f"==> posting {picture} ({len(data)} bytes) to {address}/preprocess")
        post(address, data)  # once unmeasured, so that the time below is a warm service's
        started_s = time.perf_counter()
        body = post(address, data)
        show(body, (time.perf_counter() - started_s) * 1e3)
    except urllib.error.HTTPError as refusal:
        print(f"refused with {refusal.code}: {refusal.read().decode()}", file=sys.stderr)
        return 1
    finally:
        service.terminate()
        service.wait()
    print("==> the service has stopped")
    return 0


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def wait_until_ready(service: "subprocess.Popen[bytes]", address: str) -> None:
    deadline_s = time.monotonic() + START_TIMEOUT_S
    while time.monotonic() < deadline_s:
        if service.poll() is not None:
            sys.exit(f"the service ended with code {service.returncode} before it was ready")
        try:
            with urllib.request.urlopen(f"{address}/health/ready", timeout=5):
                return
        except OSError:  # not listening yet, or 503 while the kernels compile
            time.sleep(0.1)
    sys.exit(f"the service was not ready after {START_TIMEOUT_S} s")


def post(address: str, data: bytes) -> bytes:
    headers = {"Content-Type": "application/octet-stream"}
    request = urllib.request.Request(f"{address}/preprocess", data, headers)
    with urllib.request.urlopen(request, timeout=60) as answer:
        body: bytes = answer.read()
        return body


def show(body: bytes, took_ms: float) -> None:
    answer = msgpack.unpackb(body)
    values = answer["pixel_values"]
    patches = np.frombuffer(values["data"], np.float32).reshape(values["shape"])
    item = answer["items"][0]
    print(f"    model        {answer['model']}")
    print(
        f"    picture      {item['source']['width']}x{item['source']['height']} "
        f"{item['source']['format']}"
    )
    print(f"    grid_thw     {item['grid_thw']}")
    print(f"    tokens       {item['num_tokens']}")
    print(f"    dtype        {values['dtype']}")
    print(f"    shape        {values['shape']}")
    print(f"    first values {patches[0, 0, 0, :6].tolist()}")
    print(f"    time         {took_ms:.1f} ms in all; stages in ms: {answer['timings_ms']}")


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1] if len(sys.argv) > 1 else "examples/picture.jpg")))
