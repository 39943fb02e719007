"""`vrgcn predict` and `vrgcn evaluate`, on a run that `vrgcn train` wrote."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest
import torch

from tests.cli.conftest import small_graph
from vrgcn.data.store import load_graph, save_graph
from vrgcn.graph.graph import Graph
from vrgcn.graph.names import Names
from vrgcn.inference.predict import predict
from vrgcn.inference.saved import load_model

CLASSES = ["amber", "blue", "cyan"]


def named(graph: Graph, order: list[int] | None = None) -> Graph:
    """The graph with ids n-0, n-1, ..., class names, and feature columns f0, ... in some order."""
    order = order or list(range(graph.num_features))
    names = Names(
        pa.array([f"n-{i}" for i in range(graph.num_nodes)]),
        CLASSES,
        [f"f{i}" for i in order],
    )
    splits = {name: graph.split(name) for name in ("train", "val", "test")}
    return Graph.from_parts(
        graph.adjacency, graph.features[:, order], graph.labels, splits, 3, graph.weighted, names
    )


@pytest.fixture
def run(vrgcn, tmp_path: Path) -> Path:
    """A trained run on a named graph, its features standardised."""
    save_graph(named(small_graph()), tmp_path / "graph")
    code, _, err = vrgcn(
        "train",
        "--graph",
        tmp_path / "graph",
        "--scaling",
        "standard",
        "--epochs",
        5,
        "--out",
        "run",
    )
    assert code == 0, err
    return tmp_path / "run"


def expected(run: Path, graph: Graph) -> torch.Tensor:
    saved = load_model(run / "model.safetensors")
    scaled = graph.with_features(saved.scaling.apply(graph.features))
    return torch.softmax(predict(saved.model, scaled, propagation=saved.propagation), 1)


def test_predictions_come_back_under_the_users_ids_and_labels(vrgcn, run, tmp_path):
    code, out, _ = vrgcn("predict", "run", "--out", "p.parquet")
    assert code == 0
    assert "120 nodes" in out
    table = pa.parquet.read_table(tmp_path / "p.parquet")
    assert table.column_names == ["id", "label", "p_amber", "p_blue", "p_cyan"]
    chances = expected(run, load_graph(tmp_path / "graph"))
    assert table["id"].to_pylist() == [f"n-{i}" for i in range(120)]
    assert table["label"].to_pylist() == [CLASSES[i] for i in chances.argmax(1)]
    written = np.stack([table[f"p_{name}"].to_numpy() for name in CLASSES], axis=1)
    assert np.allclose(written, chances.numpy(), atol=1e-5)


def test_chosen_nodes_come_in_the_order_of_the_file(vrgcn, run, tmp_path):
    (tmp_path / "ids.txt").write_text("n-7\n\nn-3\r\nn-119\nn-7\n")
    assert vrgcn("predict", "run", "--nodes", "ids.txt", "--out", "p.csv")[0] == 0
    table = pa.csv.read_csv(tmp_path / "p.csv")
    chances = expected(run, load_graph(tmp_path / "graph"))[[7, 3, 119, 7]]
    assert table["id"].to_pylist() == ["n-7", "n-3", "n-119", "n-7"]
    assert np.allclose(table["p_cyan"].to_numpy(), chances[:, 2].numpy(), atol=1e-5)


def test_tables_on_disk_and_npy_give_the_same_and_leave_nothing_behind(vrgcn, run, tmp_path):
    assert vrgcn("predict", "run", "--out", "p/a.npy", "--memory", "disk")[0] == 0
    chances = expected(run, load_graph(tmp_path / "graph"))
    assert np.allclose(np.load(tmp_path / "p" / "a.npy"), chances.numpy(), atol=1e-5)
    assert [file.name for file in (tmp_path / "p").iterdir()] == ["a.npy"]


def test_the_most_probable_classes_alone(vrgcn, run, tmp_path):
    assert vrgcn("predict", "run", "--out", "p.csv", "--top", 2)[0] == 0
    table = pa.csv.read_csv(tmp_path / "p.csv")
    assert table.column_names == ["id", "label_1", "p_1", "label_2", "p_2"]
    best = expected(run, load_graph(tmp_path / "graph")).topk(2)
    assert table["label_2"].to_pylist() == [CLASSES[i] for i in best.indices[:, 1]]


def test_another_graph_with_its_columns_in_another_order_is_predicted_alike(vrgcn, run, tmp_path):
    other = small_graph(nodes=90, seed=5)
    save_graph(named(other), tmp_path / "other")
    save_graph(named(other, [3, 1, 0, 2, 7, 6, 5, 4]), tmp_path / "shuffled")
    assert vrgcn("predict", "run", "--graph", "other", "--out", "a.npy")[0] == 0
    assert vrgcn("predict", "run", "--graph", "shuffled", "--out", "b.npy")[0] == 0
    assert np.allclose(np.load(tmp_path / "a.npy"), np.load(tmp_path / "b.npy"), atol=1e-5)
    chances = expected(run, load_graph(tmp_path / "other"))
    assert np.allclose(np.load(tmp_path / "a.npy"), chances.numpy(), atol=1e-5)


def test_a_graph_whose_features_do_not_agree_is_refused(vrgcn, run, tmp_path):
    graph = small_graph()
    names = Names(features=[f"f{i}" for i in range(6)])
    splits = {name: graph.split(name) for name in ("train", "val", "test")}
    narrow = Graph.from_parts(
        graph.adjacency, graph.features[:, :6], graph.labels, splits, 3, False, names
    )
    save_graph(narrow, tmp_path / "narrow")
    code, _, err = vrgcn("predict", "run", "--graph", "narrow", "--out", "p.csv")
    assert code == 1
    assert "lacks 2 of the 8 feature columns" in err
    assert "'f6'" in err
    unnamed = graph.with_features(graph.features[:, :6])
    save_graph(unnamed, tmp_path / "unnamed")
    code, _, err = vrgcn("predict", "run", "--graph", "unnamed", "--out", "p.csv")
    assert code == 1
    assert "trained on 8 feature columns, and the graph has 6" in err
    assert not (tmp_path / "p.csv").exists()


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (("nothing", "--out", "p.csv"), "there is no run folder nothing"),
        (("graph", "--out", "p.csv"), "graph is not a run: it has no config.toml"),
        (("run", "--out", "p.xlsx"), "--out: p.xlsx must end in one of .parquet, .csv, .npy"),
        (("run", "--out", "p.csv", "--nodes", "ids.txt"), "there is no file ids.txt"),
        (
            ("run", "--out", "p.csv", "--nodes", "bad.txt"),
            "2 nodes are not in the graph, first: 'x'",
        ),
        (("run", "--out", "p.csv", "--threads", "0"), "threads must be at least 1, not 0"),
        (("run", "--out", "p.csv", "--device", "nowhere"), "device 'nowhere' cannot be used"),
        (("run", "--out", "p.csv", "--top", "9"), "--top: must be between 1 and"),
        (("run", "--out", "bad.txt.csv"), "--out: bad.txt.csv exists already"),
    ],
)
def test_bad_requests_are_named_without_a_traceback(vrgcn, run, tmp_path, flags, message):
    (tmp_path / "bad.txt").write_text("x\nn-1\ny\n")
    (tmp_path / "bad.txt.csv").write_text("kept")
    code, _, err = vrgcn("predict", *flags)
    assert code == 1
    assert message in err
    assert "Traceback" not in err
    assert (tmp_path / "bad.txt.csv").read_text() == "kept"


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
    assert (run / "confusion-test.png").stat().st_size > 1000


def test_evaluate_looks_at_the_split_asked_for_and_keeps_the_others(vrgcn, run):
    assert vrgcn("evaluate", "run")[0] == 0
    assert vrgcn("evaluate", "run", "--split", "val")[0] == 0
    names = {file.name for file in run.iterdir()}
    assert {"confusion-test.png", "evaluation-test.json"} <= names
    assert {"confusion-val.png", "evaluation-val.json"} <= names


def test_evaluate_matches_classes_by_name(vrgcn, run, tmp_path):
    graph = load_graph(tmp_path / "graph")
    turned = Graph.from_parts(
        graph.adjacency,
        graph.features,
        2 - graph.labels,
        {name: graph.split(name) for name in ("train", "val", "test")},
        3,
        False,
        Names(graph.names.nodes, CLASSES[::-1], graph.names.features),
    )
    save_graph(turned, tmp_path / "turned")
    vrgcn("evaluate", "run")
    before = json.loads((run / "evaluation-test.json").read_text())
    assert vrgcn("evaluate", "run", "--graph", "turned")[0] == 0
    assert json.loads((run / "evaluation-test.json").read_text()) == before


def test_a_run_of_several_classes_per_node_predicts_and_evaluates(vrgcn, tmp_path):
    graph = small_graph()
    labels = torch.stack([graph.labels == 0, graph.labels != 1], dim=1).float()
    several = Graph(
        graph.edge_index(),
        graph.features,
        labels,
        train=graph.train,
        val=graph.val,
        test=graph.test,
        names=Names(classes=["odd", "even"]),
    )
    save_graph(several, tmp_path / "several")
    assert vrgcn("train", "--graph", "several", "--epochs", 15, "--out", "run")[0] == 0
    code, out, err = vrgcn("evaluate", "run")
    assert code == 0, err
    assert "micro-F1" in out
    assert vrgcn("predict", "run", "--out", "p.csv")[0] == 0
    table = pa.csv.read_csv(tmp_path / "p.csv")
    for label, odd, even in zip(
        table["label"].to_pylist(), table["p_odd"].to_pylist(), table["p_even"].to_pylist(),
        strict=True,
    ):  # fmt: skip
        names = [name for name, p in (("odd", odd), ("even", even)) if p > 0.5]
        assert (label or "") == "|".join(names)
