"""`vrgcn train` on real data and on graphs from disk: features, scaling, names."""

from __future__ import annotations

import json

import pytest
import torch

from tests.cli.conftest import small_graph
from vrgcn.cli.train import TrainOptions
from vrgcn.data import load_dataset
from vrgcn.data.opening import open_graph
from vrgcn.data.store import save_graph
from vrgcn.graph.graph import Graph
from vrgcn.graph.names import Names
from vrgcn.inference.predict import predict
from vrgcn.inference.saved import load_model
from vrgcn.runs.folder import read_config


def test_training_without_the_raw_files_says_where_to_put_them(vrgcn, tmp_path, monkeypatch):
    def refuse(*_: object) -> None:
        raise OSError("no route to host")

    monkeypatch.setenv("VRGCN_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr("torch_geometric.datasets.Reddit.download", refuse)
    code, out, err = vrgcn("train", "--dataset", "reddit", "--data-root", tmp_path / "mine")
    assert code == 1
    assert "no route to host" in err
    assert str(tmp_path / "mine" / "reddit" / "raw" / "reddit_graph.npz") in err
    assert "Traceback" not in out + err
    assert not (tmp_path / "runs").exists()


def test_cora_reaches_the_accuracy_of_the_paper(vrgcn, real_data, tmp_path):
    """The paper has 82.0; one run of 100 epochs must be above 79."""
    code, out, _ = vrgcn(
        "train", "--dataset", "cora", "--data-root", real_data, "--out", "run",
        "--model", "gcn", "--hidden", 32, "--dropout", 0.5, "--no-layer-norm",
        "--weight-decay", 5e-4, "--epochs", 100, "--evaluate-every", 5, "--batch-size", 1000,
        "--estimator", "exact", "--threads", 1,
    )  # fmt: skip
    assert code == 0
    assert "features scaled: row" in out
    result = json.loads((tmp_path / "run" / "result.json").read_text())
    assert result["test"] > 0.79
    # The saved model brings its scaling along.
    saved = load_model(tmp_path / "run" / "model.safetensors")
    assert saved.scaling.kind == "row"
    graph = load_dataset("cora", data_root=real_data)
    scaled = graph.with_features(saved.scaling.apply(graph.features), saved.scaling)
    right = predict(saved.model, scaled, graph.test).argmax(1) == graph.labels[graph.test]
    assert result["test"] == pytest.approx(float(right.double().mean()), abs=1e-6)


@pytest.mark.soak  # a small graph with sparse features is below
def test_nell_trains_on_sparse_features(vrgcn, real_data, tmp_path):
    code, out, _ = vrgcn(
        "train", "--dataset", "nell", "--data-root", real_data, "--out", "run",
        "--model", "gcn", "--hidden", 16, "--dropout", 0.1, "--no-layer-norm",
        "--weight-decay", 1e-5, "--epochs", 3, "--evaluate-every", 3, "--threads", 1,
    )  # fmt: skip
    assert code == 0
    assert "61,278 sparse" in out
    points = (tmp_path / "run" / "metrics.jsonl").read_text().splitlines()
    losses = [json.loads(point)["loss"] for point in points]
    assert losses[-1] < losses[0]
    # 186 classes; the most common one is right for 13% of the validation nodes.
    assert json.loads((tmp_path / "run" / "result.json").read_text())["val"] > 0.3


@pytest.mark.parametrize(
    ("sparse", "flags", "kind"),
    [
        (False, (), "standard"),
        (True, (), "row"),
        (False, ("--scaling", "row"), "row"),
        (True, ("--scaling", "none"), "none"),
    ],
)
def test_the_scaling_of_a_graph_from_disk_and_its_names_are_saved_with_the_model(
    vrgcn, tmp_path, sparse, flags, kind
):
    graph = small_graph()
    named = Graph(
        graph.edge_index(),
        graph.features.to_sparse_csr() if sparse else 100 * graph.features + 7,
        graph.labels,
        train=graph.train,
        val=graph.val,
        test=graph.test,
        names=Names(classes=["red", "green", "blue"], features=[f"x{i}" for i in range(8)]),
    )
    save_graph(named, tmp_path / "named")
    code, _, _ = vrgcn(
        "train", "--graph", tmp_path / "named", "--epochs", 1, "--out", "run", *flags
    )
    assert code == 0
    saved = load_model(tmp_path / "run" / "model.safetensors")
    assert saved.scaling.kind == kind
    assert saved.classes == ["red", "green", "blue"]
    assert saved.features == [f"x{i}" for i in range(8)]
    if kind == "standard":
        expected = named.features[graph.train].mean(0)
        assert torch.allclose(saved.scaling.mean, expected, rtol=1e-4, atol=1e-2)


def test_sparse_features_are_not_standardised(vrgcn, tmp_path):
    graph = small_graph()
    save_graph(graph.with_features(graph.features.to_sparse_csr()), tmp_path / "sparse")
    code, _, err = vrgcn("train", "--graph", tmp_path / "sparse", "--scaling", "standard")
    assert code == 1
    assert "use 'row' or 'none'" in err


def test_a_damaged_graph_is_not_trained_on_unless_asked_to(vrgcn, graph_folder):
    file = graph_folder / "features_0.npy"
    whole = file.read_bytes()
    file.write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))
    arguments = ("train", "--graph", graph_folder, "--epochs", 1, "--out", "run")
    code, _, err = vrgcn(*arguments)
    assert code == 1
    assert "features_0.npy is damaged" in err
    assert vrgcn(*arguments, "--no-verify")[0] == 0


def test_a_run_without_neighbours_is_not_named_after_an_estimator(vrgcn, graph_folder, tmp_path):
    code, _, err = vrgcn("train", "small", "--model", "mlp", "--epochs", 1)
    assert code == 0, err
    assert vrgcn("train", "small", "--model", "gcn", "--epochs", 1)[0] == 0
    assert sorted(p.name for p in (tmp_path / "runs").iterdir()) == ["small-gcn-exact", "small-mlp"]
    assert 'graph = "' in (tmp_path / "runs" / "small-mlp" / "config.toml").read_text()


def test_a_run_that_draws_a_split_notes_the_graph_it_opened_and_no_other(
    vrgcn, graph_folder, tmp_path, monkeypatch
) -> None:
    checksum = open_graph(None, graph_folder).checksum
    save_graph(small_graph(seed=1), tmp_path / "other")
    opened = TrainOptions.open_graph

    def then_replaced(*given):
        found = opened(*given)
        graph_folder.rename(tmp_path / "old")
        (tmp_path / "other").rename(graph_folder)
        return found

    monkeypatch.setattr(TrainOptions, "open_graph", then_replaced)
    flags = ("--ratio", 0.6, 0.2, 0.2, "--epochs", 1, "--hidden", 4, "--out", "run")
    code, out, err = vrgcn("train", "--graph", graph_folder, *flags)
    assert code == 0, err
    assert "was replaced by another since training began" in out + err
    assert read_config(tmp_path / "run")["graph_checksum"] == checksum
