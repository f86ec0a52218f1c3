"""How the arrival rate moves over a run: plain functions of time.

A shape gives the share of the base rate that is asked for at a moment. Overload is part of
`ramp` and `spike`: there the service must shed in good order and recover.
"""

from collections.abc import Callable

OVERLOAD = 6.0
"""Times the base rate at the top of `ramp` and `spike`."""

Shape = Callable[[float], float]
"""From the share of the run that has passed, 0 to 1, to the share of the base rate."""


def steady(_: float) -> float:
    """The base rate throughout."""
    return 1.0


def ramp(passed: float) -> float:
    """From a quarter up to overload, and back the same way."""
    height = 1 - abs(2 * passed - 1)
    return 0.25 + (OVERLOAD - 0.25) * height


def spike(passed: float) -> float:
    """The base rate, and overload at once for the sixth of the run in its middle."""
    return OVERLOAD if 5 / 12 <= passed < 7 / 12 else 1.0


SHAPES: dict[str, Shape] = {"steady": steady, "ramp": ramp, "spike": spike, "soak": steady}
"""`soak` is steady, lasts longer and has gates of its own: memory must not grow."""

DEFAULT_SECONDS = {"steady": 60.0, "ramp": 60.0, "spike": 60.0, "soak": 1800.0}


def arrivals(shape: Shape, base_per_s: float, seconds: float) -> float:
    """How many requests the shape asks for in the whole run: its integral, in 1000 steps."""
    steps = 1000
    shares = [shape((step + 0.5) / steps) for step in range(steps)]
    return sum(shares) / steps * base_per_s * seconds
