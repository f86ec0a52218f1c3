"""The weights against Pillow, seen through pictures that are black but for one pixel."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from kernels.coefficients import PRECISION_BITS, plan_axis, vertical_first, weigh, window

SIZES = [
    (1, 1), (1, 7), (2, 1), (5, 5), (9, 8), (8, 9), (10, 5), (5, 10), (100, 33), (33, 100),
    (2048, 1795), (1795, 2048), (4000, 3), (4000, 1), (4000, 3999), (997, 991),
]  # fmt: skip

sides = st.integers(1, 120)


def weights_of(before: int, after: int) -> np.ndarray:
    """(after, before) integers: how much of each sample is in each of the output."""
    axis = plan_axis(weigh, before, after, 1)
    pairs = axis.factors.astype(np.int64)
    weights = (256 * pairs[:, :, :2] + pairs[:, :, 2:]).reshape(after, -1)
    full = np.zeros((after, before + weights.shape[1]), np.int64)
    for row, start, own in zip(full, axis.starts, weights, strict=True):
        row[start : start + len(own)] = own
    assert not full[:, before:].any()
    return full[:, :before]


def resampled(weights: np.ndarray, samples: np.ndarray) -> np.ndarray:
    sums = weights @ samples + (1 << PRECISION_BITS - 1)
    return np.clip(sums >> PRECISION_BITS, 0, 255)


def by_pillow(samples: np.ndarray, after: int) -> np.ndarray:
    """Columns of samples, each resampled as a row of a grey picture is."""
    image = Image.fromarray(np.ascontiguousarray(samples.T).astype(np.uint8))
    return np.asarray(image.resize((after, samples.shape[1]), Image.Resampling.BICUBIC)).T


@pytest.mark.parametrize(("before", "after"), SIZES)
def test_impulses_and_noise_are_resampled_as_pillow_does(before, after):
    weights = weights_of(before, after)
    impulses = np.eye(before, dtype=np.int64)[:, :: max(1, before // 50)] * 255
    noise = np.random.default_rng(1).integers(0, 2, (before, 40)) * 255
    for samples in (impulses, 255 - impulses, noise):
        if before != after:
            assert np.array_equal(resampled(weights, samples), by_pillow(samples, after))


@settings(deadline=None)
@given(before=sides, after=sides, seed=st.integers(0, 999))
def test_any_row_is_resampled_as_pillow_does(before, after, seed):
    samples = np.random.default_rng(seed).integers(0, 256, (before, 20))
    if before != after:
        assert np.array_equal(
            resampled(weights_of(before, after), samples), by_pillow(samples, after)
        )


@pytest.mark.parametrize(("before", "after"), SIZES)
def test_the_weights_of_an_output_add_up_to_one(before, after):
    weights = weights_of(before, after)
    assert abs(weights.sum(axis=1) - (1 << PRECISION_BITS)).max() <= max(4, before // 2)
    assert abs(weights).sum(axis=1).max() < 1.3 * (1 << PRECISION_BITS)


def test_the_sums_of_the_worst_picture_fit_in_int32():
    for before, after in SIZES:
        axis = plan_axis(weigh, before, after, 1)
        high = axis.factors[:, :, :2].astype(np.int64).reshape(after, -1)
        for sign in (1, -1):
            worst = (np.maximum(sign * high, 0).sum(axis=1).max() * 255 + 2**13) * 256
            assert worst + 255 * 128 * high.shape[1] < 2**31


def test_outputs_past_the_last_have_no_weight_and_start_where_it_does():
    axis = plan_axis(weigh, 30, 13, 8)
    assert len(axis.starts) == len(axis.factors) == 16
    assert (axis.starts[13:] == axis.starts[12]).all()
    assert not axis.factors[13:].any()
    assert (np.diff(axis.starts) >= 0).all()


@pytest.mark.parametrize(("pairs", "pixels"), [(1, 4), (2, 4), (3, 8), (4, 8), (5, 12)])
def test_a_window_is_whole_loads(pairs, pixels):
    assert window(pairs) == pixels


# (height, width) before and after, and whether Pillow 13 goes vertically first.
ORDERS = [
    ((120, 60), (100, 50), False),
    ((121, 60), (100, 50), True),
    ((100, 60), (100, 10), False),
    ((99, 60), (100, 90), False),
    ((101, 60), (100, 90), True),
]


@pytest.mark.parametrize(("before", "after", "wanted"), ORDERS)
def test_the_order_is_pillows(before, after, wanted):
    assert vertical_first(before, after) is wanted
    pixels = np.random.default_rng(2).integers(0, 2, before, dtype=np.int64) * 255
    rows, columns = (weights_of(*axis) for axis in zip(before, after, strict=True))
    orders = {
        True: resampled(columns, resampled(rows, pixels).T).T,
        False: resampled(rows, resampled(columns, pixels.T).T),
    }
    picture = Image.fromarray(pixels.astype(np.uint8))
    got = np.asarray(picture.resize(after[::-1], Image.Resampling.BICUBIC))
    assert np.array_equal(got, orders[wanted])
    if before[0] != after[0] and before[1] != after[1]:
        assert not np.array_equal(got, orders[not wanted])
