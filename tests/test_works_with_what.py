"""docs/reference/works-with-what.md is true: each of its cells is tried."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.works_with_what import PAGE, ROWS, TARGETS, Row, Target, page, read, tried

SHOWN = read(PAGE.read_text(encoding="utf-8"))
QUICK = [row for row in ROWS if not row.slow]
SLOW = [row for row in ROWS if row.slow]


def test_the_page_is_as_it_would_be_written() -> None:
    assert page(SHOWN) == PAGE.read_text(encoding="utf-8")


@pytest.mark.parametrize("target", TARGETS, ids=str)
@pytest.mark.parametrize(
    "rows", [QUICK, pytest.param(SLOW, marks=pytest.mark.soak)], ids=["quick", "slow"]
)
def test_what_the_page_says_of_a_target_is_so(
    target: Target, rows: list[Row], tmp_path: Path
) -> None:
    found = tried(target, tmp_path, rows)
    assert len(found) >= len(rows)
    assert found == {cell: SHOWN[cell] for cell in found}
