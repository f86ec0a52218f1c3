"""What the fast kernels are told: sizes, the layout of their scratch, and addresses.

Integers and vectors only, made by `fast.py` (`Job`) and by `fused.py` (the
others). Nothing is computed here.
"""

from typing import Any, NamedTuple

RGBX = 4
"""Bytes of a pixel in scratch."""

PAIR_BYTES = 8
"""Of `Axis.factors`: two int16 of the high parts, two of the low ones."""


class Job(NamedTuple):
    """One picture's sizes, in pixels, and the layout of the scratch, in bytes."""

    height: int
    width: int
    channels: int
    out_height: int
    out_width: int
    patch: int
    """Rows of a band: the edge of a patch, and of a picture that is not cut as many."""
    grid_w: int
    merge: int
    image_height: int
    """Of a picture that is not cut, else 0"""
    image_width: int
    kind: int
    itemsize: int
    """Bytes of a stored value"""
    row_pairs: int
    """Pairs of rows that make one; 0 when the height stays."""
    column_pairs: int
    columns: int
    """`out_width` rounded up to a whole number of vectors."""
    horizontal_first: int
    reach: int
    """The horizontal pass reads so many pixels of a row."""
    source_bytes: int
    band_stride: int
    ring: int
    ring_rows: int
    ring_stride: int
    made: int
    """A row of the vertical pass that is to be resampled next; two of them."""
    staged: int
    """A source row as RGBX with `reach` pixels; two of them."""
    staged_stride: int
    places: int
    """The addresses of the rows that the vertical pass reads."""
    bytes: int
    """A row of patches as bytes, which values are then made of."""
    streamed: int
    """Values go past the caches."""


class Buffers(NamedTuple):
    """The addresses of the arrays that rows are made from and in."""

    source: int
    row_starts: int
    row_factors: int
    column_starts: int
    column_factors: int
    scratch: int


class Patch(NamedTuple):
    """What makes values of a patch's bytes."""

    table: int
    """An address: (768,) int32"""
    channels: int
    """An address: (elements + LANES) int32, where in the table each place's channel begins"""
    elements: int
    scale: Any
    """Vectors, of the formula"""
    offset: Any
