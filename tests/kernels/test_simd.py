"""Each vector operation against NumPy, on bytes in memory."""

from collections.abc import Callable

import numpy as np
import pytest

from tests.kernels.conftest import needs_vectors

pytestmark = needs_vectors

RNG = np.random.default_rng(8)
A, B, C = RNG.integers(-(2**31), 2**31, (3, 8)).astype(np.int32)
EDGES = np.array([-(2**31), -32769, -32768, -1, 0, 255, 32767, 2**31 - 1], np.int32)
BYTES = RNG.permutation(256)[:64].astype(np.uint8)
P, Q = BYTES[:32], BYTES[32:]
FLOATS = RNG.uniform(-4, 4, 24).astype(np.float32)
F, G, H = FLOATS.reshape(3, 8)
# Halfway between two bfloat16, above an even one and an odd one; just beside; others.
TIES = np.array(
    [0x3F808000, 0x3F818000, 0x3F808001, 0x3F817FFF, 0, 0x80000000, 0x40490FDB, 0xBF000001],
    np.uint32,
).view(np.float32)

# An expression of operands a, b, c in memory at p, q, r, and a place `to`; what lies there then.
# `f` stands for vectors of floats.
OPERATIONS = {
    "load_eight_bytes": (
        "store(to, load_eight_bytes(p + 3))",
        (P,),
        P[3:11].astype(np.int32),
    ),
    "load, store": ("store(to, load(p))", (A,), A),
    "load_halves": ("store(to, load_halves(p + 16, q))", (A, B), np.r_[A[4:], B[:4]]),
    "store_halves": ("store_halves(to + 16, to, load(p))", (A,), np.r_[A[4:], A[:4]]),
    "store_three_quarters": (
        "store_three_quarters(to + 16, to + 8, to, load(p))",
        (A,),
        np.r_[A[4:6], A[2:4], A[0:2], 0, 0].astype(np.int32),
    ),
    "store_low_halves_of_lanes": (
        "store_low_halves_of_lanes(to, load(p))",
        (A & 0xFFFF,),
        np.r_[A.astype(np.uint16), np.zeros(8, np.uint16)],
    ),
    "broadcast, load_int32": ("store(to, broadcast(load_int32(p + 4)))", (A,), A[1].repeat(8)),
    "load_byte, store_byte": (
        "store_byte(to + 1, load_byte(p + 3))",
        (P,),
        np.r_[0, P[3], [0] * 30].astype(np.uint8),
    ),
    "load_int64, store_int64": (
        "store_int64(to + 8, load_int64(p))",
        (A,),
        np.r_[0, 0, A[:2], [0] * 4].astype(np.int32),
    ),
    "add": ("store(to, add(load(p), load(q)))", (A, B), A + B),
    "add_products": (
        "store(to, add_products(load(p), load(q), load(r)))",
        (A, B, C),
        A + (B.view(np.int16).astype(np.int32) * C.view(np.int16)).reshape(8, 2).sum(1, np.int32),
    ),
    "shift_left": ("store(to, shift_left(load(p), 8))", (A,), A << 8),
    "shift_right": ("store(to, shift_right(load(p), 22))", (A,), A >> 22),
    "pack_to_int16": (
        "store(to, pack_to_int16(load(p), load(q)))",
        (EDGES, A),
        np.clip(np.r_[EDGES[:4], A[:4], EDGES[4:], A[4:]], -(2**15), 2**15 - 1).astype(np.int16),
    ),
    "pack_to_uint8": (
        "store(to, pack_to_uint8(load(p), load(q)))",
        (EDGES, A),
        np.clip(
            np.r_[
                EDGES.view(np.int16)[:8],
                A.view(np.int16)[:8],
                EDGES.view(np.int16)[8:],
                A.view(np.int16)[8:],
            ],
            0,
            255,
        ).astype(np.uint8),
    ),
    "interleave_low": (
        "store(to, interleave_low(load(p), load(q)))",
        (P, Q),
        np.stack([np.r_[P[:8], P[16:24]], np.r_[Q[:8], Q[16:24]]], 1),
    ),
    "interleave_high": (
        "store(to, interleave_high(load(p), load(q)))",
        (P, Q),
        np.stack([np.r_[P[8:16], P[24:]], np.r_[Q[8:16], Q[24:]]], 1),
    ),
    "first_pair": (
        "store(to, first_pair(load(p)))",
        (P,),
        P.reshape(2, 4, 4)[:, :2].transpose(0, 2, 1).astype(np.int16),
    ),
    "second_pair": (
        "store(to, second_pair(load(p)))",
        (P,),
        P.reshape(2, 4, 4)[:, 2:].transpose(0, 2, 1).astype(np.int16),
    ),
    "planar": ("store(to, planar(load(p)))", (P,), P.reshape(8, 4).T),
    "rgb_to_rgbx": (
        "store(to, rgb_to_rgbx(load(p)))",
        (P,),
        np.pad(P.reshape(2, 16)[:, :12].reshape(8, 3), ((0, 0), (0, 1))),
    ),
    "broadcast_float": (
        "store(to, as_integers(broadcast_float(float32(0.1))))",
        (),
        np.full(8, 0.1, "f4"),
    ),
    "to_floats": ("store(to, as_integers(to_floats(load(p))))", (A,), A.astype(np.float32)),
    "multiply": (
        "store(to, as_integers(multiply(to_floats(load(p)), to_floats(load(q)))))",
        (A, B),
        A.astype(np.float32) * B.astype(np.float32),
    ),
    "multiply_add": (
        "a, b, c = to_floats(load(p)), to_floats(load(q)), to_floats(load(r))\n"
        "    store(to, as_integers(multiply_add(a, b, c)))",
        (A >> 8, B >> 8, C >> 8),  # exact as floats, their products are not
        ((A >> 8).astype(np.int64) * (B >> 8) + (C >> 8)).astype(np.float32),
    ),
    "to_float16": (
        "store(to, to_float16(multiply(to_floats(load(p)), broadcast_float(float32(2**-16)))))",
        (A >> 4,),
        ((A >> 4).astype(np.float32) * np.float32(2**-16))
        .astype(np.float16)
        .view(np.uint16)
        .astype(np.int32),
    ),
    "look_up": (
        "store(to, look_up(p, load(q)))",
        (A, np.array([7, 0, 3, 3, 1, 6, 2, 5], np.int32)),
        A[[7, 0, 3, 3, 1, 6, 2, 5]],
    ),
}


@pytest.mark.parametrize(("expression", "operands", "wanted"), OPERATIONS.values(), ids=OPERATIONS)
def test_an_operation_does_what_its_docstring_says(expression, operands, wanted):
    got = np.zeros(32, np.uint8)
    wanted = np.ascontiguousarray(wanted)
    assert wanted.nbytes == 32
    _compiled(expression)(*(o.ctypes.data for o in (*operands, A, A, A)[:3]), got.ctypes.data)
    assert got.tobytes() == wanted.tobytes()


@pytest.mark.parametrize("name", ["stream", "stream_low_halves_of_lanes"])
def test_streaming_stores_what_storing_does(name):
    got = np.zeros(96, np.uint8)
    to = -got.ctypes.data % 32
    expression = f"{name}(to, load(p))\n    fence()"
    _compiled(expression)(*[A.ctypes.data] * 3, got.ctypes.data + to)
    wanted = A if name == "stream" else A.astype(np.uint16)
    assert got[to : to + wanted.nbytes].tobytes() == wanted.tobytes()
    assert not got[:to].any()
    assert not got[to + wanted.nbytes :].any()


def test_bfloat16_is_rounded_to_nearest_and_ties_to_even():
    bits = TIES.view(np.uint32).astype(np.int64)
    lower = bits >> 16
    beyond, even = bits & 0xFFFF, lower % 2 == 0
    wanted = np.where((beyond < 0x8000) | ((beyond == 0x8000) & even), lower, lower + 1)
    got = np.zeros(8, np.int32)
    _compiled("store(to, to_bfloat16(as_floats(load(p))))")(
        *[TIES.ctypes.data] * 3, got.ctypes.data
    )
    assert np.array_equal(got, wanted)


def _compiled(expression: str) -> Callable[[int, int, int, int], None]:
    """The expression as a compiled function of four addresses."""
    from numba import float32, njit  # noqa: PLC0415 - only where there are vectors

    from kernels import simd  # noqa: PLC0415

    scope = vars(simd) | {"float32": float32}
    exec(f"def operation(p, q, r, to):\n    {expression}\n", scope)  # noqa: S102
    return njit(scope["operation"])
