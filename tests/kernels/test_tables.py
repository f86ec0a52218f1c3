"""The tables against scalar arithmetic of their own: struct and fractions, no NumPy."""

import struct
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernels.tables import STORAGE, table

CLIP = ((0.48145466, 0.4578275, 0.40821073), (0.26862954, 0.26130258, 0.27577711))
HALF = ((0.5, 0.5, 0.5), (0.5, 0.5, 0.5))
IMAGENET = ((0.485, 0.456, 0.406), (0.229, 0.224, 0.225))
PLAIN = ((0.0, 0.0, 0.0), (1.0, 1.0, 1.0))
# Byte 255 becomes 1 - mean, which lies halfway between two values of the type.
BFLOAT16_TIES = ((-1 / 256, -3 / 256, -5 / 256), (1.0, 1.0, 1.0))
FLOAT16_TIES = ((-1 / 2048, -3 / 2048, -5 / 2048), (1.0, 1.0, 1.0))
CONSTANTS = [CLIP, HALF, IMAGENET, PLAIN, BFLOAT16_TIES, FLOAT16_TIES]

REFUSED = [
    ("float64", *HALF),
    ("float32", (0.5, 0.5, 0.5), (0.5, 0.0, 0.5)),
    ("float32", (0.5, 0.5, 0.5), (0.5, -0.5, 0.5)),
    ("float32", (0.5, 0.5, 0.5), (0.5, float("nan"), 0.5)),
    ("float32", (0.5, float("nan"), 0.5), (0.5, 0.5, 0.5)),
    ("float32", (float("inf"), 0.5, 0.5), (0.5, 0.5, 0.5)),
    ("float16", (0.5, 0.5, 0.5), (1e-6, 0.5, 0.5)),
    ("bfloat16", (0.5, 0.5, 0.5), (1e-310, 0.5, 0.5)),
]

means = st.tuples(*[st.floats(0, 1)] * 3)
stds = st.tuples(*[st.floats(0.01, 2)] * 3)


def float32(value: float) -> float:
    return struct.unpack("<f", struct.pack("<f", value))[0]


def bfloat16_bits(value: float) -> int:
    """The nearer of the two neighbours by exact distance; the even one when both are near."""
    low = struct.unpack("<I", struct.pack("<f", value))[0] >> 16
    neighbours = {
        bits: abs(Fraction(struct.unpack("<f", struct.pack("<I", bits << 16))[0]) - Fraction(value))
        for bits in (low, low + 1)
    }
    return min(neighbours, key=lambda bits: (neighbours[bits], bits & 1))


def scalar(dtype: str, value: int, mean: float, std: float) -> bytes:
    """The stored bytes of one normalised value; Python's floats are doubles."""
    if dtype == "uint8":
        return bytes([value])
    normalised = float32(float32(float32(value / 255) - mean) * (1 / std))
    if dtype == "float16":
        return struct.pack("<e", normalised)
    if dtype == "bfloat16":
        return struct.pack("<H", bfloat16_bits(normalised))
    return struct.pack("<f", normalised)


def scalar_table(dtype: str, mean: tuple[float, ...], std: tuple[float, ...]) -> bytes:
    return b"".join(scalar(dtype, value, mean[c], std[c]) for value in range(256) for c in range(3))


@pytest.mark.parametrize("dtype", STORAGE)
@pytest.mark.parametrize(("mean", "std"), CONSTANTS)
def test_a_table_is_the_scalar_definition_for_all_values(dtype, mean, std):
    assert table(dtype, mean, std).tobytes() == scalar_table(dtype, mean, std)


@settings(deadline=None)
@given(dtype=st.sampled_from(sorted(STORAGE)), mean=means, std=stds)
def test_a_table_is_the_scalar_definition_for_any_mean_and_std(dtype, mean, std):
    assert table(dtype, mean, std).tobytes() == scalar_table(dtype, mean, std)


@pytest.mark.parametrize("dtype", STORAGE)
def test_a_table_has_the_storage_dtype_and_nobody_can_write_to_it(dtype):
    values = table(dtype, *CLIP)
    assert values.dtype == STORAGE[dtype]
    assert values.shape == (256, 3)
    assert values.flags.c_contiguous
    assert not values.flags.writeable


def test_the_uint8_table_ignores_mean_and_std():
    values = table("uint8", *CLIP)
    assert (values == np.arange(256)[:, np.newaxis]).all()


def test_constants_rounded_to_float32_first_would_give_another_table():
    mean, std = (tuple(float32(value) for value in values) for values in CLIP)
    assert table("float32", mean, std).tobytes() != table("float32", *CLIP).tobytes()


@pytest.mark.parametrize(("dtype", "mean", "std"), REFUSED)
def test_what_no_table_can_hold_is_refused(dtype, mean, std):
    with pytest.raises(ValueError, match=r"dtype is|std is|cannot hold"):
        table(dtype, mean, std)
