"""Clients that leave before they have all of their answer, at every stage of it."""

import http.client
import json
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Any

import httpx
import pytest

from tests.conftest import Connect
from tests.stand_in import Engine
from tests.test_frontend import ask, body

PATIENCE_S = 30


@contextmanager
def connection(client: httpx.Client) -> Iterator[http.client.HTTPConnection]:
    """One of this test's own, which it can close at any byte."""
    url = client.base_url
    with closing(http.client.HTTPConnection(url.host, url.port, timeout=PATIENCE_S)) as made:
        yield made


@pytest.mark.parametrize("names", [[], ["37x19.png"]])
@pytest.mark.parametrize("streamed", [{}, {"stream": True}])
def test_a_client_that_leaves_before_the_first_token_ends_the_engine_s_work(
    connect: Connect, engine: Engine, streamed: dict[str, Any], names: list[str]
) -> None:
    engine.hold_after = 0
    with connection(connect()) as leaving:
        leaving.request("POST", "/v1/chat/completions", json.dumps(body(*names, **streamed)))
        assert engine.holding.wait(PATIENCE_S)
    assert engine.left.wait(PATIENCE_S)


def test_a_client_that_leaves_within_a_stream_ends_the_engine_s_work(
    connect: Connect, engine: Engine
) -> None:
    engine.hold_after = 1
    with connection(connect()) as leaving:
        leaving.request("POST", "/v1/chat/completions", json.dumps(body(stream=True)))
        with leaving.getresponse() as response:
            assert b"assistant" in response.readline()
        assert engine.holding.wait(PATIENCE_S)
        assert not engine.left.is_set()
    assert engine.left.wait(PATIENCE_S)


def test_a_client_that_leaves_within_its_upload_reaches_nobody_and_is_not_logged(
    connect: Connect, engine: Engine
) -> None:
    """The fixture sees to the log."""
    client = connect()
    with connection(client) as leaving:
        leaving.putrequest("POST", "/v1/chat/completions")
        leaving.putheader("Content-Length", "1000")
        leaving.endheaders(b'{"model": ')
    ask(client, body())
    assert len(engine.seen) == 1
