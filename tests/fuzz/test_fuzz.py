"""Whatever is done to a file, it is read or refused by its name: the quick version.

`make soak` tries some hundred times as many (tests/soak/soak_fuzz.py).
"""

from __future__ import annotations

import pytest

from tests.fuzz.loop import run
from tests.fuzz.targets import TARGETS

INPUTS = 60  # of each target: some seconds in all


@pytest.mark.parametrize("name", TARGETS)
def test_damaged_files_are_read_or_refused_by_their_name(name: str) -> None:
    report = run(name, range(INPUTS))
    assert not report.found, "\n".join(report.found)
    assert report.tried["refused"] > INPUTS / 6
    assert sum(report.tried.values()) == INPUTS
