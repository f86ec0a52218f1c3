"""The real service, a stand-in for the engine, and the frontend between them over sockets."""

import contextlib
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
import uvicorn
from frontend.app import create
from frontend.settings import Settings
from patchmill_client.vllm import Family

from tests import checkpoint, stand_in

service_process = stand_in.client_test_module("service_process")
Connect = Callable[..., httpx.Client]


@pytest.fixture(scope="session")
def service_url() -> Iterator[str]:
    if service_process.interpreter() is None:
        pytest.skip("no Python here can run the service")
    with service_process.running() as service:
        yield service.url


@pytest.fixture(scope="session")
def tokenizers(tmp_path_factory: pytest.TempPathFactory) -> dict[Family, Path]:
    folder = tmp_path_factory.mktemp("tokenizers")
    return {family: checkpoint.write(folder / family, family) for family in Family}


@contextlib.contextmanager
def serving(settings: Settings) -> Iterator[httpx.Client]:
    """A client of a frontend that runs until the block ends."""
    server = uvicorn.Server(uvicorn.Config(create(settings), port=0, log_level="warning"))
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        while not server.started:
            assert thread.is_alive()
        port = server.servers[0].sockets[0].getsockname()[1]
        with httpx.Client(
            base_url=f"http://127.0.0.1:{port}", timeout=120, trust_env=False
        ) as client:
            yield client
    finally:
        server.should_exit = True
        thread.join()


@pytest.fixture
def engine() -> Iterator[stand_in.Engine]:
    with stand_in.running("uint8") as made:
        yield made
        assert made.died_of is None


@pytest.fixture
def connect(
    service_url: str,
    tokenizers: dict[Family, Path],
    engine: stand_in.Engine,
    capfd: pytest.CaptureFixture[str],
) -> Iterator[Connect]:
    """Makes frontends before the stand-in, Kimi's where nothing else is said.

    Whatever a test asks of them: none logs a traceback.
    """
    with contextlib.ExitStack() as stack:

        def make(**changed: Any) -> httpx.Client:
            family = changed.get("family", Family.KIMI)
            settings = Settings(
                **{
                    "tokenizer": tokenizers[family],
                    "model": "m",
                    "engine_url": engine.url,
                    "patchmill_url": service_url,
                    **changed,
                }
            )
            return stack.enter_context(serving(settings))

        yield make
    assert "Traceback" not in capfd.readouterr().err
