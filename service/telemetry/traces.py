"""What the service asks of a tracer; `telemetry.otel` is the one there is."""

from collections.abc import Mapping
from typing import Protocol

from service.telemetry.exchange import Exchange


class Traces(Protocol):
    """Tells of requests that are over."""

    def tell(self, exchange: Exchange, headers: Mapping[str, str]) -> None:
        """Send a span for the request and one for each of its stages."""

    def close(self) -> None:
        """Send what is left; takes up to three seconds where nobody listens."""
