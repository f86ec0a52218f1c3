"""What both clients take where the caller says nothing."""

DEFAULT_URL = "http://127.0.0.1:8080"
"""Where a service listens that was started without settings."""
DEFAULT_MAX_ANSWER_BYTES = 512 * 2**20
"""The service's own default for its largest answer."""
DEFAULT_CONNECTIONS = 16
DEFAULT_CONCURRENCY = 4
"""Requests at a time in `map`: a few cores stay busy while answers travel."""
