"""Figures about graphs, counted here the slow way; and the paper's Table 1."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from vrgcn.data import load_dataset
from vrgcn.data import statistics as module
from vrgcn.data.statistics import SampledMean, statistics, two_hop
from vrgcn.graph.blocks import Blocks
from vrgcn.graph.graph import Graph


def random_graph(nodes: int, edges: int, seed: int, undirected: bool = False) -> Graph:
    generator = torch.Generator().manual_seed(seed)
    pairs = torch.randint(0, nodes, (2, edges), generator=generator)
    labels = torch.randint(-1, 3, (nodes,), generator=generator)
    return Graph(pairs, torch.ones(nodes, 2), labels, num_classes=3, undirected=undirected)


def dense_pattern(graph: Graph) -> np.ndarray:
    """A + I as a dense 0/1 matrix."""
    A = np.eye(graph.num_nodes, dtype=int)
    sources, targets = graph.edge_index().numpy()
    A[targets, sources] = 1
    return A


@pytest.mark.parametrize(
    ("name", "V", "E", "degree", "degree2"),
    [
        ("citeseer", 3_327, 12_431, 4, 15),
        ("cora", 2_708, 13_264, 5, 37),
        ("pubmed", 19_717, 108_365, 6, 60),
        ("nell-paper", 65_755, 318_135, 5, 1_597),
        ("ppi-small", 14_755, 458_973, 31, 970),
    ],
)
def test_table_1_of_the_paper_comes_out_exactly(
    real_data: Path, graph_cache: Path, name: str, V: int, E: int, degree: int, degree2: int
) -> None:
    found = statistics(load_dataset(name, data_root=real_data, cache=graph_cache))
    rounded = (found.degree.rounded(), found.two_hop.rounded())
    assert (found.nodes, found.edges, *rounded) == (V, E, degree, degree2)
    assert found.two_hop.error == 0
    assert not found.directed


def test_the_public_nell_has_fewer_edges_than_table_1(real_data: Path, graph_cache: Path) -> None:
    """The paper's 318,135 and 1,597 are those of `nell-paper`; these are of the published one."""
    found = statistics(load_dataset("nell", data_root=real_data, cache=graph_cache))
    assert (found.nodes, found.edges, found.degree.rounded()) == (65_755, 317_305, 5)
    assert found.two_hop.value == pytest.approx(1593.1094, abs=1e-4)


@pytest.mark.parametrize("undirected", [False, True])
@pytest.mark.parametrize("seed", range(5))
def test_every_figure_agrees_with_a_count_on_the_dense_matrix(
    seed: int, undirected: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_CHUNK_STEPS", 50)  # several chunks
    graph = random_graph(40, 45, seed, undirected)
    A = dense_pattern(graph)
    found = statistics(graph)
    assert found.edges == A.sum()
    assert found.degree.value == pytest.approx(A.sum() / 40)
    assert found.two_hop == SampledMean(((A @ A) > 0).sum() / 40, 40)
    sources, targets = graph.edge_index().numpy()
    assert found.self_loops == (sources == targets).sum()
    neighbours = A.sum(1) - 1
    assert found.max_degree == neighbours.max()
    assert found.median_degree == np.sort(neighbours)[19]
    assert found.isolated == ((A + A.T).sum(1) == 2).sum()
    assert found.directed == bool((A != A.T).any())
    assert found.directed != undirected
    y = graph.labels.numpy()
    joined = [
        y[u] == y[v]
        for u, v in zip(sources, targets, strict=True)
        if u != v and y[u] >= 0 and y[v] >= 0
    ]
    assert found.homophily == pytest.approx(np.mean(joined))
    assert found.labelled == (y >= 0).sum()


def test_a_node_reached_by_more_than_255_paths_is_counted() -> None:
    """Counting in bytes would lose it: 256 paths join the first node and the last."""
    middle = torch.arange(1, 257)
    edges = torch.stack(
        [torch.cat([torch.zeros(256).long(), middle]), torch.cat([middle, torch.full((256,), 257)])]
    )
    graph = Graph(edges, torch.ones(258, 1), undirected=True)
    # The ends reach all 258; the others each other, over either end.
    assert statistics(graph).two_hop.value == 258


def test_a_sample_of_nodes_estimates_the_average_within_its_error() -> None:
    """20 samples of 300 of 3,000 nodes: their spread is as large as the error that they state."""
    graph = random_graph(3_000, 12_000, seed=0, undirected=True)
    A = graph.adjacency
    exact = two_hop(A, torch.Generator(), steps=10**9).value
    paths = int(((A.counts + 1) + torch.stack([(A.counts[r] + 1).sum() for r in _rows(A)])).sum())
    samples = [
        two_hop(A, torch.Generator().manual_seed(seed), steps=paths // 10) for seed in range(20)
    ]
    assert {sample.nodes for sample in samples} == {300}
    off = [(sample.value - exact) / sample.error for sample in samples]
    # 20 standard normal numbers: their root mean square is in 0.6 .. 1.5 but for one case in 500.
    assert 0.6 < np.sqrt(np.mean(np.square(off))) < 1.5


def _rows(A) -> list[torch.Tensor]:
    return [A.indices[A.indptr[u] : A.indptr[u + 1]] for u in range(A.num_rows)]


def test_at_least_100_nodes_are_sampled_however_dense_the_graph() -> None:
    graph = random_graph(500, 5_000, seed=1)
    average = two_hop(graph.adjacency, torch.Generator().manual_seed(0), steps=1)
    assert average.nodes == 100
    assert average.error > 0


@pytest.mark.parametrize(
    ("value", "rounded"), [(5.496, 6), (5.44, 5), (36.78, 37), (31.106, 31), (4.5, 5), (0.0, 0)]
)
def test_averages_are_rounded_as_in_table_1(value: float, rounded: int) -> None:
    assert SampledMean(value, 1).rounded() == rounded


def test_graphs_of_several_classes_or_none_have_no_homophily() -> None:
    edges = [[0, 1], [1, 2]]
    several = Graph(edges, torch.eye(3), torch.tensor([[0, 1], [1, 1], [-1, -1]]))
    found = statistics(several)
    assert (found.homophily, found.several, found.labelled) == (None, True, 2)
    found = statistics(Graph(edges, torch.eye(3)))
    assert (found.homophily, found.classes, found.labelled) == (None, 0, 0)


def test_numbers_are_described_and_have_no_homophily() -> None:
    labels = [1.0, 3.0, float("nan")]
    found = statistics(Graph([[0, 1], [1, 2]], torch.eye(3), labels, task="regression"))
    assert (found.homophily, found.classes, found.labelled) == (None, 0, 2)
    assert str(found.numbers) == "1 to 3, mean 2, deviation 1"
    unknown = [float("nan")] * 3
    found = statistics(Graph([[0, 1], [1, 2]], torch.eye(3), unknown, task="regression"))
    assert (found.numbers, found.labelled) == (None, 0)


def test_sparse_columns_beside_dense_ones_are_counted() -> None:
    x = torch.eye(4)
    blocks = Blocks.beside([x[:, :1], x[:, 1:].to_sparse_csr()])
    found = statistics(Graph([[0], [1]], blocks))
    assert (found.features, found.sparse, found.density) == (4, 3, 0.25)
    # One dense column; five starts of rows, and three entries with a place and a value.
    assert found.memory["features"] == 4 * 4 + 5 * 8 + 3 * 12
    assert statistics(Graph([[0], [1]], x)).sparse == 0


def test_sparse_and_dense_features_have_the_same_density_and_their_own_memory() -> None:
    x = torch.eye(6)
    dense, sparse = (statistics(Graph([[0], [1]], f)) for f in (x, x.to_sparse_csr()))
    assert dense.density == sparse.density == pytest.approx(1 / 6)
    assert dense.memory["features"] == 6 * 6 * 4
    assert sparse.memory["features"] == 7 * 8 + 6 * 8 + 6 * 4
    assert dense.memory["history, each hidden layer of 128"] == 6 * (128 * 4 + 8)
