"""Every row of the table through real HTTP: its code, in every body form, in little memory."""

import base64
from pathlib import Path

import msgpack
import pytest

from tests.golden_data import IMAGES
from tests.hostile.memory import peak_growth_bytes
from tests.hostile.rows import Row, When, rows
from tests.service.running import Running, problem

PNG = (IMAGES / "37x19.png").read_bytes()
ROWS = list(rows())
SLACK_BYTES = 2**20
"""Of the interpreter and the allocator, whatever the request."""


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_a_hostile_file_is_refused_by_name(service: Running, row: Row) -> None:
    item = None if row.code == "empty_body" else 0
    assert problem(service.post(row.data)) == (row.status, row.code, item)


@pytest.mark.parametrize("row", ROWS[:-1], ids=lambda row: row.name)
def test_it_is_refused_in_json_too_and_named_among_its_neighbours(
    service: Running, row: Row
) -> None:
    pictures = [base64.b64encode(data).decode() for data in (PNG, row.data, PNG)]
    items = [{"type": "image", "data": picture} for picture in pictures]
    answer = service.client.post("/preprocess", json={"items": items})
    assert problem(answer) == (row.status, row.code, 1)


HEAVY = [row for row in ROWS if row.when is When.HEADER and len(row.data) > 100_000]
BOMBS = [row for row in ROWS if row.name.startswith(("bomb", "long", "header: jpeg-scans"))]


@pytest.mark.parametrize("row", [*HEAVY, *BOMBS], ids=lambda row: row.name)
def test_what_its_header_decides_costs_less_than_twice_the_body(service: Running, row: Row) -> None:
    [worker] = service.worker_pids()
    grown_bytes = peak_growth_bytes(worker, lambda: service.post(row.data))
    assert grown_bytes <= 2 * len(row.data) + SLACK_BYTES


def test_the_service_is_as_before_after_all_of_it(service: Running) -> None:
    [worker] = service.worker_pids()
    for row in ROWS:
        service.post(row.data)
    assert service.worker_pids() == [worker]
    assert service.post(PNG).status_code == 200
    assert service.client.get("/health/ready").status_code == 200


def test_a_mixed_request_of_all_rows_names_the_first(service: Running) -> None:
    items = [{"type": "image", "data": row.data} for row in ROWS[:60]]
    body = msgpack.packb({"items": items})
    answer = service.post(body, headers={"Content-Type": "application/msgpack"})
    assert problem(answer) == (ROWS[0].status, ROWS[0].code, 0)


def test_the_golden_pictures_are_innocent(service: Running) -> None:
    for path in sorted(Path(IMAGES).iterdir())[:10]:
        assert service.post(path.read_bytes()).status_code == 200
