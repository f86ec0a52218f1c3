"""Both clients as one, so that each test of behaviour holds for both."""

import asyncio
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from patchmill_client import AsyncClient, Batch, Client, Outcome, Pace

PROXIES = ("http_proxy", "https_proxy", "all_proxy", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY")


class Blocking:
    """An `AsyncClient` behind the interface of a `Client`."""

    def __init__(self, *given: Any, **options: Any) -> None:
        self._runner = asyncio.Runner()
        self._client = AsyncClient(*given, **options)

    def preprocess(self, *given: Any, **options: Any) -> Batch:
        return self._runner.run(self._client.preprocess(*given, **options))

    def map(self, *given: Any, **options: Any) -> Iterator[Outcome]:
        outcomes = self._client.map(*given, **options)
        try:
            while True:
                try:
                    yield self._runner.run(anext(outcomes))
                except StopAsyncIteration:
                    return
        finally:
            self._runner.run(outcomes.aclose())

    def models(self) -> dict[str, Any]:
        return self._runner.run(self._client.models())

    def info(self) -> dict[str, Any]:
        return self._runner.run(self._client.info())

    def ready(self) -> bool:
        return self._runner.run(self._client.ready())

    def close(self) -> None:
        self._runner.run(self._client.aclose())
        self._runner.close()


class Clock:
    """Time that passes only by sleeping, and chance that is always the same."""

    def __init__(self, chance: float = 0.5) -> None:
        self.now = 1000.0
        self.slept: list[float] = []
        self.pace = Pace(lambda: self.now, lambda: chance, self.sleep, self.sleep_async)

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds

    async def sleep_async(self, seconds: float) -> None:
        self.sleep(seconds)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture(params=[Client, Blocking], ids=["sync", "async"])
def connect(
    request: pytest.FixtureRequest, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Callable[..., Any]]:
    """Makes clients of one kind, with a clock of our own, and closes them."""
    for name in PROXIES:
        monkeypatch.delenv(name, raising=False)
    made: list[Any] = []

    def make(url: str, **options: Any) -> Any:
        made.append(request.param(url, **{"pace": clock.pace, **options}))
        return made[-1]

    yield make
    for client in made:
        client.close()
