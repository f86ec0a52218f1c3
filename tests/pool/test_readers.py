"""Who is cut off while others wait: readers that would not be done in time."""

import pytest

from service.pool.readers import PATIENCE_S, Readers

DEADLINE_S = 30.0
SIZE = 3_000_000


class Client:
    """A reader that has taken so many bytes, and whether it was cut off."""

    def __init__(self) -> None:
        self.taken = 0
        self.cut = False

    def left(self) -> int:
        return SIZE - self.taken

    def end(self) -> None:
        self.cut = True


@pytest.mark.parametrize(
    ("age_s", "taken", "cut"),
    [
        (PATIENCE_S - 0.1, 0, False),
        (PATIENCE_S, 0, True),
        (PATIENCE_S, 199_999, True),
        (PATIENCE_S, 200_000, False),  # a fifteenth in a fifteenth of the time
        (20, 1_999_999, True),
        (20, 2_000_000, False),
    ],
)
def test_a_reader_gives_way_when_its_pace_is_too_slow(
    age_s: float,
    taken: int,
    cut: bool,  # noqa: FBT001
) -> None:
    now_s = [100.0]
    readers, client = Readers(DEADLINE_S, lambda: now_s[0]), Client()
    readers.begin(client.left, client.end)
    now_s[0] += age_s
    client.taken = taken
    readers.give_way()
    assert client.cut is cut


def test_one_that_is_done_is_left_alone() -> None:
    now_s = [0.0]
    readers, client = Readers(DEADLINE_S, lambda: now_s[0]), Client()
    readers.end(readers.begin(client.left, client.end))
    now_s[0] += DEADLINE_S
    readers.give_way()
    assert not client.cut
