"""`vrgcn predict`, on a run that `vrgcn train` wrote."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest
import torch

from tests.cli.conftest import CLASSES, expected, named, small_graph
from vrgcn import load_run, predictions
from vrgcn.data.store import load_graph, save_graph
from vrgcn.graph.graph import Graph
from vrgcn.graph.names import Names


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


@pytest.mark.parametrize("scaling", ["none", "row"])
def test_the_order_of_columns_is_nothing_to_any_command(scaling, vrgcn, tmp_path):
    save_graph(named(small_graph()), tmp_path / "graph")
    save_graph(named(small_graph(), [3, 1, 0, 2, 7, 6, 5, 4]), tmp_path / "shuffled")
    flags = ("--graph", "graph", "--epochs", 2, "--scaling", scaling, "--out", "run")
    assert vrgcn("train", *flags)[0] == 0
    for command in ("predict", "embed"):
        for graph in ("graph", "shuffled"):
            out = f"{command}-{graph}.npy"
            code, _, err = vrgcn(command, "run", "--graph", graph, "--out", out)
            assert code == 0, err
        same, moved = (np.load(f"{command}-{graph}.npy") for graph in ("graph", "shuffled"))
        assert np.allclose(same, moved, atol=1e-5)
    own, other = (vrgcn("evaluate", "run", "--graph", graph)[1] for graph in ("graph", "shuffled"))
    assert own == other


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
        graph.adjacency, graph.features[:, :6], graph.labels, splits, 3, names
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


def two_classes() -> Graph:
    """Communities of two classes, the second of them rare and hard to tell: its threshold is not a
    half."""
    graph = small_graph(900, classes=4, seed=3)
    features = graph.features / 4 + torch.randn(900, 8, generator=torch.Generator().manual_seed(1))
    assert graph.labels is not None
    splits = {name: graph.split(name) for name in ("train", "val", "test")}
    labels = (graph.labels == 3).long()
    names = Names(classes=["no", "yes"])
    return Graph.from_parts(graph.adjacency, features, labels, splits, 2, names)


def test_two_classes_are_told_apart_by_the_threshold_of_the_run(vrgcn, tmp_path):
    save_graph(two_classes(), tmp_path / "two")
    flags = ("--epochs", 2, "--hidden", 4, "--model", "mlp", "--smooth", "never")
    assert vrgcn("train", "two", *flags, "--out", "run")[0] == 0
    run = load_run("run")
    assert run.saved.calibration is not None
    threshold = run.saved.calibration.threshold
    assert threshold is not None
    code, out, err = vrgcn("predict", "run", "--out", "chosen.csv")
    assert code == 0, err
    told = f"label is yes from probability {threshold:.3g} on, chosen for its F1 on validation"
    assert told in " ".join(out.split())
    chosen = pa.csv.read_csv("chosen.csv")
    chances = chosen.column("p_yes").to_pylist()
    wanted = ["yes" if chance >= threshold else "no" for chance in chances]
    assert chosen.column("label").to_pylist() == wanted
    code, out, err = vrgcn("predict", "run", "--threshold", 0.5, "--out", "half.csv")
    assert code == 0, err
    half = pa.csv.read_csv("half.csv").column("label").to_pylist()
    assert half == ["yes" if chance >= 0.5 else "no" for chance in chances]
    assert half != wanted
    found = predictions(run.saved, load_graph("two"))
    assert found.labels == wanted
    assert found.to_arrow().column("label").to_pylist() == wanted


def test_a_threshold_is_for_two_classes_and_between_0_and_1(vrgcn, run):
    code, _, err = vrgcn("predict", "run", "--out", "p.csv", "--threshold", 0.4)
    assert code == 1
    assert "--threshold is for two classes, and run predicts 3 classes" in err
    code, _, err = vrgcn("predict", "run", "--out", "p.csv", "--threshold", 1.4)
    assert code == 1
    assert "--threshold lies between 0 and 1, not 1.4" in err
