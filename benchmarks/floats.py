"""The float resize beside its peers, and the other arrangements beside raster: rows for a table.

    python -m benchmarks.floats [--rounds 9]

The peers are Pillow's resize of mode "F", once for each channel, and torch's
bicubic interpolate with antialias, where torch is installed (`pip install
torch==2.13.0`); elsewhere its rows are left out, and that is said. Both stop at
resized floats and are given floats; ours begins at bytes, normalises and cuts.
"""

import argparse
import importlib.util
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from benchmarks.kernels import (
    CLIP,
    NORMALISATION,
    RESIZED,
    SQUARE,
    THREADS,
    Row,
    grid_of,
    rgbx,
    run,
)

import numpy as np  # isort: skip - after the variables that `benchmarks.kernels` sets
from PIL import Image  # isort: skip

from kernels.affine import affine
from kernels.dispatch import Engine, select
from kernels.tables import table

PATCH = 16
SIZES = {
    "smaller, 2048x2048 to 1792x1792": (SQUARE, (1792, 1792)),
    "smaller, 3000x4000 to 1552x2080": ((3000, 4000), (1552, 2080)),
    "rows alone, 1080x1920 to 1088x1920": ((1080, 1920), (1088, 1920)),
    "columns alone, 1088x1910 to 1088x1920": ((1088, 1910), (1088, 1920)),
    "larger, 480x640 to 512x672": ((480, 640), (512, 672)),
    "larger, 1080x1920 to 1120x1984": ((1080, 1920), (1120, 1984)),
    "twice as large, 480x640 to 1024x1376": ((480, 640), (1024, 1376)),
}
"""(height, width) of a picture and of what the profile makes of such: whole tokens of 32 pixels."""
UNCHANGED = (1088, 1920)
Run = Callable[[], Any]


def rows() -> list[Row]:
    """The table; every buffer is made and touched before the clock starts."""
    engine = select()
    threads = ThreadPoolExecutor(THREADS)
    table = []
    for name, (before, after) in SIZES.items():
        pixels = rgbx(*before, 1)
        one = _ours(engine, pixels, after, "float32")
        two = _ours(engine, pixels, after, "float32", threads)
        table.append(Row(f"{name}: Pillow mode F, 1 thread", _pillow(pixels, after), one, 3, 6))
        table += _torch_rows(name, pixels, after, one, two)
    pixels = rgbx(*SQUARE, 1)
    one, two = (_ours(engine, pixels, (1792, 1792), "float32", each) for each in (None, threads))
    table.append(Row("2048x2048 to 1792x1792 on 2 threads: on 1", one, two))
    half = _ours(engine, pixels, (1792, 1792), "float16")
    table.append(Row("the same as float16: as float32", one, half))
    kept = _ours(engine, rgbx(*UNCHANGED, 1), UNCHANGED, "float32")
    elements = np.zeros((3, *UNCHANGED), np.float32)
    copied = np.zeros_like(elements)
    name = "1088x1920 as it is, normalised and cut: memcpy of the answer"
    table.append(Row(name, lambda: np.copyto(copied, elements), kept))
    raster = _bytes(engine, pixels, "raster")
    for name in ("merge", "image"):
        made = _bytes(engine, pixels, name)
        table.append(Row(f"pillow-u8, 2048x2048 as {name}: as raster, 1 thread", raster, made))
    return table


def _ours(
    engine: Engine,
    pixels: np.ndarray,
    after: tuple[int, int],
    dtype: str,
    threads: ThreadPoolExecutor | None = None,
) -> Run:
    values = affine(dtype, *CLIP)
    out = _answer((after[0] // PATCH, after[1] // PATCH, 3, PATCH, PATCH), values.storage)
    parts = THREADS if threads else 1

    def write() -> None:
        work = engine.split_float(pixels, after, (0, 0), values, out, parts)
        list(threads.map(lambda part: part(), work)) if threads else work[0]()

    return write


def _answer(shape: tuple[int, ...], dtype: np.dtype[Any]) -> np.ndarray:
    """An answer's array, touched, that begins where the service's do: 64 divides its address."""
    length = int(np.prod(shape)) * dtype.itemsize
    room = np.ones(length + 63, np.uint8)
    begin = -room.ctypes.data % 64
    return room[begin : begin + length].view(dtype).reshape(shape)


def _bytes(engine: Engine, pixels: np.ndarray, name: str) -> Run:
    values = table("float32", *NORMALISATION)
    h, w = grid_of(RESIZED)
    shapes = {
        "raster": (h, w, 3, 14, 14),
        "merge": (h // 2, w // 2, 2, 2, 3, 14, 14),
        "image": (3, h * 14, w * 14),
    }
    out = np.zeros(shapes[name], np.float32)
    return lambda: engine.write_patches(pixels, RESIZED, values, out)


def _pillow(pixels: np.ndarray, after: tuple[int, int]) -> Run:
    planes = [Image.fromarray(pixels[:, :, c].astype(np.float32)) for c in range(3)]
    return lambda: [plane.resize(after[::-1], Image.Resampling.BICUBIC) for plane in planes]


def _torch_rows(
    name: str, pixels: np.ndarray, after: tuple[int, int], one: Run, two: Run
) -> list[Row]:
    if importlib.util.find_spec("torch") is None:
        return []
    import torch  # noqa: PLC0415 - an optional peer

    planes = torch.from_numpy(np.ascontiguousarray(pixels[:, :, :3].transpose(2, 0, 1)))
    floats = planes.float().unsqueeze(0)

    def interpolate(count: int) -> Run:
        def resize() -> None:
            torch.set_num_threads(count)
            torch.nn.functional.interpolate(
                floats, after, mode="bicubic", align_corners=False, antialias=True
            )

        return resize

    return [
        Row(f"{name}: torch interpolate, 1 thread", interpolate(1), one, 1, 2),
        Row(f"{name}: torch interpolate, 2 threads", interpolate(2), two, 1, 2),
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rounds", type=int, default=9)
    if importlib.util.find_spec("torch") is None:
        print("torch is not installed: its rows are left out")
    run(parser.parse_args().rounds, rows())


if __name__ == "__main__":
    main()
