"""Folds r x r neighbouring patches into one token, after the vision encoder, on any device.

Takes the encoder's output and gives tokens with r * r times the channels. Each
element is read once and written once: the neighbours are found by strides, no
step between is laid out in memory. Importing this module needs torch; nothing
else of the client imports it. Source of the order of elements:
docs/client.md, "Pixel shuffle".
"""

import warnings
from collections.abc import Iterator, Sequence
from math import prod
from operator import index
from typing import TYPE_CHECKING, Any

from patchmill_client.errors import BadFactor, LengthMismatch, UnevenGrid, UnknownVersion
from patchmill_client.tensors import need_torch

if TYPE_CHECKING:
    import torch
else:
    torch = need_torch()

VERSIONS = ("v1", "v2")
"""v2 keeps tokens in row-major order; v1 gives them transposed, as its checkpoints learnt them."""
FACTOR_TOLERANCE = 1e-6
"""1 / scale_factor may miss a whole number by this, relatively: 1 / 3 is no float."""


def pixel_shuffle(
    x: "torch.Tensor", scale_factor: float = 0.5, version: str = "v2"
) -> "torch.Tensor":
    """(n, h, w, c) to (n, h / r, w / r, c * r * r), r = 1 / scale_factor; v1: (n, w / r, h / r, …).

    Any dtype, device and strides; one copy, none where no element moves (r = 1,
    or w = r: the answer then shares memory with `x`). Raises BadFactor,
    UnknownVersion, UnevenGrid, LengthMismatch for an `x` of another rank.
    """
    factor = _checked_factor(scale_factor)
    _check_version(version)
    _check_rank(x, 4, "(n, h, w, c)")
    height, width = x.shape[1], x.shape[2]
    _check_grid(height, width, factor, None)
    patches = x.unflatten(2, (width // factor, factor)).unflatten(1, (height // factor, factor))
    return _by_token(patches, version).flatten(-3)


def pixel_shuffle_packed(
    x: "torch.Tensor",
    sizes: Sequence[tuple[int, int]],
    *,
    patch_size: int,
    scale_factor: float = 0.5,
    version: str = "v2",
) -> "torch.Tensor":
    """(B, L, c), images one after the other, to (B, L / (r * r), c * r * r) in the same order.

    `sizes` are the images' (height, width) in pixels, the same for each row of
    B. A run of neighbours of one size is one copy, from where it lies to where
    it belongs, so an element moves once and equal images are one launch. Any
    dtype, device and strides. Raises BadFactor, UnknownVersion, UnevenGrid (its
    `item` is the image), LengthMismatch.
    """
    factor = _checked_factor(scale_factor)
    _check_version(version)
    _check_rank(x, 3, "(B, L, c)")
    runs = _runs(sizes, index(patch_size), factor)
    length = sum(map(prod, zip(runs[::3], runs[1::3], runs[2::3], strict=True)))
    if x.shape[1] != length:
        raise LengthMismatch(
            f"x has {x.shape[1]} patches a row, the {len(sizes)} sizes have {length}",
            length,
            x.shape[1],
        )
    if (
        not torch.compiler.is_compiling()
        and torch.autograd.forward_ad.unpack_dual(x).tangent is not None
    ):
        return _fold(x, runs, factor, version)  # the operator would give a tangent of zero
    tokens: torch.Tensor = _fold_op(x, runs, factor, version)
    return tokens


def _fold(x: torch.Tensor, runs: Sequence[int], factor: int, version: str) -> torch.Tensor:
    """Patches (B, L, c) to tokens (B, L / (r * r), c * r * r)."""
    tokens = _empty_tokens(x, runs, factor, version)
    for source, place in _views(x, tokens, runs, factor, version):
        place.copy_(source)
    return tokens


def _unfold(x: torch.Tensor, runs: Sequence[int], factor: int, version: str) -> torch.Tensor:
    """Tokens (B, L / (r * r), c * r * r) to patches (B, L, c)."""
    patches = _empty_patches(x, runs, factor, version)
    for place, source in _views(patches, x, runs, factor, version):
        place.copy_(source)
    return patches


def _empty_tokens(x: Any, runs: Sequence[int], factor: int, version: str) -> Any:  # noqa: ARG001
    area = factor * factor
    return x.new_empty((x.shape[0], x.shape[1] // area, x.shape[2] * area))


def _empty_patches(x: Any, runs: Sequence[int], factor: int, version: str) -> Any:  # noqa: ARG001
    area = factor * factor
    return x.new_empty((x.shape[0], x.shape[1] * area, x.shape[2] // area))


# Operators of their own, each the other's derivative. Autograd's record of a
# copy into a slice would copy the whole gradient once a run, and inductor took
# over 9 minutes to compile the copies of 64 images of mixed sizes (2.13.0).
_fold_op: Any = torch.library.custom_op("patchmill_client::fold", _fold, mutates_args=())
_unfold_op: Any = torch.library.custom_op("patchmill_client::unfold", _unfold, mutates_args=())


def _remember(ctx: Any, inputs: Any, output: Any) -> None:  # noqa: ARG001 - torch's signature
    _, *ctx.how = inputs


def _fold_backward(ctx: Any, grad: Any) -> Any:
    return _unfold_op(grad, *ctx.how), None, None, None


def _unfold_backward(ctx: Any, grad: Any) -> Any:
    return _fold_op(grad, *ctx.how), None, None, None


_fold_op.register_fake(_empty_tokens)
_unfold_op.register_fake(_empty_patches)
_fold_op.register_autograd(_fold_backward, setup_context=_remember)
_unfold_op.register_autograd(_unfold_backward, setup_context=_remember)


def _views(
    patches: "torch.Tensor",
    tokens: "torch.Tensor",
    runs: Sequence[int],
    factor: int,
    version: str,
) -> Iterator[tuple["torch.Tensor", "torch.Tensor"]]:
    """Each run's elements in both tensors, as views of one shape (B, images, h', w', r, r, c)."""
    channels = patches.shape[2]
    start = 0
    for images, height, width in zip(runs[::3], runs[1::3], runs[2::3], strict=True):
        high, wide, length = height // factor, width // factor, images * height * width
        sides = (high, wide) if version == "v2" else (wide, high)
        patch_part = patches.narrow(1, start, length)
        token_part = tokens.narrow(1, start // factor**2, length // factor**2)
        yield (
            _by_token(patch_part.unflatten(1, (images, high, factor, wide, factor)), version),
            token_part.unflatten(2, (factor, factor, channels)).unflatten(1, (images, *sides)),
        )
        start += length


def _by_token(patches: "torch.Tensor", version: str) -> "torch.Tensor":
    """(…, h', r, w', r, c) as a view (…, h', w', r, r, c); v1: (…, w', h', r, r, c)."""
    tokens = patches.transpose(-4, -3)
    return tokens if version == "v2" else tokens.transpose(-5, -4)


def _runs(sizes: Sequence[tuple[int, int]], patch: int, factor: int) -> list[int]:
    """Neighbours of one size together: their number, height and width in patches, flat.

    A loop, because torch.compile stops at groupby; flat, as an operator takes it.
    """
    if patch < 1:
        raise UnevenGrid(f"patch_size is {patch} and must be at least 1", None)
    if len(sizes) == 0:
        raise LengthMismatch("sizes is empty: a packed x has at least one image", 1, 0)
    runs: list[int] = []
    for image, size in enumerate(sizes):
        height_px, width_px = _sides(size, image)
        if height_px % patch or width_px % patch:
            raise UnevenGrid(
                f"image {image} has {height_px}x{width_px} pixels (height x width),"
                f" no multiples of the patch of {patch}",
                image,
            )
        height, width = height_px // patch, width_px // patch
        _check_grid(height, width, factor, image)
        if runs[-2:] == [height, width]:
            runs[-3] += 1
        else:
            runs += [1, height, width]
    return runs


def _sides(size: Sequence[int], image: int) -> tuple[int, int]:
    """(height, width) of one image, as integers."""
    sides = len(size) if hasattr(size, "__len__") else 0
    if sides != 2:
        raise LengthMismatch(
            f"the size of image {image} is {size!r:.100}, must be (height, width) in pixels",
            2,
            sides,
        )
    return index(size[0]), index(size[1])


def _checked_factor(scale_factor: float) -> int:
    if not 0 < scale_factor <= 1:  # NaN and infinity are not either
        raise BadFactor(f"scale_factor is {scale_factor} and must be above 0 and at most 1")
    factor = round(1 / scale_factor)
    if abs(scale_factor * factor - 1) > FACTOR_TOLERANCE:
        raise BadFactor(
            f"scale_factor is {scale_factor}: 1 / {scale_factor} = {1 / scale_factor:g}"
            " is no whole number"
        )
    return factor


def _check_version(version: str) -> None:
    if version not in VERSIONS:
        raise UnknownVersion(f"version is {version!r}, not one of {', '.join(VERSIONS)}")
    # The compiler cannot take a warning into its graph: compiled code does not warn.
    if version == "v1" and not torch.compiler.is_compiling():
        warnings.warn(
            "pixel shuffle v1 gives transposed tokens; only checkpoints trained so want it",
            stacklevel=3,
        )


def _check_rank(x: "torch.Tensor", rank: int, shape: str) -> None:
    if x.dim() != rank:
        raise LengthMismatch(f"x has {x.dim()} axes, not {rank}: {shape}", rank, x.dim())


def _check_grid(height: int, width: int, factor: int, image: int | None) -> None:
    if height < 1 or width < 1 or height % factor or width % factor:
        whose = "x" if image is None else f"image {image}"
        raise UnevenGrid(
            f"{whose} has a grid of {height}x{width} patches (height x width),"
            f" no multiples of {factor}",
            image,
        )
