"""The definition of the float resize: what the compiled kernel must equal, bit for bit.

Bytes come in, normalised patches go out: resampled in float32 straight from the
bytes, rows first, with nothing rounded to bytes and nothing clipped between.
Every sum is taken in the order of the weights, each product and each sum
rounded to float32, so that any kernel that keeps the order has the same bits.
torch's interpolate adds up columns first and fuses, and is the same within two
millionths (tested).
"""

import numpy as np
from numpy.typing import NDArray

from kernels.affine import Affine
from kernels.arrange import covered, whole
from kernels.float_axis import FloatAxis
from kernels.tables import Stored, bfloat16_bits

REVISION = 2
"""Part of every digest of floats: raised when the same bytes get other elements."""


def patchify(
    pixels: NDArray[np.uint8],
    rows: FloatAxis,
    columns: FloatAxis,
    values: Affine,
    out: NDArray[Stored],
) -> None:
    """Resample (H, W, 3 or 4), normalise and cut into `out`, of any arrangement.

    The axes have an output for each row and column that `out` covers; where
    their weights are zero the pixel is zero.
    """
    picture = _resampled(_resampled(pixels[:, :, :3], rows, 0), columns, 1)
    normalised = _stored(picture * values.scale + values.offset, values.dtype)
    grid_h, grid_w, merge, _, channels, height, width = whole(out).shape
    assert covered(out) == picture.shape[:2]
    cut = normalised.reshape(grid_h, merge, height, grid_w, merge, width, channels)
    whole(out)[:] = cut.transpose(0, 3, 1, 4, 6, 2, 5)


def _resampled(
    samples: NDArray[np.uint8] | NDArray[np.float32], axis: FloatAxis, along: int
) -> NDArray[np.float32]:
    """Sums along one axis of (H, W, 3), weight after weight."""
    last = samples.shape[along] - 1
    total = np.float32(0)
    for tap in range(axis.weights.shape[1]):
        neighbours = samples.take(np.minimum(axis.starts + tap, last), axis=along)
        weights = np.expand_dims(axis.weights[:, tap], (1, 2) if along == 0 else (0, 2))
        total = total + neighbours.astype(np.float32) * weights
    return np.asarray(total, np.float32)


def _stored(values: NDArray[np.float32], dtype: str) -> NDArray[Stored]:
    """16-bit floats are the float32 rounded to nearest, ties to even, as bits."""
    if dtype == "float16":
        with np.errstate(over="ignore"):
            return values.astype(np.float16).view(np.uint16)
    return bfloat16_bits(values) if dtype == "bfloat16" else values
