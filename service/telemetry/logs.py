"""Log lines on standard error: one JSON map a line, or text.

Every record of the process goes through here, uvicorn's and Python's warnings
too. A line written while a request is served carries its id, whoever writes it.
A record's own facts come as `extra={"facts": {...}}`; nothing else of a record is
written, so that nothing gets out by accident.
"""

import json
import logging
import sys
from collections.abc import Mapping
from contextvars import ContextVar
from datetime import UTC, datetime

request_id: ContextVar[str] = ContextVar("request_id", default="")
"""Of the request that is being served, on the event loop and in the threads that work for it."""

access = logging.getLogger("patchmill.access")
"""A line for each answer; silent unless `configure` was told otherwise."""

TALKATIVE = ("PIL", "numba", "asyncio")
"""At level debug, Pillow writes what pictures hold, and numba a line for each bytecode."""


def configure(level: str, form: str, access_log: str) -> None:
    """Send every record of this process to standard error, from `level` up.

    `form` is json or text, `access_log` on or off.
    """
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_Json() if form == "json" else _Text())
    logging.basicConfig(level=level.upper(), handlers=[handler], force=True)
    logging.captureWarnings(capture=True)
    for name in TALKATIVE:
        logging.getLogger(name).setLevel(logging.WARNING)
    access.setLevel(logging.INFO if access_log == "on" else logging.WARNING)


class _Json(logging.Formatter):
    """time, level, logger, message, and where they apply request_id, facts, stack."""

    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, object] = {
            "time": _time(record),
            "level": record.levelname,
            "logger": record.name,
            "message": record.getMessage(),
        }
        if current := request_id.get():
            line["request_id"] = current
        line |= _facts(record)
        if record.exc_info:
            line["stack"] = self.formatException(record.exc_info)
        return json.dumps(line, ensure_ascii=False, default=str)


class _Text(logging.Formatter):
    """`time level logger: message key=value ...`, a stack on the lines below."""

    def format(self, record: logging.LogRecord) -> str:
        # A client's word must not look like a line of its own.
        message = record.getMessage().replace("\n", "\\n")
        line = f"{_time(record)} {record.levelname} {record.name}: {message}"
        if current := request_id.get():
            line += f" request_id={current}"
        line += "".join(f" {name}={value}" for name, value in _facts(record).items())
        if record.exc_info:
            line += "\n" + self.formatException(record.exc_info)
        return line


def _time(record: logging.LogRecord) -> str:
    return datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")


def _facts(record: logging.LogRecord) -> Mapping[str, object]:
    facts: Mapping[str, object] = getattr(record, "facts", {})
    return facts
