"""What the routes know of the running service."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from service.errors import Draining, NotReady
from service.job import Tools
from service.plan.profiles import Profiles
from service.pool.admission import Admission
from service.pool.budget import Budget
from service.pool.executor import Executor
from service.pool.readers import Readers
from service.telemetry.metrics import Metrics
from service.telemetry.traces import Traces
from service.types import Budgets, Limits, Timeouts


@dataclass(slots=True)
class State:
    """Made by the composition root; `tools` is set once the kernels are warm.

    `facts` is what /info tells beside the kernel and current use: versions and
    settings. `traces` is None where nobody wants them. `draining` is set when the worker is
    about to end.
    """

    limits: Limits
    timeouts: Timeouts
    budgets: Budgets
    profiles: Profiles
    executor: Executor
    admission: Admission
    budget: Budget
    readers: Readers
    metrics: Metrics
    facts: Mapping[str, object]
    traces: Traces | None = field(default=None)
    tools: Tools | None = field(default=None)
    draining: bool = field(default=False)

    def ready_tools(self) -> Tools:
        """The tools; raises NotReady while the kernels compile."""
        if self.tools is None:
            raise NotReady("the kernels are being compiled; ask /health/ready")
        return self.tools

    def check_ready(self) -> None:
        """Raises NotReady while the kernels compile, Draining when the worker is about to end."""
        self.ready_tools()
        if self.draining:
            raise Draining("requests are still taken for a moment; send new ones elsewhere")

    def in_use(self) -> dict[str, int]:
        """What this worker holds now, under the names of its budgets, and the pool's idle memory.

        `waiting` are those of the queue whose work has not begun.
        """
        buffers = self.tools.press.buffers if self.tools else None
        return {
            "queue_length": self.admission.tickets,
            "waiting": self.executor.waiting(),
            "body_bytes": self.admission.body_bytes,
            "pixels": self.budget.pixels,
            "answer_bytes": self.budget.answer_bytes,
            "kept_bytes": buffers.kept_bytes if buffers else 0,
        }
