"""The page says how its records were made."""

from __future__ import annotations

from lab.harness.records import append_record
from lab.paper.experiment import Experiment, Verdict
from lab.paper.page import commands, versions, write_page


def run(dataset: str, seed: int, epochs: int = 400, **more):
    return {"dataset": dataset, "seed": seed, "epochs": epochs, "quick": False, **more}


def test_commands_have_runs_and_epochs_as_the_records_have_them():
    records = [
        *(run("cora", seed) for seed in range(3)),
        *(run("pubmed", seed) for seed in range(3)),
        run("ppi-small", 0, epochs=20),
    ]
    assert commands("fig-loss", records) == [
        "vrgcn reproduce fig-loss --datasets cora pubmed --runs 3",
        "vrgcn reproduce fig-loss --datasets ppi-small --runs 1 --epochs 20",
    ]
    assert commands("table3", [run("cora", 0, epochs=200)]) == [
        "vrgcn reproduce table3 --datasets cora --runs 1"
    ]
    assert commands("table1", [{"dataset": "cora", "quick": True}]) == [
        "vrgcn reproduce table1 --datasets cora --quick"
    ]


def test_versions_are_told_with_their_units_where_there_are_several():
    one = [run("cora", 0, version="0.1.0, commit a of b")]
    assert versions(one) == "0.1.0, commit a of b"
    two = [*one, *one, run("cora", 1, version="0.2.0")]
    assert versions(two) == "0.1.0, commit a of b (2 units); 0.2.0 (1 units)"


def test_the_page_has_the_version_the_command_and_the_papers_numbers(tmp_path):
    experiment = Experiment("table3", "Table 3", lambda _: [], lambda *_: [Verdict(True, "so")])
    record = run(
        "cora", 0, epochs=200, label="Cora", algorithm="M1", test=0.82, diverged=None, seconds=3.0
    )
    append_record(tmp_path / "table3.jsonl", record | {"version": "0.1.0, commit a of b"})
    write_page([experiment], tmp_path, quick=False, command="vrgcn reproduce table3")
    page = (tmp_path / "report.html").read_text()
    assert "vrgcn 0.1.0, commit a of b" in page
    assert "vrgcn reproduce table3 --datasets cora --runs 1" in page
    row = "<td>Table 3</td><td>Cora, M1, test score</td><td>82.0 ± 0.8</td><td>82.0</td>"
    assert row in page
