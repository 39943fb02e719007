"""The command of the league: what has a record is not run again, failures do not stop it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from lab.harness.records import read_lines
from lab.league import __main__ as league
from lab.league.real_graphs import Entry
from lab.league.rows import Row
from tests.messages import refused
from vrgcn import Graph


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch, small: Graph) -> list[str]:
    """Every graph is the small one; lists what is run."""
    monkeypatch.setattr(league, "data_folder", Path)
    monkeypatch.setattr(league, "load", lambda name, split, folder: small)
    return []


def row(calls: list[str], name: str) -> Row:
    def run(entry: Entry) -> dict[str, Any]:
        calls.append(f"{entry.name} {name}")
        if name == "bad":
            raise ValueError("it cannot be")
        return {"val": 0.5, "test": 0.5}

    return Row("variant", run)


def test_a_stopped_run_goes_on_and_a_failure_is_tried_again(
    calls: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "league.jsonl"
    league.run(out, ["cora"], {"good": row(calls, "good")}, 1)
    rows = {name: row(calls, name) for name in ("good", "bad", "other")}
    with refused(SystemExit):
        league.run(out, ["cora"], rows, 1)
    assert calls == ["cora good", "cora bad", "cora other"]
    assert [record["row"] for record in read_lines(out)] == ["good", "other"]
    with pytest.raises(SystemExit):
        league.run(out, ["cora"], rows, 1)
    assert calls[3:] == ["cora bad"]


def test_rows_that_cannot_be_run_here_are_left_out(calls: list[str], tmp_path: Path) -> None:
    absent = Row("baseline", row(calls, "trees").run, available=False)
    league.run(tmp_path / "league.jsonl", ["cora"], {"trees": absent}, 3)
    assert calls == []


def test_several_files_are_shown_together(
    calls: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    files = [tmp_path / f"{name}.jsonl" for name in ("cora", "ppi")]
    for file in files:
        league.run(file, [file.stem], {"good": row(calls, "good")}, 1)
    capsys.readouterr()
    monkeypatch.setattr("sys.argv", ["league", "--show", *map(str, files)])
    league.main()
    assert "| good | **50.0** | **50.0** |" in capsys.readouterr().out
