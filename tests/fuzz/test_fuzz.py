"""Whatever is done to a file, it is read or refused by its name: the quick version.

`make soak` tries some hundred times as many (tests/soak/soak_fuzz.py).
"""

from __future__ import annotations

import pytest

from tests.fuzz.loop import run
from tests.fuzz.targets import TARGETS

INPUTS = 60  # of each target: some seconds in all
FEW = {"checkpoints": 12, "signed checkpoints": 12}  # of targets that train


@pytest.mark.parametrize("name", TARGETS)
def test_damaged_files_are_read_or_refused_by_their_name(name: str) -> None:
    inputs = FEW.get(name, INPUTS)
    report = run(name, range(inputs))
    assert not report.found, "\n".join(report.found)
    assert report.tried["refused"] >= inputs / 12
    assert sum(report.tried.values()) == inputs
