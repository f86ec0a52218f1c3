"""Log lines on standard error, one a line, with the level first for whoever greps."""

import logging
import sys


def configure(level: str) -> None:
    """Send every log record of this process to standard error, from `level` up."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(
        logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s", "%Y-%m-%dT%H:%M:%S%z")
    )
    logging.basicConfig(level=level.upper(), handlers=[handler], force=True)
