"""The dynamic resolution rule of the Nemotron family: sizes that share one budget of patches.

The sizes of all pictures of a request and integers go in, a `Plan` for each
comes out; no pixel is touched. A picture keeps about its own size in patches,
shrinks to its budget, grows to a minimum, and ends at whole tokens. When all
together have more patches than the model's context has room for, budgets
shrink in rounds.

The arithmetic is the reference's in Python integers and floats, operation for
operation, with `round` to even. Source: vLLM 0.32's processor of this family;
held by the rows of tests/golden/nemotron/plan.csv.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from service.errors import UnplannableSize, at_item
from service.plan.profiles import DynamicSizes, Profile
from service.types import Budget, Grid, Plan, Size

MAX_ROUNDS = 10


def plan(sizes: Sequence[Size], profile: Profile, asked: Budget) -> list[Plan]:
    """Plan the pictures of one request, of these upright sizes, in order.

    What `asked` leaves open is the profile's. Raises UnplannableSize, with the
    item at fault, where the reference divides by zero: a picture so narrow that
    within its budget no patch is left across.
    """
    rule = _Rule.of(profile, asked)
    grids = _shared(sizes, rule, rule.available(len(sizes)))
    return [_plan(grid, profile) for grid in grids]


@dataclass(frozen=True, slots=True)
class _Rule:
    """The profile's numbers, or the request's."""

    patch_px: int
    merge: int
    min_num_patches: int
    max_num_patches: int
    tokens: int
    """What the context has room for."""

    @classmethod
    def of(cls, profile: Profile, asked: Budget) -> "_Rule":
        sizes = profile.sizes
        assert isinstance(sizes, DynamicSizes)

        def number(name: str) -> int:
            given: int | None = getattr(asked, name)
            value: int = getattr(sizes, name) if given is None else given
            return value

        return cls(
            patch_px=profile.patch_px,
            merge=profile.merge,
            min_num_patches=number("min_num_patches"),
            max_num_patches=number("max_num_patches"),
            tokens=number("max_model_len") - number("text_len") - sizes.reserved_tokens,
        )

    def available(self, pictures: int) -> int:
        """Patches that all pictures may have together."""
        return max(self.tokens * self.merge**2, self.min_num_patches * pictures)

    def first_budget(self, available: int) -> int:
        """Of each picture; a maximum of 0 is none."""
        most = min(available, self.max_num_patches) if self.max_num_patches else available
        return max(most, self.min_num_patches)


def _shared(sizes: Sequence[Size], rule: _Rule, available: int) -> list[Grid]:
    """A grid for each size, in rounds until they fit together or ten are over."""
    budgets = [rule.first_budget(available)] * len(sizes)
    grids: list[Grid] = []
    for _ in range(MAX_ROUNDS):
        grids = []
        for index, (size, budget) in enumerate(zip(sizes, budgets, strict=True)):
            with at_item(index):
                grids.append(_grid(size, budget, rule))
        counts = [grid.patches for grid in grids]
        if sum(counts) <= available:
            break
        lowered = [
            max(rule.min_num_patches, int(count * available / sum(counts))) for count in counts
        ]
        if not any(new < old for new, old in zip(lowered, budgets, strict=True)):
            lowered = [rule.min_num_patches] * len(sizes)
        budgets = lowered
    return grids


def _grid(size: Size, budget: int, rule: _Rule) -> Grid:
    """One picture's patches within a budget, its sides whole tokens where it can be."""
    high = round(size.height / rule.patch_px + 0.5)
    wide = round(size.width / rule.patch_px + 0.5)
    factor = min(math.sqrt(budget / (high * wide)), 1.0)
    h, w = math.floor(factor * high), math.floor(factor * wide)
    if h * w == 0:
        raise UnplannableSize(
            f"a picture of {size} has no patch across within its budget of {budget} patches"
        )
    if h * w < rule.min_num_patches < budget:
        grow = math.sqrt(rule.min_num_patches / (h * w))
        h, w = math.ceil(grow * h), math.ceil(grow * w)
    h = _whole_tokens(h, w, budget, rule.merge)
    w = _whole_tokens(w, h, budget, rule.merge)
    return Grid(1, h, w)


def _whole_tokens(side: int, other: int, budget: int, merge: int) -> int:
    """Up to a multiple of `merge` if the budget allows it, else down, but not to none."""
    rest = side % merge
    if rest == 0:
        return side
    up = side + merge - rest
    return up if up * other <= budget else max(merge, side - rest)


def _plan(grid: Grid, profile: Profile) -> Plan:
    return Plan(
        resized=Size(grid.h * profile.patch_px, grid.w * profile.patch_px),
        grid=grid,
        patch_px=profile.patch_px,
        num_tokens=grid.patches // profile.merge**2,
    )
