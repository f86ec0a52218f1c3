"""All settings, in one frozen object read once from PATCHMILL_* variables.

Units end the names and every range is stated here; all faults are reported at
once. Rooms are handed what they need (`Limits`, a port), never this object.
"""

import difflib
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, ValidationError
from pydantic_core import ErrorDetails
from pydantic_settings import BaseSettings, SettingsConfigDict

from service.types import Limits, SixteenBit

PREFIX = "PATCHMILL_"

Count = Annotated[int, Field(ge=1)]


class SettingsFault(ValueError):
    """Some settings are wrong; one line for each."""


class Settings(BaseSettings):
    """Every setting with its default, range and meaning."""

    model_config = SettingsConfigDict(
        env_prefix=PREFIX, frozen=True, extra="forbid", env_ignore_empty=True
    )

    host: str = Field("127.0.0.1", description="Address to listen on.")
    port: int = Field(8080, ge=0, le=65535, description="TCP port; 0 takes a free one.")
    uds: Path | None = Field(None, description="Unix socket to listen on instead of a port.")
    root_path: str = Field("", description="Path prefix that a proxy strips before us.")
    log_level: Literal["debug", "info", "warning", "error"] = Field(
        "info", description="Least severe log line that is written."
    )

    threads: int = Field(
        0,
        ge=0,
        le=1024,
        description="Threads for decoding and kernels; 0 means one per usable CPU.",
    )
    kernel: Literal["auto", "simd", "portable", "numpy"] = Field(
        "auto",
        description="`auto` takes vectors where the CPU has them; the others force a slower way to "
        "the same bytes.",
    )
    default_model: str = Field("kimi-k2.5", description="Profile for requests that name none.")
    profiles_dir: Path | None = Field(
        None, description="Folder of further profiles (`*.toml`), beside the built-in ones."
    )
    sixteen_bit: SixteenBit = Field(
        SixteenBit.COMPAT,
        description="16-bit grey: `compat` clips to 255 as Pillow does, "
        "`scale` keeps the top 8 bits.",
    )

    max_body_bytes: Count = Field(64 * 2**20, description="Bytes of one request body.")
    max_items: int = Field(64, ge=1, le=4096, description="Pictures and video chunks per request.")
    max_pixels: Count = Field(50_000_000, description="Pixels of one picture.")
    max_request_pixels: Count = Field(
        200_000_000, description="Pixels of all pictures of a request together."
    )
    max_side_px: Count = Field(65_535, description="Pixels along the longer side of a picture.")
    max_scans: Count = Field(64, description="Scans of one JPEG.")
    max_scan_pixels: Count = Field(
        500_000_000, description="Scans times pixels of one multi-scan JPEG."
    )
    max_answer_bytes: int = Field(
        512 * 2**20, ge=1, lt=2**32, description="Bytes of one answer's patches."
    )

    keep_bytes: int = Field(
        512 * 2**20, ge=0, description="Bytes of idle buffers that are kept for reuse."
    )

    @property
    def limits(self) -> Limits:
        return Limits(**{name: getattr(self, name) for name in Limits.__dataclass_fields__})

    @property
    def thread_count(self) -> int:
        """The threads to start: as set, or one for each CPU this process may use."""
        return self.threads or len(os.sched_getaffinity(0))


def load(given: Mapping[str, object]) -> Settings:
    """Settings from the environment, `given` first; SettingsFault names all faults."""
    try:
        return Settings(**given)  # type: ignore[arg-type]
    except ValidationError as error:
        raise SettingsFault("\n".join(_line(fault) for fault in error.errors())) from error


def _line(fault: ErrorDetails) -> str:
    return f"{variable(str(fault['loc'][0]))}={fault['input']!r}: {fault['msg']}"


def variable(name: str) -> str:
    """The environment variable of a setting: max_pixels -> PATCHMILL_MAX_PIXELS."""
    return PREFIX + name.upper()


def misspelt(environ: Mapping[str, str]) -> list[str]:
    """Names with our prefix that no setting has, each with its nearest neighbour.

    A warning and not a fault: Kubernetes sets PATCHMILL_SERVICE_HOST and its
    kin in every pod beside a Service named patchmill.
    """
    known = [variable(name) for name in Settings.model_fields]
    lines = []
    for name in sorted(environ):
        if name.upper().startswith(PREFIX) and name.upper() not in known:
            near = difflib.get_close_matches(name.upper(), known, n=1)
            lines.append(f"{name} is not a setting" + (f"; {near[0]} is" if near else ""))
    return lines
