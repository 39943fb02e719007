"""Studies as they are run: with words on the command line."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import ModuleType

import pytest


@pytest.fixture
def study(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., str]:
    """Run `python -m lab.studies.NAME ARGUMENTS` in this process; gives its output."""

    def run(module: ModuleType, *arguments: object) -> str:
        monkeypatch.setattr(sys, "argv", [module.__name__, *map(str, arguments)])
        module.main()
        return capsys.readouterr().out

    return run
