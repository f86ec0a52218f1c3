"""The dependency audit reads what pip-audit says, not its exit code: that calls unknown sound."""

import pytest

from scripts.audit import told

SOUND = {"name": "numpy", "version": "2.4.6", "vulns": []}
HOLED = {
    "name": "pillow",
    "version": "9.0.0",
    "vulns": [{"id": "PYSEC-1", "fix_versions": ["9.0.1"]}],
}
UNKNOWN = {"name": "pillow", "skip_reason": "not found"}


@pytest.mark.parametrize(
    ("packages", "line"),
    [
        ([], "a.txt: not audited, no vulnerability service answers here"),
        ([UNKNOWN, UNKNOWN], "a.txt: not audited, no vulnerability service answers here"),
        ([SOUND, UNKNOWN], "a.txt: 1 packages audited, 1 not"),
        ([SOUND], "a.txt: 1 packages audited, 0 not"),
    ],
)
def test_what_was_not_audited_is_said_and_is_no_fault(
    capsys: pytest.CaptureFixture[str], packages: list[dict[str, object]], line: str
) -> None:
    assert told("a.txt", packages) == []
    assert capsys.readouterr().out == line + "\n"


def test_a_known_vulnerability_is_told_with_its_cure() -> None:
    assert told("a.txt", [SOUND, HOLED]) == ["pillow 9.0.0: PYSEC-1, fixed in ['9.0.1']"]
