"""`vrgcn evaluate`, on a run that `vrgcn train` wrote."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest
import torch

from tests.cli.conftest import CLASSES, expected
from vrgcn.data.store import load_graph, save_graph
from vrgcn.graph.graph import Graph
from vrgcn.graph.names import Names
from vrgcn.graph.validation import SPLITS
from vrgcn.pages import evaluation, figures


def test_evaluate_prints_and_writes_scores_by_split_and_class(vrgcn, run, tmp_path):
    code, out, err = vrgcn("evaluate", "run")
    assert code == 0, err
    graph = load_graph(tmp_path / "graph")
    guess = expected(run, graph).argmax(1)
    numbers = json.loads((run / "evaluation-test.json").read_text())
    for name in ("train", "val", "test"):
        nodes = graph.split(name)
        accuracy = float((guess[nodes] == graph.labels[nodes]).double().mean())
        assert numbers["scores"][name] == pytest.approx(accuracy, abs=1e-6)
        assert f"accuracy {accuracy:.4f}" in out
    truth, test_guess = graph.labels[graph.test], guess[graph.test]
    for place, name in enumerate(CLASSES):
        hits = int(((truth == place) & (test_guess == place)).sum())
        assert numbers["recall"][place] == pytest.approx(hits / int((truth == place).sum()))
        assert numbers["confusion"][place][place] == hits
        assert name in out
    page = (run / "evaluation-test.html").read_text(encoding="utf-8")
    assert "page: run/evaluation-test.html" in out
    assert f"<td>{numbers['scores']['test']:.4f}</td>" in page
    assert "Confusion matrix: test nodes" in page
    for place, name in enumerate(CLASSES):
        assert f"<td>{name}</td><td>{numbers['precision'][place]:.3f}</td>" in page


def test_evaluate_looks_at_the_split_asked_for_and_keeps_the_others(vrgcn, run):
    assert vrgcn("evaluate", "run")[0] == 0
    assert vrgcn("evaluate", "run", "--split", "val")[0] == 0
    names = {file.name for file in run.iterdir()}
    assert {"evaluation-test.html", "evaluation-test.json"} <= names
    assert {"evaluation-val.html", "evaluation-val.json"} <= names


def test_evaluate_matches_classes_by_name(vrgcn, run, tmp_path):
    graph = load_graph(tmp_path / "graph")
    turned = Graph.from_parts(
        graph.adjacency,
        graph.features,
        2 - graph.labels,
        {name: graph.split(name) for name in ("train", "val", "test")},
        3,
        Names(graph.names.nodes, CLASSES[::-1], graph.names.features),
    )
    save_graph(turned, tmp_path / "turned")
    vrgcn("evaluate", "run")
    before = json.loads((run / "evaluation-test.json").read_text())
    assert vrgcn("evaluate", "run", "--graph", "turned")[0] == 0
    assert json.loads((run / "evaluation-test.json").read_text()) == before


def test_pictures_of_several_runs_in_one_folder_keep_their_numbers(vrgcn, run, tmp_path):
    assert vrgcn("evaluate", "run", "--out", "pictures/a.png", "--split", "val")[0] == 0
    code, out, err = vrgcn("evaluate", "run", "--out", "pictures/b.svg")
    assert code == 0, err
    assert "numbers: pictures/evaluation-b.json" in out
    names = sorted(file.name for file in (tmp_path / "pictures").iterdir())
    assert names == ["a.png", "b.svg", "evaluation-a.json", "evaluation-b.json"]
    a, b = (json.loads((tmp_path / "pictures" / name).read_text()) for name in names[2:])
    assert (a["split"], b["split"]) == ("val", "test")
    assert vrgcn("evaluate", "run", "--out", "pictures/c.html")[0] == 0
    assert {"c.html", "evaluation-c.json"} <= {f.name for f in (tmp_path / "pictures").iterdir()}


def test_files_are_written_though_nobody_reads_on(run):
    """As by `vrgcn evaluate run | head -1`."""
    reader, writer = os.pipe()
    os.close(reader)
    command = [sys.executable, "-u", "-m", "vrgcn", "evaluate", str(run)]
    ended = subprocess.run(command, check=False, stdout=writer, stderr=subprocess.PIPE, text=True)
    os.close(writer)
    assert (ended.returncode, ended.stderr) == (0, "")
    assert {"evaluation-test.html", "evaluation-test.json"} <= {file.name for file in run.iterdir()}


def test_more_classes_than_a_picture_shows_are_not_squared(vrgcn, tmp_path, monkeypatch):
    assert figures.MOST_CLASSES == 1_000
    for module in (evaluation, figures):
        monkeypatch.setattr(module, "MOST_CLASSES", 30)
    count = 50
    nodes = torch.arange(3 * count)
    labels, x = nodes % count, torch.randn(len(nodes), 4)
    splits = {name: nodes[n * count : (n + 1) * count] for n, name in enumerate(SPLITS)}
    save_graph(Graph([nodes.tolist(), nodes.tolist()], x, labels, **splits), tmp_path / "many")
    flags = ("--epochs", 1, "--hidden", 4, "--out", "run")
    assert vrgcn("train", "--graph", "many", *flags)[0] == 0
    code, _, err = vrgcn("evaluate", "run", "--out", "p.svg")
    assert code == 0, err
    assert "the 30 largest of 50 classes" in (tmp_path / "p.svg").read_text()
    numbers = json.loads((tmp_path / "evaluation-p.json").read_text())
    assert numbers["confusion"] is None
    pairs = numbers["confusion_pairs"]
    assert sum(nodes for _, _, nodes in pairs) == count
    assert sum(nodes for true, guess, nodes in pairs if true == guess) == round(
        count * numbers["scores"]["test"]
    )
    assert sorted(true for true, _, nodes in pairs for _ in range(nodes)) == list(range(count))


def test_a_run_has_its_name_on_the_picture_also_from_inside_its_folder(vrgcn, run, monkeypatch):
    monkeypatch.chdir(run)
    code, _, err = vrgcn("evaluate", ".", "--out", "p.svg")
    assert code == 0, err
    assert "run: test nodes" in (run / "p.svg").read_text()
