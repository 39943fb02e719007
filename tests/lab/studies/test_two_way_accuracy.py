"""Runs of (graph, estimator, fan-out, seed): each once, all in the tables."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from lab.harness.records import read_lines
from lab.studies import two_way_accuracy
from lab.studies.two_way_accuracy import Unit, units

RECORDED = Path(__file__).parents[3] / "docs" / "results" / "two-way-accuracy.jsonl"


@pytest.fixture
def out(tmp_path, monkeypatch, graph):
    """A file for the records of short runs on a small graph."""
    monkeypatch.setattr(two_way_accuracy, "scaled_graph", lambda name, root: graph)
    short = two_way_accuracy.PROBLEMS["communities, 2 layers"]
    short = two_way_accuracy.replace(short, train=two_way_accuracy.TrainConfig(epochs=1))
    monkeypatch.setattr(two_way_accuracy, "PROBLEMS", {"communities, 2 layers": short})
    return tmp_path / "results" / "records.jsonl"


def test_what_has_a_record_is_not_run_again(study, out):
    flags = ("--problems", "communities, 2 layers", "--seeds", 1, "--fanout-seeds", 0, "--out", out)
    shown = study(two_way_accuracy, *flags, "--units", 1)
    assert shown.startswith("1/2 Unit(problem='communities, 2 layers', estimator='exact'")
    (first,) = read_lines(out)
    assert 0 < first["test"] <= 1
    with out.open("a") as file:
        file.write('{"problem": "commu')  # killed in the middle of a line
    shown = study(two_way_accuracy, *flags)
    assert shown.startswith("1/1 Unit(problem='communities, 2 layers', estimator='two-way'")
    assert [record["estimator"] for record in read_lines(out)] == ["exact", "two-way"]
    assert read_lines(out)[0] == first
    assert "| exact | 1 |" in shown


def test_seconds_are_those_of_an_epoch_of_each(study, out):
    flags = ("--problems", "communities, 2 layers", "--seconds", "--turns", 2, "--out", out)
    study(two_way_accuracy, *flags)
    records = read_lines(out)
    asked = units(["communities, 2 layers"], 1, 1)
    assert [Unit(**{k: r[k] for k in vars(asked[0])}) for r in records] == asked
    assert all(record["epoch_seconds"] > 0 for record in records)


def test_the_records_of_the_pages_are_shown(study, tmp_path):
    shutil.copy(RECORDED, tmp_path)
    shown = study(two_way_accuracy, "--show", "--out", tmp_path / RECORDED.name)
    assert all(f"\n{problem}\n| estimator |" in shown for problem in two_way_accuracy.PROBLEMS)
