"""A graph and a run on disk that vrgcn 0.1.0 wrote at commit 2ecc7e3, before its engine was
reshaped, and the predictions it made of them; all of it is of version 1 of the file formats.

    vrgcn import --nodes nodes.csv --edges edges.csv --label kind --out graph
    vrgcn train --graph graph --out run --hidden 4 --epochs 4 --batch-size 8 --scaling standard
    vrgcn predict run --out predictions.csv
"""

from __future__ import annotations

import csv
import json
import shutil
from pathlib import Path

import pytest

from vrgcn import load_graph, load_model

HOME = Path(__file__).parent / "version_1"


# Measurements of an epoch that the first version did not make.
NEW = {"gradient_staleness", "halo_age", "halo_staleness", "exchanged"}


@pytest.fixture(autouse=True)
def files(tmp_path: Path) -> None:
    """The graph and the run in the folder in which commands are run."""
    shutil.copytree(HOME, tmp_path, dirs_exist_ok=True)


def rows(file: Path) -> list[dict[str, str]]:
    with file.open(encoding="utf-8", newline="") as lines:
        return list(csv.DictReader(lines))


def test_an_old_run_predicts_what_it_did(vrgcn):
    code, _, err = vrgcn("predict", "run", "--out", "again.csv")
    assert code == 0, err
    old, new = rows(HOME / "predictions.csv"), rows(Path("again.csv"))
    assert [(row["id"], row["label"]) for row in new] == [(row["id"], row["label"]) for row in old]
    for column in ("p_amber", "p_blue", "p_cyan"):
        numbers = [float(row[column]) for row in old]
        assert [float(row[column]) for row in new] == pytest.approx(numbers, abs=1e-6)


def test_an_old_run_scores_what_it_did(vrgcn):
    result = json.loads(Path(HOME / "run" / "result.json").read_text(encoding="utf-8"))
    code, out, err = vrgcn("evaluate", "run", "--out", "picture.png")
    assert code == 0, err
    assert f"{result['test']:.4f}" in out
    code, out, err = vrgcn("report", "run")
    assert code == 0, err
    assert "not the same any more" not in Path("report.html").read_text(encoding="utf-8")


def test_an_old_config_trains_again(vrgcn):
    code, _, err = vrgcn("train", "--config", "run/config.toml", "--out", "again")
    assert code == 0, err
    written = Path("again/metrics.jsonl").read_text(encoding="utf-8").splitlines()
    old = Path("run/metrics.jsonl").read_text(encoding="utf-8").splitlines()
    assert len(written) == len(old)
    for now, then in zip(written, old, strict=True):  # everything measured then is measured now
        assert json.loads(now).keys() == json.loads(then).keys() | NEW


def test_an_old_graph_and_an_old_model_are_whole(tmp_path):
    graph = load_graph(tmp_path / "graph")
    assert (graph.num_nodes, graph.num_edges, graph.task) == (40, 198, "classes")
    assert graph.adjacency.values is not None
    assert [len(graph.split(name)) for name in ("train", "val", "test")] == [24, 8, 8]
    saved = load_model(tmp_path / "run" / "model.safetensors")
    assert (saved.task, saved.propagation, saved.scaling.kind) == ("classes", "mean", "standard")
    assert saved.classes == graph.names.classes == ["amber", "blue", "cyan"]
