"""Batches for a vLLM engine: features, prompts and requests, checked before they are sent."""

from patchmill_client.vllm.engine import KIMI, NEMOTRON, Engine, Family, NormalizedBy
from patchmill_client.vllm.prompt import Prompt, Range, expand_placeholders
from patchmill_client.vllm.request import features, generate_request
from patchmill_client.vllm.validate import validate

__all__ = [
    "KIMI",
    "NEMOTRON",
    "Engine",
    "Family",
    "NormalizedBy",
    "Prompt",
    "Range",
    "expand_placeholders",
    "features",
    "generate_request",
    "validate",
]
