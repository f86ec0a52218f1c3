"""One running service for all service tests that need no settings of their own."""

from collections.abc import Iterator

import pytest

from tests.service.running import Running, running


@pytest.fixture(scope="session")
def service() -> Iterator[Running]:
    with running() as started:
        yield started
        assert "Traceback" not in "".join(started.log), "a client's data made the service fail"
