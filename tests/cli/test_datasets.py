"""`vrgcn datasets` and `vrgcn info`, and `vrgcn train --dataset` on real data."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from tests.cli.conftest import small_graph
from vrgcn.data import DATASETS, load_dataset
from vrgcn.data import statistics as statistics_module
from vrgcn.data.store import save_graph
from vrgcn.graph.graph import Graph
from vrgcn.graph.names import Names
from vrgcn.inference.predict import predict
from vrgcn.inference.saved import load_model


@pytest.fixture
def cached(graph_cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VRGCN_CACHE", str(graph_cache))


def test_datasets_lists_every_name_with_size_source_and_presence(vrgcn, real_data):
    code, out, _ = vrgcn("datasets", "--data-root", real_data)
    assert code == 0
    lines = {line.split()[0]: line.split()[1:] for line in reversed(out.splitlines()) if line}
    assert set(DATASETS) | {"ogbn-*"} <= set(lines)
    assert lines["cora"] == ["2,708", "10,556", "1,433", "7", "PyG", "yes"]
    assert lines["communities"][-2:] == ["built-in", "generated"]
    assert lines["reddit"] == ["232,965", "114,615,892", "602", "41", "PyG", "no"]
    assert max(map(len, out.splitlines()[:12])) <= 80
    assert str(real_data) in out
    _, out, _ = vrgcn("datasets", "--data-root", "nowhere")
    assert "PyG        yes" not in out


def test_datasets_needs_no_torch():
    script = (
        "import sys; from vrgcn.cli import main; main(['datasets']); "
        "assert 'torch' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", script], check=True, capture_output=True)


@pytest.mark.usefixtures("cached")
def test_the_sizes_in_the_table_are_those_of_the_graphs(real_data):
    for name in ("cora", "citeseer", "pubmed", "nell", "ppi-small"):
        graph = load_dataset(name, root=real_data)
        counts = (graph.num_nodes, graph.num_edges, graph.num_features, graph.num_classes)
        assert tuple(f"{count:,}" for count in counts) == DATASETS[name].size


@pytest.mark.usefixtures("cached")
def test_info_prints_table_1_and_more(vrgcn, real_data):
    code, out, _ = vrgcn("info", "pubmed", "--data-root", real_data)
    assert code == 0
    row = next(line for line in out.splitlines() if "19,717" in line)
    assert [cell.strip() for cell in row.strip("│").split("│")] == ["19,717", "108,365", "6", "60"]
    assert "5.496 on average" in out
    assert "undirected; 0 self-loops; 0 nodes without any" in out
    assert "train 60, val 500, test 1,000" in out
    assert "80.2% of edges join nodes of the same class" in out
    assert "features" in out
    assert "39.4 MB" in out


@pytest.mark.usefixtures("cached")
def test_info_says_when_features_and_labels_are_not_the_published_ones(vrgcn, real_data):
    _, out, _ = vrgcn("info", "ppi-small", "--data-root", real_data)
    assert "note: real edges and split; features and labels rebuilt from gene sets" in out
    assert "121, several per node" in out


def test_info_of_a_graph_from_disk_and_of_one_too_large_to_count(
    vrgcn, tmp_path, graph_folder, monkeypatch
):
    code, out, _ = vrgcn("info", "--graph", graph_folder)
    assert code == 0
    assert "≈" not in out
    save_graph(small_graph(nodes=900), tmp_path / "large")
    monkeypatch.setattr(statistics_module, "STEPS", 1_000)
    _, out, _ = vrgcn("info", "--graph", tmp_path / "large")
    assert "≈" in out
    assert "(standard error) on average, from 100 random nodes" in out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "either a NAME or --graph PATH"),
        (("cora", "--graph", "x"), "either a NAME or --graph PATH"),
        (("corra",), "there is no dataset 'corra'"),
        (("--graph", "nowhere"), "nowhere"),
    ],
)
def test_info_on_nothing_is_an_error_without_a_traceback(vrgcn, arguments, message):
    code, out, err = vrgcn("info", *arguments)
    assert code == 1
    assert message in err
    assert "Traceback" not in out + err


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


@pytest.mark.usefixtures("cached")
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
    graph = load_dataset("cora", root=real_data)
    scaled = graph.with_features(saved.scaling.apply(graph.features))
    right = predict(saved.model, scaled, graph.test).argmax(1) == graph.labels[graph.test]
    assert result["test"] == pytest.approx(float(right.double().mean()), abs=1e-6)


@pytest.mark.usefixtures("cached")
def test_nell_trains_on_sparse_features(vrgcn, real_data, tmp_path):
    code, out, _ = vrgcn(
        "train", "--dataset", "nell", "--data-root", real_data, "--out", "run",
        "--model", "gcn", "--hidden", 64, "--dropout", 0.1, "--no-layer-norm",
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
