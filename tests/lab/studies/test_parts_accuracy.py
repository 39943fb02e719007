"""Training in parts against one process, as the page's records tell it."""

from __future__ import annotations

import shutil
from pathlib import Path

from lab.harness.records import read_lines
from lab.studies import parts_accuracy

RECORDED = Path(__file__).parents[3] / "docs" / "results" / "parts-accuracy.jsonl"


def test_the_records_of_the_pages_are_shown(study, tmp_path):
    shutil.copy(RECORDED, tmp_path)
    shown = study(parts_accuracy, "--show", "--out", tmp_path / RECORDED.name)
    assert "| one process | 10 | 98.97 ± 0.14 | – |" in shown


def test_what_has_a_record_is_not_run_again(study, tmp_path, monkeypatch):
    out, ran = tmp_path / "deep" / "records.jsonl", []

    def checked(line: list[str]) -> None:
        """As if the command had trained."""
        ran.append(line)
        folder = Path(line[line.index("--out") + 1])
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "result.json").write_text('{"val": 0.5, "test": 0.25}')

    monkeypatch.setattr(parts_accuracy, "checked", checked)
    flags = ("communities", "--parts", 2, "--out", out)
    study(parts_accuracy, *flags, "--seeds", 1)
    assert [record["way"] for record in read_lines(out)] == ["one process", "2 parts, delayed"]
    begun = len(ran)
    assert begun == 3  # two runs, and the graph cut in parts
    shown = study(parts_accuracy, *flags, "--seeds", 2)
    assert len(read_lines(out)) == 4
    assert len(ran) - begun == 3
    assert "| one process | 2 | 25.00 ± 0.00 | – |" in shown
