"""`vrgcn demo`, on a graph small enough for a test."""

from __future__ import annotations

import re
import shlex
from dataclasses import replace

import pytest

from tests.messages import refused
from vrgcn.cli import COMMANDS, demo
from vrgcn.cli.demo import RUNS, DemoOptions
from vrgcn.cli.parsing import parse
from vrgcn.data.synthetic import COMMUNITIES, community_graph

SMALL = replace(COMMUNITIES, nodes=600, pairs=6_000, classes=4, train=300, val=150, test=150)


@pytest.fixture
def small(monkeypatch):
    monkeypatch.setattr(demo, "load_dataset", lambda name, seed: community_graph(SMALL, seed))


def test_the_demo_goes_from_tables_to_predictions_and_compares_the_algorithms(
    small, tmp_path, capsys
):
    folder = tmp_path / "deep" / "demo"
    (folder / "graph").mkdir(parents=True)  # what an earlier demo left is replaced
    (folder / "predictions.csv").touch()
    demo.run(DemoOptions(epochs=2, out=folder, threads=1))
    out = capsys.readouterr().out
    for label in RUNS:
        assert f"│ {label} " in out
    assert f"curves: {folder}/curves.png" in out
    assert (folder / "curves.png").stat().st_size > 5_000
    accuracy = re.search(r"test accuracy ([\d.]+)", out)
    assert accuracy is not None
    assert float(accuracy[1]) > 0.75  # a linear model of two hops: 0.79, the largest class: 0.32
    assert re.search(r"(?m)^backend +nn +\d+% sure$", out)
    assert f"vrgcn report {folder}/run" in out
    rows = (folder / "predictions.csv").read_text(encoding="utf-8").splitlines()
    assert len(rows) == 656

    lines = out.replace("\\\n", " ").splitlines()  # the commands that it prints are understood
    shown = [line.strip().removeprefix("$ ") for line in lines if "vrgcn " in line]
    commands = [shlex.split(line, comments=True)[1:] for line in shown if line[:6] == "vrgcn "]
    assert [name for name, *_ in commands] == [
        *("import", "train", "predict", "report", "explain", "import")
    ]
    for name, *flags in commands:
        parse(COMMANDS[name].options, flags)


def test_a_folder_that_could_not_be_written_is_refused_before_training(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(NotADirectoryError, match="is a file; name a folder"):
        DemoOptions(out=tmp_path / "file").checked()


def test_a_data_set_that_does_not_exist_is_refused_before_training(tmp_path):
    with refused():
        DemoOptions(dataset="coraa", out=tmp_path / "demo").checked()
