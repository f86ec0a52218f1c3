"""What the door lets in, what it turns away, and many at the door at once."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from kernels import reference
from kernels.dispatch import Choice, select
from kernels.tables import STORAGE, table

MEAN, STD = (0.5, 0.4, 0.3), (0.2, 0.3, 0.4)
TABLE = table("float32", MEAN, STD)
PIXELS = np.zeros((20, 30, 3), np.uint8)
OUT = np.zeros((2, 3, 3, 14, 14), np.float32)
FIXED = OUT.copy()
FIXED.flags.writeable = False
ASKEW = np.zeros(OUT.nbytes + 1, np.uint8)[1:].view(np.float32).reshape(OUT.shape)

# pixels, resized, table, out, and the words that tell what is wrong.
REFUSED = {
    "pixels of floats": (PIXELS.astype(np.float32), (20, 30), TABLE, OUT, "pixels are"),
    "grey pixels": (PIXELS[:, :, 0].copy(), (20, 30), TABLE, OUT, "pixels are"),
    "two channels": (PIXELS[:, :, :2].copy(), (20, 30), TABLE, OUT, "pixels are"),
    "no pixels": (PIXELS[:0], (20, 30), TABLE, OUT, "pixels are empty"),
    "pixels of a wider picture": (PIXELS[:, :20], (20, 20), TABLE, OUT, "not C contiguous"),
    "no height": (PIXELS, (0, 30), TABLE, OUT, "resized is"),
    "no width": (PIXELS, (20, 0), TABLE, OUT, "resized is"),
    "a table of doubles": (PIXELS, (20, 30), TABLE.astype(np.float64), OUT, "table is"),
    "a table across": (PIXELS, (20, 30), TABLE.T.copy(), OUT, "table is"),
    "a table of columns": (PIXELS, (20, 30), np.asfortranarray(TABLE), OUT, "table is not"),
    "another dtype": (PIXELS, (20, 30), TABLE, OUT.astype(np.uint16), "out is uint16"),
    "other byte order": (PIXELS, (20, 30), TABLE, OUT.astype(">f4"), "out is >f4"),
    "out in one row": (PIXELS, (20, 30), TABLE, OUT.reshape(6, 3, 14, 14), "out is"),
    "four channels out": (PIXELS, (20, 30), TABLE, np.zeros((2, 3, 4, 14, 14), "f4"), "out is"),
    "oblong patches": (PIXELS, (20, 30), TABLE, np.zeros((2, 3, 3, 14, 15), "f4"), "out is"),
    "out in pieces": (
        PIXELS,
        (20, 30),
        TABLE,
        np.zeros((4, 3, 3, 14, 14), "f4")[::2],
        "out is not",
    ),
    "out read-only": (PIXELS, (20, 30), TABLE, FIXED, "out is not"),
    "out askew": (PIXELS, (20, 30), TABLE, ASKEW, "out is not"),
    "too few rows": (PIXELS, (29, 30), TABLE, OUT, "out covers"),
    "too few columns": (PIXELS, (20, 43), TABLE, OUT, "out covers"),
}

CHOICES = [Choice.SIMD, Choice.PORTABLE, Choice.NUMPY]


@pytest.mark.parametrize("case", REFUSED.values(), ids=REFUSED)
@pytest.mark.parametrize("choice", CHOICES)
def test_a_wrong_array_is_refused_before_anything_is_written(choice, case):
    *arrays, out, words = case
    kept = out.copy()
    with pytest.raises(ValueError, match=words):
        select(choice).write_patches(*arrays, out)
    assert out.tobytes() == kept.tobytes()


@pytest.mark.parametrize("choice", CHOICES)
@pytest.mark.parametrize("dtype", STORAGE)
@pytest.mark.parametrize("channels", [3, 4])
def test_an_engine_resizes_and_then_patchifies(choice, dtype, channels):
    pixels = np.random.default_rng(1).integers(0, 256, (50, 40, channels), dtype=np.uint8)
    values = table(dtype, MEAN, STD)
    got, wanted = (np.zeros((2, 2, 3, 14, 14), values.dtype) for _ in range(2))
    select(choice).write_patches(pixels, (27, 20), values, got)
    reference.patchify(reference.resize(pixels, 27, 20), values, wanted)
    assert got.tobytes() == wanted.tobytes()


@pytest.mark.parametrize("choice", CHOICES)
@pytest.mark.parametrize("parts", [1, 2, 3, 7, 50])
@pytest.mark.parametrize("size", [(90, 100), (31, 170), (201, 40)])
def test_any_number_of_parts_write_what_one_would(choice, parts, size):
    pixels = np.random.default_rng(4).integers(0, 256, (*size, 4), dtype=np.uint8)
    got, wanted = (np.zeros((6, 7, 3, 14, 14), np.float32) for _ in range(2))
    engine = select(choice)
    engine.write_patches(pixels, (80, 90), TABLE, wanted)
    work = engine.split(pixels, (80, 90), TABLE, got, parts)
    assert 1 <= len(work) <= parts
    with ThreadPoolExecutor(4) as threads:
        list(threads.map(lambda part: part(), reversed(work)))
    assert got.tobytes() == wanted.tobytes()


def test_vector_kernels_are_split_as_often_as_asked_for_and_never_more_than_rows():
    engine = select(Choice.SIMD)
    if engine.name != "simd":
        pytest.skip(engine.reason)
    assert [len(engine.split(PIXELS, (20, 30), TABLE, OUT, n)) for n in (1, 2, 9)] == [1, 2, 2]


@pytest.mark.parametrize("choice", CHOICES)
def test_no_parts_are_refused(choice):
    with pytest.raises(ValueError, match="parts is 0"):
        select(choice).split(PIXELS, (20, 30), TABLE, OUT, 0)


@pytest.mark.parametrize("choice", CHOICES)
def test_sixteen_threads_at_once_write_what_one_would(choice):
    engine = select(choice)
    rng = np.random.default_rng(2)
    pictures = [
        rng.integers(0, 256, (90 + n, 130 - n, 3 + n % 2), dtype=np.uint8) for n in range(16)
    ]
    tables = [table(dtype, MEAN, STD) for dtype in STORAGE]

    def patches(n: int) -> bytes:
        values = tables[n % 4]
        out = np.zeros((7, 8, 3, 14, 14), values.dtype)
        engine.write_patches(pictures[n % 16], (80 + n % 16, 100), values, out)
        return out.tobytes()

    alone = [patches(n) for n in range(64)]
    with ThreadPoolExecutor(16) as threads:
        assert list(threads.map(patches, range(64))) == alone
