"""An error that is not the user's: one line, a file with the traceback, and an exit code of its
own."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from vrgcn.cli import info
from vrgcn.cli.info import InfoOptions
from vrgcn.files.mistakes import InputError


def raising(error: Exception):
    def run(options: InfoOptions) -> None:
        raise error

    return run


@pytest.fixture(autouse=True)
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Files of bugs lie in the folder of the test."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))


@pytest.mark.parametrize("error", [ValueError("not enough values"), TypeError("x"), KeyError("y")])
def test_a_bug_is_not_shown_as_the_users_mistake(error, vrgcn, monkeypatch, tmp_path):
    monkeypatch.setattr(info, "run", raising(error))
    code, out, err = vrgcn("info", "communities")
    assert code == 3
    assert f"this is a bug of vrgcn: {type(error).__name__}: " in err
    assert "Traceback" not in out + err
    (path,) = re.findall(r"The traceback is in (\S+):", err)
    text = Path(path).read_text(encoding="utf-8")
    assert text.startswith("vrgcn info communities\nvrgcn ")
    assert "Traceback (most recent call last)" in text
    assert "in run\n    raise error" in text


def test_a_mistake_of_the_user_is_one_line(vrgcn, monkeypatch, tmp_path):
    monkeypatch.setattr(info, "run", raising(InputError("edges.csv: row 3 has no target")))
    code, _, err = vrgcn("info", "communities")
    assert (code, err) == (1, "vrgcn: error: edges.csv: row 3 has no target\n")
    assert not list(tmp_path.glob("vrgcn-bug-*"))


def test_passwords_are_not_written(vrgcn, monkeypatch, tmp_path):
    address = "postgresql://me:secret@host/shop"
    monkeypatch.setattr(info, "run", raising(RuntimeError(f"cannot reach {address}")))
    _, _, err = vrgcn("info", "communities")
    (path,) = tmp_path.glob("vrgcn-bug-*")
    assert "secret" not in err + path.read_text(encoding="utf-8")
