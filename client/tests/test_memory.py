"""A large answer costs its own size once: measured in a process that does nothing else."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.packer import fields, pack
from tests.peer import answer, chunked, peer

GRID = (1, 130, 132)
"""40 MB of float32."""

MEASURE = """
import asyncio, json, sys, tracemalloc
from pathlib import Path
from patchmill_client import AsyncClient, Client

url, kind, traced = sys.argv[1:]

async def fetch_async():
    async with AsyncClient(url) as client:
        await client.preprocess(b"small first")
        return start(), await client.preprocess(b"large")

def fetch():
    with Client(url) as client:
        client.preprocess(b"small first")
        return start(), client.preprocess(b"large")

def start():
    if traced == "traced":
        tracemalloc.start()
        return 0
    Path("/proc/self/clear_refs").write_text("5")  # the peak starts anew
    return resident("VmRSS")

def resident(name):
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(name))

before, batch = fetch() if kind == "sync" else asyncio.run(fetch_async())
peak = tracemalloc.get_traced_memory()[1] if traced == "traced" else resident("VmHWM") - before
values = batch.numpy()
print(json.dumps({"peak": peak, "data": values.nbytes, "sum": int(batch.data[::4096].sum())}))
"""


@pytest.mark.parametrize("measure", ["traced", "resident"])
@pytest.mark.parametrize("kind", ["sync", "async"])
@pytest.mark.parametrize("sent", ["whole", "chunked"])
def test_an_answer_of_40_mb_costs_one_buffer(kind: str, measure: str, sent: str) -> None:
    if measure == "resident" and not Path("/proc/self/clear_refs").exists():
        pytest.skip("this system does not tell the peak of a process")
    large = fields([GRID])
    step = answer(body=pack(large)) if sent == "whole" else chunked(pack(large), 1 << 16)
    with peer(answer(body=pack(fields())), step) as there:
        done = subprocess.run(
            [sys.executable, "-c", MEASURE, there.url, kind, measure],
            env={"PYTHONPATH": ":".join(sys.path)},
            capture_output=True,
            text=True,
            check=False,
        )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["data"] == len(large["pixel_values"]["data"]) > 40_000_000
    assert found["sum"] == sum(large["pixel_values"]["data"][::4096])
    print(f"{kind}, {measure}, {sent}: {found['peak'] / found['data']:.3f} buffers")
    assert found["peak"] < 1.25 * found["data"]
