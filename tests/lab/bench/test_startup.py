"""The mistakes whose errors are timed."""

from __future__ import annotations

import pytest

from lab.bench import startup
from tests.messages import refused
from vrgcn.cli import main


@pytest.mark.parametrize("line", startup.MISTAKES)
def test_every_mistake_is_an_error_in_an_empty_folder(line, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as ended:
        main(line.split())
    assert ended.value.code in (1, 2)
    assert "error:" in capsys.readouterr().err


def test_what_is_no_mistake_is_not_timed_as_one(tmp_path):
    with refused(RuntimeError):
        startup._mistake(["--help"], str(tmp_path))
