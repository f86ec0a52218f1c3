"""Pixel shuffle: the published order, one copy, derivatives, and a word for each wrong input."""

import re
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from patchmill_client import errors

try:
    import torch

    from patchmill_client.pixel_shuffle import pixel_shuffle, pixel_shuffle_packed
except ImportError:
    torch = None

pytestmark = [
    pytest.mark.skipif(torch is None, reason="torch is not installed"),
    pytest.mark.filterwarnings("ignore:pixel shuffle v1:UserWarning"),
]

GOLDEN = np.load(Path(__file__).parent / "golden" / "pixel_shuffle" / "cases.npz")
PLAIN = sorted(name for name in GOLDEN.files if "dynamic" not in name)
PACKED = sorted(name for name in GOLDEN.files if "dynamic" in name)
GOLDEN_SIZES = [(64, 96), (32, 32), (128, 64)]
PERMUTATION = {"v2": (0, 1, 3, 2, 4, 5), "v1": (0, 3, 1, 2, 4, 5)}
DTYPES = ["float32", "bfloat16", "float16", "float64", "int64", "uint8", "bool", "complex64"]
MIXED = [(4, 6), (4, 6), (2, 2), (2, 10), (4, 6)]
"""Grids in patches: a run of equals, singles, and an equal that is no neighbour."""
NAN, INF = float("nan"), float("inf")


def defined(x: Any, factor: int, version: str) -> Any:
    """The definition: view, permute, reshape."""
    n, h, w, c = x.shape
    view = x.reshape(n, h // factor, factor, w // factor, factor, c)
    return (tokens := view.permute(PERMUTATION[version])).reshape(
        *tokens.shape[:3], c * factor * factor
    )


def defined_packed(x: Any, grids: list[tuple[int, int]], factor: int, version: str) -> Any:
    """The same for each image, joined."""
    rows, _, c = x.shape
    parts = x.split([h * w for h, w in grids], dim=1)
    return torch.cat(
        [
            defined(part.reshape(rows, h, w, c), factor, version).flatten(1, 2)
            for part, (h, w) in zip(parts, grids, strict=True)
        ],
        dim=1,
    )


def counted(*shape: int, dtype: str = "float32") -> Any:
    return torch.arange(np.prod(shape)).reshape(shape).to(getattr(torch, dtype))


def in_pixels(grids: list[tuple[int, int]], patch: int) -> list[tuple[int, int]]:
    return [(h * patch, w * patch) for h, w in grids]


@pytest.mark.parametrize("name", PLAIN)
def test_the_published_tokens_come_out(name: str) -> None:
    version, _, shape = name.partition("_")
    given_x = counted(*map(int, shape.split("x")))
    assert np.array_equal(pixel_shuffle(given_x, version=version).numpy(), GOLDEN[name])


@pytest.mark.parametrize("name", PACKED)
def test_the_published_tokens_of_packed_images_come_out(name: str) -> None:
    wanted = GOLDEN[name]
    x = counted(1, wanted.shape[1] * 4, 5)
    tokens = pixel_shuffle_packed(x, GOLDEN_SIZES, patch_size=16, version=name[:2])
    assert np.array_equal(tokens.numpy(), wanted)


def test_the_golden_file_has_both_versions_of_both_forms() -> None:
    assert (len(PLAIN), len(PACKED)) == (6, 2)


sides = st.integers(1, 4)


@given(st.data(), st.integers(1, 4), st.sampled_from(["v1", "v2"]))
@settings(deadline=None)
def test_any_batch_is_shuffled_as_defined(data: Any, factor: int, version: str) -> None:
    n, h, w, c = (data.draw(st.integers(0 if axis in "nc" else 1, 4)) for axis in "nhwc")
    x = counted(n, h * factor, w * factor, c)
    order = data.draw(st.permutations(range(4)))
    scattered = x.permute(order).contiguous().permute(np.argsort(order).tolist())
    assert scattered.shape == x.shape
    tokens = pixel_shuffle(scattered, 1 / factor, version)
    assert torch.equal(tokens, defined(x, factor, version))


@given(st.data(), st.integers(1, 4), st.sampled_from(["v1", "v2"]), st.integers(1, 16))
@settings(deadline=None)
def test_any_packed_images_are_shuffled_as_defined(
    data: Any, factor: int, version: str, patch: int
) -> None:
    folded = data.draw(st.lists(st.tuples(sides, sides), min_size=1, max_size=6))
    grids = [(h * factor, w * factor) for h, w in folded]
    rows, c = data.draw(st.integers(0, 3)), data.draw(st.integers(0, 4))
    x = counted(rows, sum(h * w for h, w in grids), c)
    order = data.draw(st.permutations(range(3)))
    scattered = x.permute(order).contiguous().permute(np.argsort(order).tolist())
    tokens = pixel_shuffle_packed(
        scattered,
        in_pixels(grids, patch),
        patch_size=patch,
        scale_factor=1 / factor,
        version=version,
    )
    assert torch.equal(tokens, defined_packed(x, grids, factor, version))


@pytest.mark.parametrize("version", ["v1", "v2"])
@pytest.mark.parametrize("dtype", DTYPES)
def test_every_element_type_is_moved_unchanged(dtype: str, version: str) -> None:
    x = (counted(2, 72, 3) % 251).to(getattr(torch, dtype))
    grids = [(4, 6), (4, 4), (8, 4)]
    tokens = pixel_shuffle_packed(x, in_pixels(grids, 16), patch_size=16, version=version)
    assert tokens.dtype is x.dtype
    assert torch.equal(tokens, defined_packed(x, grids, 2, version))
    grid = x.view(4, 6, 6, 3)
    assert torch.equal(pixel_shuffle(grid, version=version), defined(grid, 2, version))


def test_strided_input_is_taken_as_it_is() -> None:
    x = counted(2, 200, 10)[:, 4:196:2, 1:8:3]
    tokens = pixel_shuffle_packed(x, in_pixels(MIXED, 14), patch_size=14)
    assert torch.equal(tokens, defined_packed(x, MIXED, 2, "v2"))
    channels_last = counted(2, 5, 4, 6).permute(0, 2, 3, 1)
    assert torch.equal(pixel_shuffle(channels_last), defined(channels_last, 2, "v2"))


@pytest.mark.parametrize("factor", [1, 2, 3, 7, 49, 96])
def test_every_whole_factor_is_taken_though_its_inverse_is_rounded(factor: int) -> None:
    assert pixel_shuffle(counted(1, factor, factor, 2), 1 / factor).shape == (
        1,
        1,
        1,
        2 * factor**2,
    )


def test_only_v1_warns_and_names_the_caller_s_line() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        pixel_shuffle(counted(1, 2, 2, 1))
        pixel_shuffle_packed(counted(1, 4, 1), [(2, 2)], patch_size=1)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        pixel_shuffle(counted(1, 2, 2, 1), version="v1")
        pixel_shuffle_packed(counted(1, 4, 1), [(2, 2)], patch_size=1, version="v1")
    assert all("transposed" in str(warning.message) for warning in told)
    assert [warning.filename for warning in told] == [__file__] * 2


@pytest.mark.parametrize("version", ["v1", "v2"])
def test_derivatives_of_both_orders_are_those_of_the_definition(version: str) -> None:
    x = torch.randn(2, 12, 2, dtype=torch.float64, requires_grad=True)
    sizes = [(32, 64), (32, 32)]

    def packed(given_x: Any) -> Any:
        return pixel_shuffle_packed(given_x, sizes, patch_size=16, version=version)

    def plain(given_x: Any) -> Any:
        return pixel_shuffle(given_x.view(2, 2, 6, 2), version=version)

    for shuffle in (packed, plain):
        assert torch.autograd.gradcheck(shuffle, x)
        assert torch.autograd.gradgradcheck(shuffle, x)


def test_a_gradient_that_is_no_block_of_memory_flows_back() -> None:
    x = torch.randn(1, 96, 3, requires_grad=True)
    twin = x.detach().clone().requires_grad_()
    pixel_shuffle_packed(x, in_pixels(MIXED, 16), patch_size=16).sum().backward()
    defined_packed(twin, MIXED, 2, "v2").sum().backward()
    assert torch.equal(x.grad, twin.grad)


def test_the_operators_keep_torch_s_rules_for_operators() -> None:
    from patchmill_client import pixel_shuffle as module

    x = torch.randn(2, 12, 2, requires_grad=True)
    runs = [1, 2, 4, 1, 2, 2]
    torch.library.opcheck(module._fold_op, (x, runs, 2, "v2"))
    torch.library.opcheck(module._unfold_op, (x.detach().view(2, 3, 8), runs, 2, "v1"))


@pytest.mark.filterwarnings("ignore:.*jit.script:DeprecationWarning")  # torch's own, in its func
def test_forward_derivatives_are_those_of_a_linear_map() -> None:
    sizes = [(32, 64), (64, 32), (64, 32)]
    x, direction = torch.randn(2, 1, 24, 5).unbind()

    def packed(patches: torch.Tensor) -> torch.Tensor:
        return pixel_shuffle_packed(patches, sizes, patch_size=16)

    tokens, tangent = torch.func.jvp(packed, (x,), (direction,))
    assert torch.equal(tokens, packed(x))
    assert torch.equal(tangent, packed(direction))


def test_it_runs_without_a_gradient_and_in_inference_mode() -> None:
    x = torch.randn(1, 4, 3, requires_grad=True)
    for mode in (torch.no_grad(), torch.inference_mode()):
        with mode:
            tokens = pixel_shuffle_packed(x, [(2, 2)], patch_size=1)
        assert not tokens.requires_grad


def copies(run: Any) -> tuple[list[list[int]], int, set[str]]:
    """Shapes that were copied, bytes that were allocated, and the operators called."""
    activities = [torch.profiler.ProfilerActivity.CPU]
    with torch.profiler.profile(
        activities=activities, record_shapes=True, profile_memory=True
    ) as profile:
        kept = run()
    assert kept is not None
    events = profile.events()
    shapes = [event.input_shapes[0] for event in events if event.name == "aten::copy_"]
    allocated = sum(event.self_cpu_memory_usage for event in events)
    return shapes, allocated, {event.name for event in events}


@pytest.mark.filterwarnings("ignore")  # the profiler's own, of some torch versions
def test_each_element_is_copied_once_and_neighbours_of_one_size_together() -> None:
    x = torch.zeros(2, 96, 640)
    shapes, allocated, names = copies(
        lambda: pixel_shuffle_packed(x, in_pixels(MIXED, 16), patch_size=16)
    )
    assert len(shapes) == 4  # five images, the first two of one size
    assert sum(int(np.prod(shape)) for shape in shapes) == x.numel()
    assert allocated == x.nbytes
    assert not names & {"aten::cat", "aten::contiguous", "aten::clone", "aten::index"}
    shapes, allocated, _ = copies(lambda: pixel_shuffle(x.view(2, 8, 12, 640)))
    assert [int(np.prod(shape)) for shape in shapes] == [x.numel()]
    assert allocated == x.nbytes


X4, X3 = (1, 4, 4, 2), (1, 16, 2)
ERRORS: list[tuple[str, tuple[int, ...], dict[str, Any], type[errors.UndefinedShuffle], str]] = [
    ("an odd height", (1, 5, 4, 2), {}, errors.UnevenGrid, "grid of 5x4"),
    ("an odd width", (1, 4, 5, 2), {}, errors.UnevenGrid, "grid of 4x5"),
    ("no height", (1, 0, 4, 2), {}, errors.UnevenGrid, "grid of 0x4"),
    ("three axes", (4, 4, 2), {}, errors.LengthMismatch, "3 axes, not 4"),
    ("a factor of 2.5", X4, {"scale_factor": 0.4}, errors.BadFactor, "no whole number"),
    ("a factor near 3", X4, {"scale_factor": 0.3333}, errors.BadFactor, "no whole number"),
    ("nothing", X4, {"scale_factor": 0}, errors.BadFactor, "above 0"),
    ("growth", X4, {"scale_factor": 2}, errors.BadFactor, "at most 1"),
    ("below nothing", X4, {"scale_factor": -0.5}, errors.BadFactor, "above 0"),
    ("not a number", X4, {"scale_factor": NAN}, errors.BadFactor, "nan"),
    ("infinity", X4, {"scale_factor": INF}, errors.BadFactor, "inf"),
    ("v3", X4, {"version": "v3"}, errors.UnknownVersion, "'v3', not one of v1, v2"),
    ("odd, packed", X3, {"sizes": [(16, 256)]}, errors.UnevenGrid, "image 0 .* 1x16"),
    ("odd second", X3, {"sizes": [(32, 96), (16, 64)]}, errors.UnevenGrid, "image 1 "),
    ("half a patch", X3, {"sizes": [(64, 72)]}, errors.UnevenGrid, "64x72 pixels .* patch of 16"),
    ("an empty image", X3, {"sizes": [(0, 64)]}, errors.UnevenGrid, "0x4"),
    ("below zero", X3, {"sizes": [(-32, -32)]}, errors.UnevenGrid, "-2x-2"),
    ("no images", X3, {"sizes": []}, errors.LengthMismatch, "sizes is empty"),
    (
        "three sides",
        X3,
        {"sizes": [(64, 64), (1, 2, 3)]},
        errors.LengthMismatch,
        r"1 is \(1, 2, 3\)",
    ),
    ("one side", X3, {"sizes": [(256,)]}, errors.LengthMismatch, r"0 is \(256,\), must be"),
    ("a bare size", X3, {"sizes": (64, 64)}, errors.LengthMismatch, "image 0 is 64, must be"),
    ("too short", X3, {"sizes": [(64, 96)]}, errors.LengthMismatch, "16 patches .* have 24"),
    ("too long", X3, {"sizes": [(32, 64)]}, errors.LengthMismatch, "16 patches .* have 8"),
    ("two axes", (16, 2), {"sizes": [(64, 64)]}, errors.LengthMismatch, "2 axes, not 3"),
    ("no patch", X3, {"sizes": [(64, 64)], "patch_size": 0}, errors.UnevenGrid, "at least 1"),
    ("packed 2.5", X3, {"sizes": [(64, 64)], "scale_factor": 0.4}, errors.BadFactor, "whole"),
    ("packed v0", X3, {"sizes": [(64, 64)], "version": ""}, errors.UnknownVersion, "''"),
]


@pytest.mark.parametrize(("name", "shape", "options", "kind", "words"), ERRORS)
def test_what_cannot_be_shuffled_is_told(
    name: str, shape: tuple[int, ...], options: dict[str, Any], kind: type[Exception], words: str
) -> None:
    x: Any = counted(*shape)
    shuffle: Any = pixel_shuffle
    if "sizes" in options:
        shuffle, options = pixel_shuffle_packed, {"patch_size": 16, **options}
    with pytest.raises(kind, match=words) as told:
        shuffle(x, **options)
    assert isinstance(told.value, ValueError), name
    if name == "odd second":
        assert told.value.item == 1  # type: ignore[attr-defined]
    if name == "too short":
        assert (told.value.expected, told.value.actual) == (24, 16)  # type: ignore[attr-defined]


COMPILED = """
import sys, torch
from patchmill_client.pixel_shuffle import pixel_shuffle, pixel_shuffle_packed

def both(x, sizes, version):
    packed = pixel_shuffle_packed(x * 2, sizes, patch_size=16, version=version) + 1
    grid = x[:, :16].unflatten(1, (4, 4))
    return packed.sum() + packed.square().sum(), packed, pixel_shuffle(grid, version=version)

sizes = [[(64, 64), (64, 64), (32, 64)], [(32, 32), (128, 64), (32, 96)]]
compiled = torch.compile(both, backend=sys.argv[1], fullgraph=True)
for each in sizes:
    length = sum(h * w for h, w in each) // 256
    results = []
    for run in (both, compiled):
        x = torch.linspace(0, 1, length * 3).view(1, length, 3).requires_grad_()
        total, *tensors = run(x, each, sys.argv[2])
        total.backward()
        results.append([*tensors, x.grad])
    assert all(torch.allclose(a, b) for a, b in zip(*results))
print("the same")
"""


def test_compiled_whole_it_takes_another_factor_at_the_second_call() -> None:
    compiled = torch.compile(pixel_shuffle, backend="eager", fullgraph=True)
    x = torch.arange(72.0).view(1, 6, 6, 2)
    for factor in (1 / 2, 1 / 3):  # the second makes the factor a symbol
        assert torch.equal(compiled(x, factor), pixel_shuffle(x, factor))


@pytest.mark.parametrize("version", ["v1", "v2"])
@pytest.mark.parametrize("backend", ["eager", "aot_eager", "inductor"])
def test_compiled_it_gives_the_same_tokens_and_gradients(backend: str, version: str) -> None:
    done = subprocess.run(  # a process of its own: the compiler warns and keeps state
        [sys.executable, "-W", "ignore", "-c", COMPILED, backend, version],
        env={"PATH": "/usr/bin:/bin", "PYTHONPATH": ":".join(sys.path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout == "the same\n", done.stderr


def test_the_documented_examples_run() -> None:
    page = (Path(__file__).parents[2] / "docs" / "client.md").read_text("utf-8")
    section = page.partition("## Pixel shuffle")[2].partition("## Many pictures")[0]
    blocks = re.findall(r"```python\n(.*?)```", section, re.DOTALL)
    assert len(blocks) == 2
    for block in blocks:
        exec(compile(block, "docs/client.md", "exec"), {})  # noqa: S102 - our own page


@pytest.mark.parametrize("version", ["v1", "v2"])
def test_a_gpu_gives_the_same_tokens(version: str) -> None:
    if not torch.cuda.is_available():
        pytest.skip("there is no GPU")
    x = torch.randn(2, 96, 640)
    tokens = pixel_shuffle_packed(x.cuda(), in_pixels(MIXED, 16), patch_size=16, version=version)
    assert tokens.device.type == "cuda"
    assert torch.equal(tokens.cpu(), defined_packed(x, MIXED, 2, version))
