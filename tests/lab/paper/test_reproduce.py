"""`vrgcn reproduce` from the command line to the page: every experiment in its quick form."""

from __future__ import annotations

import json
import sys
from datetime import datetime
from typing import get_args, get_type_hints

import pytest

from lab.harness.units import Unit, read_records
from lab.harness.version import code_version
from lab.paper import reproduce
from lab.paper.experiment import Choice, Experiment, Verdict
from lab.paper.reproduce import EXPERIMENTS, find_experiment
from tests.messages import refused
from vrgcn.cli.reproduce import ReproduceOptions, command
from vrgcn.cli.reproduce import run as run_reproduce


def test_the_command_line_offers_every_experiment():
    words = get_args(get_args(get_type_hints(ReproduceOptions)["what"])[0])
    assert set(words) == {*EXPERIMENTS, "all"}


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_each_experiment_runs_quickly_writes_its_page_and_is_not_run_again(
    vrgcn,
    tmp_path,
    monkeypatch,
    name,
):
    monkeypatch.setenv("VRGCN_DATA", str(tmp_path / "nothing"))  # no files, no network
    code, out, err = vrgcn("reproduce", name, "--quick", "--runs", 1, "--threads", 1)
    assert (code, err) == (0, "")
    folder = tmp_path / "results-quick"
    records = read_records(folder / f"{name}.jsonl")
    assert f"{name}: {len(records)} units to run, 0 there already" in out
    assert all(record["quick"] for record in records)
    assert all(record["seconds"] >= 0 for record in records)
    page = (folder / "report.html").read_text()
    assert find_experiment(name).title in page
    assert f"vrgcn reproduce {name} --runs 1 --threads 1 --quick" in page
    assert "not decided: " in out  # a quick run decides nothing
    if name.startswith("fig-"):
        assert (folder / f"{name}.png").stat().st_size > 5_000
        assert (folder / f"{name}.svg").read_bytes().startswith(b"<?xml")
        assert "data:image/svg+xml" in page
    before = (folder / f"{name}.jsonl").read_bytes()
    monkeypatch.setattr(reproduce, "write_page", lambda *_: {})  # the same page once more
    code, out, _ = vrgcn("reproduce", name, "--quick", "--runs", 1)
    assert f"{name}: 0 units to run, {len(records)} there already" in out
    assert (folder / f"{name}.jsonl").read_bytes() == before


class Stopped(BaseException):
    """As if the process were killed."""


@pytest.fixture
def counted(monkeypatch):
    """An experiment of four units that notes which of them ran; `stop_at` kills it there."""
    state = {"ran": [], "stop_at": None, "numbers": {}}

    def run(seed):
        if seed == state["stop_at"]:
            raise Stopped
        state["ran"].append(seed)
        return {"square": state["numbers"].get(seed, seed * seed)}

    def units(choice):
        seeds = range(choice.runs or 4)
        return [
            Unit(
                {"dataset": "communities", "seed": seed, "quick": choice.quick},
                lambda seed=seed: run(seed),
            )
            for seed in seeds
        ]

    def render(records, page, folder):
        page.text(f"squares {[record['square'] for record in records]}")
        return [Verdict(len(records) == 4, f"{len(records)} squares are four")]

    experiment = Experiment("table1", "Squares", units, render)
    monkeypatch.setattr(reproduce, "EXPERIMENTS", {"table1": ""})
    monkeypatch.setattr(reproduce, "find_experiment", lambda name: experiment)
    return state


def test_a_run_that_was_killed_goes_on_where_it_was(counted, tmp_path, capsys):
    options = ReproduceOptions(("table1",), out=tmp_path)
    counted["stop_at"] = 2
    with pytest.raises(Stopped):
        run_reproduce(options)
    path = tmp_path / "table1.jsonl"
    with path.open("a") as file:
        file.write(
            '{"dataset": "communities", "seed": 2, "quick": fal'
        )  # killed in the middle of a line
    counted["stop_at"] = None
    run_reproduce(options)
    assert counted["ran"] == [0, 1, 2, 3]  # none twice
    assert [record["square"] for record in map(json.loads, path.read_text().splitlines())] == [
        0,
        1,
        4,
        9,
    ]
    out = capsys.readouterr().out
    assert "table1: 4 units to run, 0 there already" in out
    assert "table1: 2 units to run, 2 there already" in out
    assert "holds: 4 squares are four" in out
    assert "squares [0, 1, 4, 9]" in (tmp_path / "report.html").read_text()


def test_a_unit_that_fails_does_not_keep_the_others_from_running(vrgcn, counted, tmp_path):
    counted["numbers"] = {0: float("nan")}  # JSON has no NaN
    code, out, err = vrgcn("reproduce", "table1", "--out", tmp_path)
    assert code == 1
    assert err.startswith("vrgcn: error: 1 unit failed and has no record; the page is made of the")
    assert "table1 communities seed 0: " in err
    assert [r["square"] for r in read_records(tmp_path / "table1.jsonl")] == [1, 4, 9]
    assert "squares [1, 4, 9]" in (tmp_path / "report.html").read_text()
    counted["numbers"] = {}
    code, out, _ = vrgcn("reproduce", "table1", "--out", tmp_path)
    assert code == 0
    assert "table1: 1 units to run, 3 there already" in out


def test_the_code_is_named_as_it_was_when_units_began(counted, tmp_path, monkeypatch):
    asked = []
    monkeypatch.setattr(reproduce, "code_version", lambda: asked.append(list(counted["ran"])) or "")
    run_reproduce(ReproduceOptions(("table1",), runs=1, out=tmp_path))
    assert asked[0] == []


def test_the_time_is_estimated_before_anything_runs_and_by_what_ran_before(
    counted, tmp_path, capsys, monkeypatch
):
    monkeypatch.setattr(reproduce, "seconds_of", lambda *_: 90.0)
    counted["stop_at"] = 0
    with pytest.raises(Stopped):
        run_reproduce(ReproduceOptions(("table1",), out=tmp_path))
    out = capsys.readouterr().out
    assert "table1: 4 units to run, 0 there already; about 6 min" in out
    assert "about 6 min in all" in out
    assert out.index("in all") < out.index("not finished")


def test_a_record_names_the_code_and_the_day(counted, tmp_path):
    run_reproduce(ReproduceOptions(("table1",), runs=1, out=tmp_path))
    (record,) = read_records(tmp_path / "table1.jsonl")
    assert record["version"] == code_version()
    assert datetime.fromisoformat(record["date"]).tzinfo is not None


def test_more_runs_add_to_those_that_are_there(counted, tmp_path):
    run_reproduce(ReproduceOptions(("table1",), runs=1, out=tmp_path))
    run_reproduce(ReproduceOptions(("table1",), runs=3, out=tmp_path))
    assert counted["ran"] == [0, 1, 2]


def test_quick_records_do_not_stand_in_for_real_ones_nor_share_their_page(counted, tmp_path):
    run_reproduce(ReproduceOptions(("table1",), quick=True, out=tmp_path))
    run_reproduce(ReproduceOptions(("table1",), runs=2, out=tmp_path))
    assert counted["ran"] == [0, 1, 2, 3, 0, 1]
    page = (tmp_path / "report.html").read_text()
    assert "squares [0, 1]<" in page
    assert "A quick run" not in page


def test_a_verdict_that_fails_is_said_on_the_terminal_and_at_the_top(counted, tmp_path, capsys):
    run_reproduce(ReproduceOptions(("all",), runs=3, out=tmp_path))
    assert "does not hold: 3 squares are four" in capsys.readouterr().out
    page = (tmp_path / "report.html").read_text()
    assert page.index("3 squares are four") < page.index("Squares</h2>")


def test_data_sets_that_were_asked_for_must_be_there(vrgcn, tmp_path):
    asked = ("--datasets", "communities", "cora", "--data-root", tmp_path)
    code, _, err = vrgcn("reproduce", "table1", *asked)
    assert code == 1
    assert f"--datasets: the files of cora are not in {tmp_path}" in err


def test_data_sets_without_files_are_named_and_left_out(vrgcn, tmp_path):
    code, out, _ = vrgcn("reproduce", "table3", "--data-root", tmp_path)
    assert code == 0
    assert "left out, their files are not here: citeseer, cora," in out
    assert "table3: 0 units to run, 0 there already; none of its data sets" in out
    assert "There are no records yet" in (tmp_path / "results" / "report.html").read_text()


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (("table1", "--datasets", "coral"), "there is no dataset 'coral'"),
        (("table1", "--runs", 0), "runs must be at least 1"),
        (("table1", "--epochs", 0), "epochs must be at least 1"),
        (("table1", "--threads", -1), "threads must be at least 1"),
        (("table1", "--out", "a-file"), "a-file is a file; name a folder"),
        ((), "say what to reproduce"),
    ],
)
def test_bad_input_is_one_line_that_names_the_flag(vrgcn, tmp_path, flags, message):
    (tmp_path / "a-file").write_text("")
    code, _, err = vrgcn("reproduce", *flags)
    assert code in (1, 2)
    assert message in err


def test_the_command_on_the_page_says_every_option(tmp_path):
    options = ReproduceOptions(
        ("table3", "fig-loss"),
        datasets=("cora", "nell"),
        runs=2,
        epochs=7,
        quick=True,
        out=tmp_path,
        data_root=tmp_path,
        threads=1,
    )
    assert command(options) == (
        "vrgcn reproduce table3 fig-loss --datasets cora nell --runs 2 --epochs 7 "
        f"--out {tmp_path} --data-root {tmp_path} --threads 1 --quick"
    )
    assert command(ReproduceOptions(("all",), out="my results")).endswith("--out 'my results'")


def test_without_matplotlib_it_says_so_before_any_work(counted, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with refused():
        run_reproduce(ReproduceOptions(("table1",), out=tmp_path))
    assert counted["ran"] == []


def test_experiments_know_their_own_names():
    for name in EXPERIMENTS:
        assert find_experiment(name).name == name
        assert find_experiment(name).units(Choice(quick=True))
