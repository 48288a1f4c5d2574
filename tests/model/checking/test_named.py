"""Implementations as students write them: each is told what the table says that it deserves."""

import pytest

from headlight.model.checking import judge
from tests.model.checking.table import ROWS, SAMPLE, UNNAMED, Row


def told(row: Row) -> list[str]:
    """All names that it is given, of which the first is that of the verdict."""
    verdict = judge.verdict(row.part, row.make)
    assert all(len(line) < 400 for line in str(verdict).splitlines())
    assert " ()" not in str(verdict)
    return ["right" if verdict.ok else verdict.name, *(name for name, _ in verdict.notes)]


def check_row(row: Row) -> None:
    names = told(row)
    assert row.told in names
    # Right code is never called wrong, and wrong code never gets another fault's name.
    deserved = ("right", "cannot tell") if row.is_right else (*UNNAMED, "right", row.deserves)
    assert names[0] in deserved


@pytest.mark.parametrize("row", SAMPLE, ids=lambda row: f"{row.style}:{row.deserves}")
def test_it_is_told_what_it_deserves(row):
    check_row(row)


@pytest.mark.long
@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row.style}:{row.deserves}")
def test_everyone_is_told_what_they_deserve(row):
    check_row(row)


def test_the_table_holds_enough():
    """And says itself how often it is enough: the bars that the judge has to clear."""
    right, wrong = ([row for row in ROWS if row.is_right is is_right] for is_right in (True, False))
    assert len(right) >= 110 and len(wrong) >= 150
    assert sum(row.told == "right" for row in right) >= 0.85 * len(right)
    assert sum(row.told == row.deserves for row in wrong) >= 0.8 * len(wrong)
