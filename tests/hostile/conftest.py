"""One service for all hostile tests; a stack in its log would be a fault of ours."""

from collections.abc import Iterator

import pytest

from tests.hostile.memory import RETURNED_AT_ONCE
from tests.service.running import Running, running


@pytest.fixture(scope="package")
def service() -> Iterator[Running]:
    with running(RETURNED_AT_ONCE) as started:
        yield started
        log = "".join(started.log)
        assert "Traceback" not in log
        assert "ERROR" not in log
