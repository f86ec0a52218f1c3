"""Weights for a model that has none: random by each tensor's name, the same at every start.

A plugin of vLLM, loaded in the engine's processes by its entry point. vLLM's own
`--load-format dummy` draws so small that no pixel moves a log-probability; here
every layer keeps the scale of what goes through it.
"""

import math
import zlib
from typing import Any


def register() -> None:
    """Make `--load-format seeded` known."""
    import torch  # noqa: PLC0415 - only the engine has it
    from vllm.model_executor.model_loader import register_model_loader  # noqa: PLC0415
    from vllm.model_executor.model_loader.base_loader import BaseModelLoader  # noqa: PLC0415

    @register_model_loader("seeded")
    class Seeded(BaseModelLoader):  # type: ignore[misc]
        def download_model(self, model_config: Any) -> None:
            """Nothing to download."""

        def load_weights(self, model: Any, model_config: Any) -> None:  # noqa: ARG002
            for name, parameter in model.named_parameters():
                if parameter.is_floating_point():
                    chance = torch.Generator().manual_seed(zlib.crc32(name.encode()))
                    drawn = torch.randn(parameter.shape, generator=chance)
                    parameter.data.copy_(_scaled(name, drawn))


def _scaled(name: str, drawn: Any) -> Any:
    if drawn.ndim == 1:
        return 1 + drawn / 10 if "norm" in name and name.endswith("weight") else drawn / 50
    if "embed" in name:
        return drawn
    # Experts are stacked (E, out, in); every other tensor is (out, all that one output sees).
    seen = drawn.shape[-1] if drawn.ndim == 3 else math.prod(drawn.shape[1:])
    return drawn / math.sqrt(seen)
