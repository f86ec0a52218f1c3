"""What the frontend is told by its environment: FRONTEND_ENGINE_URL and so on."""

from pathlib import Path

from patchmill_client.vllm import Engine, Family, NormalizedBy
from pydantic import Field
from pydantic_settings import BaseSettings, SettingsConfigDict


class Settings(BaseSettings):
    """Each field is a variable FRONTEND_<NAME>; all faults are told at once."""

    model_config = SettingsConfigDict(env_prefix="FRONTEND_", frozen=True, env_ignore_empty=True)

    tokenizer: Path
    """A folder with the checkpoint's tokenizer.json, tokenizer_config.json and chat template."""
    model: str
    """The name that the engine serves its model by (--served-model-name)."""
    engine_url: str = "http://127.0.0.1:8000"
    patchmill_url: str = "http://127.0.0.1:8080"
    profile: str = "kimi-k2.5"
    """patchmill's profile, or an alias of it."""
    family: Family = Family.KIMI
    normalized_by: NormalizedBy = NormalizedBy.ENGINE
    """`sender` for an engine that was started with --no-mm-device-do-normalize."""
    max_model_len: int | None = Field(default=None, ge=1)
    """The engine's --max-model-len; Nemotron's picture sizes depend on it."""
    max_body_bytes: int = Field(default=64 * 2**20, ge=1)
    max_images: int = Field(default=16, ge=1)
    timeout_s: float = Field(default=600, gt=0)
    """Silence of the engine, before its answer or within it."""

    @property
    def engine(self) -> Engine:
        return Engine(self.family, self.normalized_by)
