"""The adjacency of the reversed edges, which gradients with a history go back along."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from vrgcn import GCN, Graph, TrainConfig, fit
from vrgcn.data.store import load_graph, save_graph
from vrgcn.data.tables import import_tables
from vrgcn.data.tables.spec import ImportSpec
from vrgcn.graph.propagation import build_propagation


def directed(*, weighted: bool = True, loops: bool = False) -> Graph:
    generator = torch.Generator().manual_seed(0)
    edges = torch.randint(40, (2, 200), generator=generator)
    edges = edges if loops else edges[:, edges[0] != edges[1]]
    weight = torch.rand(edges.shape[1], generator=generator) if weighted else None
    return Graph(
        edges,
        torch.randn(40, 5, generator=generator),
        torch.arange(40) % 3,
        edge_weight=weight,
        train=torch.arange(30),
        val=torch.arange(30, 40),
    )


@pytest.mark.parametrize("weighted", [True, False])
@pytest.mark.parametrize("loops", [True, False])
def test_a_store_keeps_the_reversed_edges_of_a_directed_graph(
    tmp_path: Path, weighted: bool, loops: bool
) -> None:
    graph = directed(weighted=weighted, loops=loops)
    save_graph(graph, tmp_path / "graph")
    loaded = load_graph(tmp_path / "graph")
    assert "transposed" in vars(loaded.adjacency)  # known without being made
    for rule in ("gcn", "mean"):
        P = build_propagation(rule, loaded)
        assert "transposed" in vars(P.adjacency)
        torch.testing.assert_close(
            P.transposed.to_dense(), build_propagation(rule, graph).to_dense().T
        )


def test_a_symmetric_graph_is_its_own_reverse(tmp_path: Path) -> None:
    graph = Graph(torch.tensor([[0, 1], [1, 2]]), torch.eye(3), undirected=True)
    save_graph(graph, tmp_path / "graph")
    assert not (tmp_path / "graph" / "reverse_indices_0.npy").exists()
    P = build_propagation("mean", load_graph(tmp_path / "graph"))
    assert P.transposed.adjacency is P.adjacency


def test_two_way_from_a_store_ends_in_the_bits_of_two_way_from_memory(tmp_path: Path) -> None:
    save_graph(directed(), tmp_path / "graph")
    weights = []
    for graph in (directed(), load_graph(tmp_path / "graph")):
        torch.manual_seed(0)
        config = TrainConfig(estimator="two-way", epochs=3, batch_size=7)
        weights.append(fit(GCN(5, 8, 3, layers=3), graph, config).weights)
    assert all(torch.equal(value, weights[1][name]) for name, value in weights[0].items())


@pytest.mark.parametrize("weight", ["", ",weight"])
def test_the_import_of_a_directed_graph_writes_them_and_says_how_large(
    tmp_path: Path, weight: str
) -> None:
    rows = ["a,b,2", "a,c,3", "b,c,4", "c,c,5", "a,b,1"]
    rows = rows if weight else [row[:3] for row in rows]
    edges = tmp_path / "edges.csv"
    edges.write_text("\n".join([f"source,target{weight}", *rows]) + "\n")
    summary = import_tables(ImportSpec(edges=edges, out=tmp_path / "g", directed=True))
    loaded = load_graph(tmp_path / "g")
    A = loaded.adjacency.to_torch(torch.float32).to_dense()
    assert torch.equal(loaded.adjacency.transposed.to_torch(torch.float32).to_dense(), A.T)
    assert "reversed" in str(summary)
    assert "MB" in next(line for line in str(summary).splitlines() if line.startswith("reversed"))
