"""One request and its answer, as far as they are told of: in metrics, logs and traces.

Made by the outermost layer, filled in by whoever learns something, and read once
at the end. It holds numbers and our own words; never a payload, and no path,
which the client chose.
"""

import time
from dataclasses import dataclass, field
from enum import StrEnum

from service.telemetry.stages import Stages


class Phase(StrEnum):
    """How far a request had come when its client left."""

    UPLOAD = "upload"
    WORK = "work"
    ANSWER = "answer"


@dataclass(slots=True)
class Exchange:
    """`status` 0 is "no answer was begun"; `reason` is the code of the problem, if it was one."""

    request_id: str
    method: str
    route: str
    stages: Stages = field(default_factory=Stages)
    began_s: float = field(default_factory=time.perf_counter)
    status: int = 0
    reason: str = ""
    received_bytes: int = 0
    sent_bytes: int = 0

    def facts(self) -> dict[str, object]:
        """What a log line says of it."""
        return {
            "method": self.method,
            "route": self.route,
            "status": self.status,
            "reason": self.reason,
            "received_bytes": self.received_bytes,
            "sent_bytes": self.sent_bytes,
            "ms": round((time.perf_counter() - self.began_s) * 1e3, 3),
        }
