"""A graph in another order of its nodes is the same graph."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from tests.messages import refused
from vrgcn import Graph, GraphSAGE, load_graph, predict, save_graph
from vrgcn.data.generate import generate_graph
from vrgcn.data.generate_spec import GenerateSpec
from vrgcn.data.reorder import reorder_graph
from vrgcn.data.store import verify_graph
from vrgcn.graph import ordering
from vrgcn.graph.names import Names


def assert_same_graph(old: Graph, new: Graph) -> None:
    """Up to the order, which the new graph's names tell."""
    ids = new.names.node_ids(torch.arange(new.num_nodes).numpy()).to_pylist()
    before = old.names.node_ids(torch.arange(old.num_nodes).numpy()).to_pylist()
    order = torch.tensor([before.index(name) for name in ids])
    assert sorted(order.tolist()) == list(range(old.num_nodes))
    assert torch.equal(new.features, old.features[order])
    assert old.labels is not None
    assert new.labels is not None
    assert torch.equal(new.labels, old.labels[order])
    old_dense = old.adjacency.to_torch(torch.float32).to_dense()
    assert torch.equal(new.adjacency.to_torch(torch.float32).to_dense(), old_dense[order][:, order])
    for name in ("train", "val", "test"):
        assert sorted(order[new.split(name)].tolist()) == old.split(name).tolist()


@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
def test_edges_weights_features_labels_and_splits_go_with_their_nodes(directed, weighted, tmp_path):
    draw = torch.Generator().manual_seed(0)
    edges = torch.randint(60, (2, 200), generator=draw)  # some are loops
    graph = Graph(
        edges,
        torch.randn(60, 3, generator=draw),
        torch.randint(2, (60,), generator=draw),
        edge_weight=torch.rand(200, generator=draw) if weighted else None,
        train=range(20),
        val=range(20, 30),
        test=range(40, 60),
        undirected=not directed,
    )
    save_graph(graph, tmp_path / "old")
    reorder_graph(tmp_path / "old", tmp_path / "new", block=10)
    verify_graph(tmp_path / "new")
    new = load_graph(tmp_path / "new")
    assert_same_graph(graph, new)
    assert ("transposed" in vars(new.adjacency)) == directed


def test_names_of_nodes_classes_and_features_stay(tmp_path):
    import pyarrow as pa

    names = Names(pa.array(["a", "b", "c", "d"]), ["x", "y"], ["f"])
    graph = Graph(
        [[0, 1, 2], [1, 2, 3]], torch.randn(4, 1), [0, 1, 0, 1], names=names, undirected=True
    )
    save_graph(graph, tmp_path / "old")
    reorder_graph(tmp_path / "old", tmp_path / "new", block=2)
    new = load_graph(tmp_path / "new")
    assert_same_graph(graph, new)
    assert (new.names.classes, new.names.features) == (["x", "y"], ["f"])


@pytest.mark.parametrize("method", ["metis", "ldg"])
def test_neighbours_come_close_and_predictions_stay(method, tmp_path, monkeypatch):
    monkeypatch.setattr(ordering, "_PART", 1500)  # several parts, each of several blocks
    spec = GenerateSpec(nodes=4000, degree=12, features=4, community=100, homophily=0.9)
    generate_graph(spec, tmp_path / "old")
    told: list[str] = []
    close = reorder_graph(
        tmp_path / "old",
        tmp_path / "new",
        method,
        block=100,
        on_piece=lambda what, done: told.append(what),
    )
    assert close.before < 0.06
    assert close.after > (0.6 if method == "metis" else 0.3)
    assert list(dict.fromkeys(told)) == [
        "dividing the graph",
        "ordering its parts",
        "edges",
        "features",
    ]
    old, new = load_graph(tmp_path / "old"), load_graph(tmp_path / "new")
    place = torch.from_numpy(new.names.node_ids(torch.arange(4000).numpy()).to_numpy().copy())
    torch.manual_seed(0)
    model = GraphSAGE(4, 8, 16, layers=2)
    assert torch.allclose(predict(model, new), predict(model, old)[place], atol=1e-5)


def test_sparse_features_are_refused(tmp_path):
    graph = Graph([[0], [1]], torch.eye(3).to_sparse_csr())
    save_graph(graph, tmp_path / "old")
    with refused():
        reorder_graph(tmp_path / "old", tmp_path / "new")
    assert not Path(tmp_path / "new").exists()
