"""Where the processes of one service put their numbers together.

Each process writes its values into files of its own, mapped into memory, in a
folder that the supervisor makes before the first worker and removes after the
last; whoever is asked adds up the files. prometheus_client decides on its first
import whether values are shared, so the folder has to be there before anything
imports `telemetry.metrics`.
"""

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager

VARIABLE = "PROMETHEUS_MULTIPROC_DIR"


@contextmanager
def folder() -> Iterator[None]:
    """A new folder for this process and those that it starts, until the block ends.

    Always a new one, whatever the environment says: values of an earlier run
    would be added to those of this one.
    """
    with tempfile.TemporaryDirectory(prefix="patchmill-metrics-", ignore_cleanup_errors=True) as at:
        os.environ[VARIABLE] = at
        try:
            yield
        finally:
            del os.environ[VARIABLE]


def is_shared() -> bool:
    """Whether this process has such a folder."""
    return VARIABLE in os.environ
