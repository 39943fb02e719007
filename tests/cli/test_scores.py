"""Scores by name on the command line: what decides, what is printed, what a report compares."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.cli.conftest import expected, named, small_graph
from vrgcn.data.store import load_graph, save_graph
from vrgcn.tasks.metrics import macro_f1, roc_auc


@pytest.fixture
def graph(tmp_path: Path) -> Path:
    save_graph(named(small_graph()), tmp_path / "graph")
    return tmp_path / "graph"


def train(vrgcn, name: str, *flags: object) -> dict:
    code, _, err = vrgcn(
        "train", "--graph", "graph", "--epochs", 4, "--out", f"runs/{name}", *flags
    )
    assert code == 0, err
    return json.loads(Path(f"runs/{name}/result.json").read_text())


def test_a_metric_that_is_asked_for_is_printed_written_and_evaluated(vrgcn, graph):
    result = train(vrgcn, "macro", "--metric", "macro-f1", "--class-weights", "balanced")
    assert result["metric"] == "macro-F1"
    code, out, err = vrgcn("evaluate", "runs/macro")
    assert code == 0, err
    data = load_graph("graph")
    outputs = expected(Path("runs/macro"), data).log()
    for name in ("train", "val", "test"):
        nodes = data.split(name)
        value = macro_f1(outputs[nodes], data.labels[nodes])
        assert re.search(rf"{name} +macro-F1 {value:.4f}  \(\d+ nodes\)", out)
    numbers = json.loads(Path("runs/macro/evaluation-test.json").read_text())
    assert numbers["metric"] == "macro-F1"
    assert numbers["scores"]["test"] == pytest.approx(result["test"])
    area = roc_auc(outputs[data.test], data.labels[data.test])
    assert numbers["roc_auc"] == pytest.approx(area)
    assert f"ROC-AUC {area:.4f})" in out


def test_a_metric_of_numbers_is_refused_before_a_folder_is_made(vrgcn, graph):
    code, _, err = vrgcn("train", "--graph", "graph", "--metric", "rmse", "--out", "runs/x")
    assert code == 1
    assert "metric 'rmse' (--metric) is for another task; for classes there are accuracy" in err
    code, _, err = vrgcn("train", "--graph", "graph", "--loss", "mae", "--out", "runs/x")
    assert code == 1
    assert "loss 'mae' (--loss) means nothing for 3 classes: leave it out" in err
    assert not Path("runs").exists()


def test_a_report_compares_only_what_was_scored_alike(vrgcn, graph):
    train(vrgcn, "a")
    train(vrgcn, "b", "--metric", "macro-f1")
    train(vrgcn, "c", "--metric", "macro-f1", "--model", "mlp", "--epochs", 1)
    assert vrgcn("report", "runs/a", "runs/b", "runs/c")[0] == 0
    page = re.sub(r'src="data:[^"]*"', "", Path("report.html").read_text())
    captions = re.findall(r"<figcaption>(.*?)</figcaption>", page)
    for text in ("Validation accuracy after", "Validation macro-F1 after", "Mean training loss of"):
        assert sum(caption.startswith(f"{text} each epoch") for caption in captions) == 1, text
    results = page[page.index("<h2") : page.index("Curves", page.index("<h2"))]
    rows = re.findall(r"<tr><td>([abc])</td><td>(.*?)</td><td( class=\"mark\")?>", results)
    assert [(label, metric) for label, metric, _ in rows] == [
        ("a", "accuracy"),
        ("b", "macro-F1"),
        ("c", "macro-F1"),
    ]
    # a has nobody to be compared with, and b is better than c.
    assert [bool(mark) for _, _, mark in rows] == [False, True, False]
