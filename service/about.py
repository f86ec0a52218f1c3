"""What a worker knows of itself that does not change: versions, settings, budgets, memory."""

import platform
from dataclasses import asdict
from importlib.metadata import version

from service.codec import decode
from service.settings import Settings, variable
from service.types import Budgets
from service.wire.pack import WIRE_VERSION

BASE_BYTES = 300 * 2**20
"""A worker that has served every format and model once, before any large picture."""
THREAD_BYTES = 40 * 2**20
"""Rows and weights that the kernels hold for one picture, and the decoders' own state."""
PIXEL_BYTES = 21
"""Of one source pixel while it is decoded: the most of all formats (WebP with alpha)."""


def facts(settings: Settings) -> dict[str, object]:
    """The constant part of /info."""
    budgets = settings.budgets
    return {
        "version": version("patchmill"),
        "wire_version": WIRE_VERSION,
        "workers": settings.worker_count,
        "threads": settings.thread_count,
        "budgets": {
            "worker": asdict(budgets),
            "total": {
                name: share * settings.worker_count for name, share in asdict(budgets).items()
            },
        },
        "peak_memory_bytes": peak_memory_bytes(settings, budgets),
        "settings": {
            variable(name): value for name, value in settings.model_dump(mode="json").items()
        },
        "versions": {
            "python": platform.python_version(),
            **{name: version(name) for name in ("numpy", "numba", "fastapi", "uvicorn", "msgpack")},
            **decode.versions(),
        },
    }


def build() -> dict[str, str]:
    """What tells one build from another, as labels of a metric."""
    return {
        "version": version("patchmill"),
        "wire_version": str(WIRE_VERSION),
        "python": platform.python_version(),
        **{name: version(name) for name in ("numpy", "numba", "pillow")},
    }


def peak_memory_bytes(settings: Settings, budgets: Budgets) -> int:
    """What all workers together hold at most; docs/configuration.md tells the sum in words."""
    pixels = min(budgets.pixels, settings.thread_count * settings.max_pixels)
    worker = (
        BASE_BYTES
        + THREAD_BYTES * settings.thread_count
        + budgets.body_bytes
        + settings.max_body_bytes  # one body is copied whole at a time
        + PIXEL_BYTES * pixels
        + budgets.answer_bytes
        + settings.kept_share_bytes
    )
    return worker * settings.worker_count
