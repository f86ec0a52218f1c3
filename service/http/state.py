"""What the routes know of the running service."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from service.errors import NotReady
from service.job import Tools
from service.plan.profiles import Profiles
from service.pool.executor import Executor
from service.types import Limits


@dataclass(slots=True)
class State:
    """Made by the composition root; `tools` is set once the kernels are warm.

    `facts` is what /info tells beside the kernel: versions and settings.
    """

    limits: Limits
    profiles: Profiles
    executor: Executor
    facts: Mapping[str, object]
    tools: Tools | None = field(default=None)

    def ready_tools(self) -> Tools:
        """The tools; raises NotReady while the kernels compile."""
        if self.tools is None:
            raise NotReady("the kernels are being compiled; ask /health/ready")
        return self.tools
