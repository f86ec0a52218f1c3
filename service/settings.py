"""All settings, in one frozen object read once from PATCHMILL_* variables.

Units end the names and every range is stated here; all faults are reported at
once. Rooms are handed what they need (`Limits`, a port), never this object.
"""

import difflib
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, SecretStr, ValidationError
from pydantic_core import ErrorDetails
from pydantic_settings import BaseSettings, SettingsConfigDict

from service.cpus import usable_cpus
from service.keys import Keys
from service.types import Budgets, Limits, SixteenBit, Timeouts

PREFIX = "PATCHMILL_"

CPUS_PER_WORKER = 4
REQUESTS_PER_THREAD = 32
"""In progress and waiting: at 5 to 50 ms each, the last waits 0.2 to 2 s."""

Count = Annotated[int, Field(ge=1)]
Share = Annotated[int, Field(ge=0)]
Seconds = Annotated[float, Field(gt=0, le=86_400)]
Pause = Annotated[float, Field(ge=0, le=3_600)]


Access = Literal["key", "open", "off"]


def _origins(given: str) -> str:
    for origin in filter(None, given.split(",")):
        if not re.fullmatch(r"\*|https?://[^/\s*,]+", origin.strip()):
            raise ValueError("an origin is * or http(s)://host[:port], without a path")
    return given


Origins = Annotated[str, AfterValidator(_origins)]


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
    log_format: Literal["json", "text"] = Field(
        "json", description="One JSON map a line, or text for a terminal."
    )
    access_log: Literal["off", "on"] = Field("off", description="A log line for each answer.")
    metrics_port: int = Field(
        0,
        ge=0,
        le=65535,
        description="Port of its own for `/metrics`, on the same host; 0 serves it beside the "
        "other routes.",
    )
    otel: Literal["off", "on"] = Field(
        "off", description="Traces by OpenTelemetry; needs the extra `otel`."
    )

    api_keys: SecretStr | None = Field(
        None,
        description="API keys, or their hashes as `sha256:` and 64 hex digits, separated by "
        "commas.",
    )
    api_keys_file: Path | None = Field(
        None, description="File with one key or hash a line, read again when it changes."
    )
    docs_access: Access = Field(
        "key",
        description="The page and the API document: for those with a key (if there are keys), "
        "for everybody, or not at all.",
    )
    metrics_access: Access = Field("key", description="The same for `/metrics`.")
    cors_origins: Origins = Field(
        "", description="Origins whose pages may call, separated by commas; `*` is any."
    )

    workers: int = Field(
        0,
        ge=0,
        le=256,
        description="Processes; 0 means one for every 4 usable CPUs, at least one.",
    )
    threads: int = Field(
        0,
        ge=0,
        le=1024,
        description="Threads for decoding and kernels, of all workers together; "
        "0 means one per usable CPU.",
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

    queue_length: Share = Field(
        0, description="Requests in progress or waiting; 0 means 32 for each thread."
    )
    body_budget_bytes: Share = Field(
        0, description="Bytes of all bodies in progress; 0 means 512 MiB for each worker."
    )
    pixel_budget: Share = Field(
        0, description="Pixels of all requests at work; 0 means 200,000,000 for each worker."
    )
    answer_budget_bytes: Share = Field(
        0, description="Bytes of all answers until they are sent; 0 means 1 GiB for each worker."
    )
    keep_bytes: Share = Field(
        0, description="Bytes of idle buffers kept for reuse; 0 means 256 MiB for each worker."
    )

    deadline_s: Seconds = Field(
        30, description="Seconds from a request's headers to the start of its answer."
    )
    header_timeout_s: Seconds = Field(10, description="Seconds for the headers of a request.")
    body_timeout_s: Seconds = Field(20, description="Seconds for the body of a request.")
    write_timeout_s: Seconds = Field(30, description="Seconds for the client to take its answer.")
    keep_alive_s: Seconds = Field(75, description="Seconds that an idle connection stays open.")
    stuck_after_s: Seconds = Field(
        30,
        description="Seconds beyond a request's deadline after which a thread that still works "
        "on it makes its worker end.",
    )
    drain_delay_s: Pause = Field(
        5, description="Seconds to accept requests on after SIGTERM, while readiness is 503."
    )
    grace_s: Seconds = Field(
        60, description="Seconds for requests in progress to finish after that."
    )

    @property
    def limits(self) -> Limits:
        return Limits(**self._fields(Limits))

    @property
    def timeouts(self) -> Timeouts:
        return Timeouts(**self._fields(Timeouts))

    @property
    def origins(self) -> tuple[str, ...]:
        """`cors_origins`, one by one."""
        return tuple(each.strip() for each in self.cors_origins.split(",") if each.strip())

    @property
    def keys(self) -> Keys:
        """Who may come in; raises KeysFault."""
        return Keys(self.api_keys.get_secret_value() if self.api_keys else "", self.api_keys_file)

    @property
    def worker_count(self) -> int:
        """The processes to start."""
        return self.workers or max(1, round(usable_cpus() / CPUS_PER_WORKER))

    @property
    def thread_count(self) -> int:
        """The threads of one worker: its share, rounded up."""
        return -(-(self.threads or usable_cpus()) // self.worker_count)

    @property
    def budgets(self) -> Budgets:
        """One worker's share of the totals."""
        return Budgets(
            queue_length=self._share(self.queue_length, REQUESTS_PER_THREAD * self.thread_count),
            body_bytes=self._share(self.body_budget_bytes, 512 * 2**20),
            pixels=self._share(self.pixel_budget, 200_000_000),
            answer_bytes=self._share(self.answer_budget_bytes, 2**30),
        )

    @property
    def kept_share_bytes(self) -> int:
        """One worker's share of `keep_bytes`."""
        return self._share(self.keep_bytes, 256 * 2**20)

    def _share(self, total: int, default: int) -> int:
        return max(1, total // self.worker_count) if total else default

    def _fields(self, kind: type[Limits] | type[Timeouts]) -> dict[str, Any]:
        return {name: getattr(self, name) for name in kind.__dataclass_fields__}


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
