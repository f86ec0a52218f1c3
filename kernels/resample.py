"""The two passes of the resize: rows of bytes come in, rows of bytes go out.

Each sample is the sum of its neighbours times their integer weights, in int32,
plus a half, shifted by 22 bits and clipped to a byte: Pillow's arithmetic.
A weight has 23 bits and a multiplication 16, so each weight comes as two
int16, k = 256 * high + low (see `coefficients.py`), and one `add_products`
does two neighbours at once:

    sum(p * k) + 2**21 = (sum(p * high) + 2**13) * 256 + sum(p * low)

Every value stays below 2**31: the weights of one sample add up to 2**22, and
their absolute values to less than 1.3 times that. Only sum(p * low) may wrap,
with more than 65,000 neighbours, and then wraps back as the two are added.

These functions take addresses and check nothing; each says which bytes it
touches. `rows.py` knows the buffers.
"""
# ruff: noqa: PLR0913, PLR0917 - kernels take addresses and integers, one by one

from typing import Any

from kernels.coefficients import PRECISION_BITS
from kernels.jit import called, inlined
from kernels.job import PAIR_BYTES, RGBX
from kernels.llvm import VECTOR_BYTES
from kernels.simd import (
    add,
    add_products,
    broadcast,
    first_pair,
    interleave_high,
    interleave_low,
    load,
    load_byte,
    load_halves,
    load_int32,
    load_int64,
    pack_to_int16,
    pack_to_uint8,
    second_pair,
    shift_left,
    shift_right,
    store,
    store_byte,
    store_halves,
)

OUTPUTS = 4
"""The horizontal pass makes so many pixels at once."""

_LOW = 4
_HALF = 1 << (PRECISION_BITS - 9)
"""A half, as it is before the high parts are shifted."""


# The loop over pairs is written once for a `pairs` that is known, where LLVM
# unrolls it and keeps the shuffled pixels in registers, and once for any. A
# scale of 1 or less has 2 pairs, of 1.5 has 3, of 2 has 4.


@called
def horizontal(
    pairs: int,
    row_a: int,
    row_b: int,
    outputs: int,
    starts: int,
    factors: int,
    out_a: int,
    out_b: int,
) -> None:
    """Resample two rows of RGBX pixels at once, `outputs` being a multiple of OUTPUTS.

    Reads `window(pairs)` pixels of each row from each of `starts` on, and
    writes `outputs` pixels to each out.
    """
    if pairs == 2:
        _rows(2, row_a, row_b, outputs, starts, factors, out_a, out_b)
    elif pairs == 3:
        _rows(3, row_a, row_b, outputs, starts, factors, out_a, out_b)
    elif pairs == 4:
        _rows(4, row_a, row_b, outputs, starts, factors, out_a, out_b)
    else:
        _rows(pairs, row_a, row_b, outputs, starts, factors, out_a, out_b)


@inlined
def _rows(
    pairs: int,
    row_a: int,
    row_b: int,
    outputs: int,
    starts: int,
    factors: int,
    out_a: int,
    out_b: int,
) -> None:
    step = PAIR_BYTES * pairs
    for x in range(0, outputs, OUTPUTS):
        at = factors + x * step
        s = starts + x * 4
        pixel_0 = _pixel(pairs, row_a, row_b, load_int32(s), at)
        pixel_1 = _pixel(pairs, row_a, row_b, load_int32(s + 4), at + step)
        pixel_2 = _pixel(pairs, row_a, row_b, load_int32(s + 8), at + 2 * step)
        pixel_3 = _pixel(pairs, row_a, row_b, load_int32(s + 12), at + 3 * step)
        packed = pack_to_uint8(pack_to_int16(pixel_0, pixel_1), pack_to_int16(pixel_2, pixel_3))
        store_halves(out_a + x * RGBX, out_b + x * RGBX, packed)


@inlined
def _pixel(pairs: int, row_a: int, row_b: int, start: int, factors: int) -> Any:
    """[four channels of row a | four channels of row b] of one pixel, not yet clipped."""
    a = row_a + start * RGBX
    b = row_b + start * RGBX
    high = broadcast(_HALF)
    low = broadcast(0)
    for pair in range(0, pairs - 1, 2):
        four = load_halves(a + pair * PAIR_BYTES, b + pair * PAIR_BYTES)
        k = factors + pair * PAIR_BYTES
        pixels = first_pair(four)
        high = add_products(high, pixels, broadcast(load_int32(k)))
        low = add_products(low, pixels, broadcast(load_int32(k + _LOW)))
        pixels = second_pair(four)
        high = add_products(high, pixels, broadcast(load_int32(k + PAIR_BYTES)))
        low = add_products(low, pixels, broadcast(load_int32(k + PAIR_BYTES + _LOW)))
    if pairs & 1:
        last = (pairs - 1) * PAIR_BYTES
        pixels = first_pair(load_halves(a + last, b + last))
        high = add_products(high, pixels, broadcast(load_int32(factors + last)))
        low = add_products(low, pixels, broadcast(load_int32(factors + last + _LOW)))
    return _rounded(high, low)


@inlined
def _rounded(high: Any, low: Any) -> Any:
    return shift_right(add(shift_left(high, 8), low), PRECISION_BITS)


@called
def vertical(pairs: int, rows: int, size: int, factors: int, out: int) -> None:
    """Resample one row from the rows whose 2 * `pairs` addresses lie at `rows`.

    Reads `size` bytes of each row and writes as many to `out`, whatever they
    are: each byte has only the bytes above and below it.
    """
    if size < VECTOR_BYTES:
        for x in range(size):
            store_byte(out + x, _byte(pairs, rows, x, factors))
    elif pairs == 2:
        _row(2, rows, size, factors, out)
    elif pairs == 3:
        _row(3, rows, size, factors, out)
    elif pairs == 4:
        _row(4, rows, size, factors, out)
    else:
        _row(pairs, rows, size, factors, out)


@inlined
def _row(pairs: int, rows: int, size: int, factors: int, out: int) -> None:
    last = size - VECTOR_BYTES
    for x in range(0, last + 1, VECTOR_BYTES):
        store(out + x, _bytes(pairs, rows, x, factors))
    if size % VECTOR_BYTES:
        store(out + last, _bytes(pairs, rows, last, factors))  # some of them once more


@inlined
def _bytes(pairs: int, rows: int, x: int, factors: int) -> Any:
    """32 neighbouring bytes of the row that is made."""
    zero = broadcast(0)
    high_0 = high_1 = high_2 = high_3 = broadcast(_HALF)
    low_0 = low_1 = low_2 = low_3 = zero
    for pair in range(pairs):
        above = load(load_int64(rows + 16 * pair) + x)
        below = load(load_int64(rows + 16 * pair + 8) + x)
        high = broadcast(load_int32(factors + pair * PAIR_BYTES))
        low = broadcast(load_int32(factors + pair * PAIR_BYTES + _LOW))
        both = interleave_low(above, below)
        pixels = interleave_low(both, zero)
        high_0, low_0 = add_products(high_0, pixels, high), add_products(low_0, pixels, low)
        pixels = interleave_high(both, zero)
        high_1, low_1 = add_products(high_1, pixels, high), add_products(low_1, pixels, low)
        both = interleave_high(above, below)
        pixels = interleave_low(both, zero)
        high_2, low_2 = add_products(high_2, pixels, high), add_products(low_2, pixels, low)
        pixels = interleave_high(both, zero)
        high_3, low_3 = add_products(high_3, pixels, high), add_products(low_3, pixels, low)
    # Packing within halves undoes the order that interleaving within halves made.
    first = pack_to_int16(_rounded(high_0, low_0), _rounded(high_1, low_1))
    second = pack_to_int16(_rounded(high_2, low_2), _rounded(high_3, low_3))
    return pack_to_uint8(first, second)


@inlined
def _byte(pairs: int, rows: int, x: int, factors: int) -> int:
    """One byte, without vectors: for rows that are shorter than one."""
    total = _HALF << 8
    for pair in range(pairs):
        k = factors + pair * PAIR_BYTES
        high, low = load_int32(k), load_int32(k + _LOW)
        above = load_byte(load_int64(rows + 16 * pair) + x)
        below = load_byte(load_int64(rows + 16 * pair + 8) + x)
        total += above * (256 * _signed(high) + _signed(low))
        total += below * (256 * (high >> 16) + (low >> 16))
    return min(max(total >> PRECISION_BITS, 0), 255)


@inlined
def _signed(word: int) -> int:
    """The lower 16 bits as int16."""
    return ((word & 0xFFFF) ^ 0x8000) - 0x8000
