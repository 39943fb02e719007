"""Training, prediction and evaluation from memory-mapped files: the same bits as in memory."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from vrgcn import Graph, GraphSAGE, TrainConfig, fit, load_graph, predict, save_graph, scale_graph
from vrgcn.models.models import GCN
from vrgcn.targets.opening import find_target
from vrgcn.training.trainer import Trainer

ESTIMATORS = ("two-way", "history", "cvd", "exact")


def random_graph(*, directed: bool = False) -> Graph:
    draw = torch.Generator().manual_seed(1)
    nodes = 300
    return Graph(
        torch.randint(nodes, (2, 1200), generator=draw),
        torch.randn(nodes, 5, generator=draw) * 3 + 1,
        torch.randint(3, (nodes,), generator=draw),
        train=torch.arange(0, 200),
        val=torch.arange(200, 250),
        test=torch.arange(250, 300),
        undirected=not directed,
    )


@pytest.fixture
def store(tmp_path: Path) -> Path:
    save_graph(random_graph(), tmp_path / "graph")
    return tmp_path / "graph"


def trained(graph: Graph, config: TrainConfig, kind=GraphSAGE):
    graph, _ = scale_graph(graph, "standard")
    torch.manual_seed(0)
    model = kind(graph.num_features, 8, graph.num_classes, layers=2, dropout=0.3)
    return model, graph, fit(model, graph, config)


def assert_same(ours, theirs) -> None:
    assert ours.val == theirs.val
    assert ours.test == theirs.test
    for name, weight in ours.weights.items():
        assert torch.equal(weight, theirs.weights[name]), name


@pytest.mark.parametrize("kind", [GraphSAGE, GCN])
@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_training_and_prediction_from_disk_have_the_bits_of_those_in_memory(
    estimator, kind, store, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    config = TrainConfig(estimator=estimator, epochs=3, batch_size=64, history_dtype="float16")
    model, graph, inside = trained(load_graph(store), config, kind)
    on_disk = load_graph(store, memory="disk")
    other, mapped, outside = trained(on_disk, replace(config, memory="disk"), kind)
    assert_same(inside, outside)
    ours = predict(model, graph)
    theirs = predict(other, mapped, directory=tmp_path / "tables")
    assert torch.equal(ours, theirs)
    assert (tmp_path / "tables" / "outputs.bin").is_file()


@pytest.mark.parametrize("estimator", ["two-way", "cvd"])
def test_a_directed_graph_with_self_loops_trains_from_disk_to_the_same_bits(
    estimator, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    save_graph(random_graph(directed=True), tmp_path / "graph")
    config = TrainConfig(estimator=estimator, epochs=2, batch_size=64)
    _, _, inside = trained(load_graph(tmp_path / "graph"), config)
    on_disk = load_graph(tmp_path / "graph", memory="disk")
    _, _, outside = trained(on_disk, replace(config, memory="disk"))
    assert_same(inside, outside)


def test_nothing_as_large_as_the_features_is_in_memory(store, tmp_path):
    graph, _ = scale_graph(load_graph(store, memory="disk"), "standard")
    model = GraphSAGE(graph.num_features, 8, graph.num_classes, layers=2)
    config = TrainConfig(estimator="two-way", epochs=1, batch_size=64, memory="disk")
    trainer = Trainer(
        model, graph, config, find_target(graph, config), directory=tmp_path / "tables"
    )
    trainer.run()
    tables = trainer.minibatches.histories.tables
    assert {kind for _, kind in tables} == {"h", "g"}
    assert trainer.minibatches.setup.averages[None].values is not None
    large = [
        graph.features,
        graph.adjacency.indices,
        trainer.minibatches.setup.averages[None].table,
        *(table.values for table in tables.values()),
        *(table.values for table in trainer.evaluation.tables.tables.values()),
    ]
    mapped = _mapped_places()
    for tensor in large:
        assert any(start <= tensor.data_ptr() < end for start, end in mapped), tensor.shape


def test_a_run_goes_on_in_memory_that_began_on_disk(store, tmp_path):
    config = TrainConfig(estimator="two-way", epochs=4, batch_size=64, checkpoint_every="1")
    _, _, whole = trained(load_graph(store), config)
    graph, _ = scale_graph(load_graph(store, memory="disk"), "standard")
    torch.manual_seed(0)
    model = GraphSAGE(graph.num_features, 8, graph.num_classes, layers=2, dropout=0.3)
    folder = tmp_path / "checkpoints"
    fit(model, graph, replace(config, epochs=2, memory="disk"), checkpoints=folder)
    assert not list(folder.glob(".scratch-*"))
    assert_same(whole, fit(model, graph, config, resume=folder))


def test_features_in_half_precision_are_read_as_they_are_and_computed_in_float32(
    store, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    half = _halved(store, tmp_path / "half")
    graph = load_graph(half)
    assert graph.features.dtype == torch.float16
    config = TrainConfig(estimator="two-way", epochs=2, batch_size=64)
    model, scaled, result = trained(graph, config)
    assert scaled.features.dtype == torch.float16
    assert next(model.parameters()).dtype == torch.float32
    outputs = predict(model, scaled)
    assert outputs.dtype == torch.float32
    exact = predict(model, scaled.with_features(scaled.features.float(), scaled.scaling))
    assert torch.allclose(outputs, exact, atol=0.02)
    assert not torch.equal(outputs, exact)
    _, _, outside = trained(
        load_graph(half, memory="disk"), replace(config, memory="disk", checkpoint_every="0")
    )
    assert_same(result, outside)


def test_a_prediction_of_few_nodes_from_disk_computes_what_they_need_alone(store, tmp_path):
    graph, _ = scale_graph(load_graph(store, memory="disk"), "standard")
    model = GraphSAGE(graph.num_features, 8, graph.num_classes, layers=2)
    before = len(list((store / "derived").iterdir()))
    some = predict(model, graph, [3, 14], directory=tmp_path / "tables")
    assert len(list((store / "derived").iterdir())) == before
    everything = predict(model, graph, directory=tmp_path / "tables")
    assert torch.allclose(some, everything[[3, 14]], atol=1e-5)  # products of other shapes
    assert len(list((store / "derived").iterdir())) == before + 2


def _halved(store: Path, path: Path) -> Path:
    """The graph with its features in float16, as a stranger's program would write it."""
    from vrgcn.data.store_format import signed
    from vrgcn.files.checksums import file_checksum

    shutil.copytree(store, path, ignore=shutil.ignore_patterns("derived"))
    features = path / "features_0.npy"
    np.save(features, np.load(features).astype(np.float16))
    meta = json.loads((path / "meta.json").read_text())
    del meta["checksum"]
    meta["dtypes"]["features_0"] = "float16"
    meta["checksums"]["features_0.npy"] = file_checksum(features)
    (path / "meta.json").write_text(json.dumps(signed(meta)))
    return path


def _mapped_places() -> list[tuple[int, int]]:
    """Return the addresses of files mapped into this process's memory."""
    places = []
    for line in Path("/proc/self/maps").read_text().splitlines():
        parts = line.split(maxsplit=5)
        if len(parts) == 6 and parts[5].split(" ")[0].endswith((".npy", ".bin")):
            start, end = (int(x, 16) for x in parts[0].split("-"))
            places.append((start, end))
    return places
