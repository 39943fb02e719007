"""Records that are in the table twice, once for training and once for the test, are found."""

from __future__ import annotations

import torch

from vrgcn import Graph
from vrgcn.leaks.finding import FULL, QUICK, Budget
from vrgcn.leaks.twins import row_keys, twins_across_splits

N = 300


def graph(twins: int, *, sparse: bool = False, features: torch.Tensor | None = None) -> Graph:
    """Nodes 200 to 200 + twins have the features and neighbours of nodes 0 to twins."""
    x = torch.randn(N, 4) if features is None else features
    x[200 : 200 + twins] = x[:twins]
    first = torch.randint(50, (N,))  # neighbours: two of the nodes from 100 to 199
    ends = torch.stack([100 + first, 150 + torch.randint(50, (N,))])
    ends[:, 200 : 200 + twins] = ends[:, :twins]
    sources = torch.arange(N)
    own = (sources < 100) | (sources >= 200)
    edges = torch.cat([torch.stack([sources, end])[:, own] for end in ends], dim=1)
    labels = torch.randint(2, (N,))
    labels[200 : 200 + twins] = labels[:twins]
    given = x.to_sparse_csr() if sparse else x
    return Graph(edges, given, labels, train=range(200), test=range(200, N), undirected=True)


def test_twins_are_counted_in_dense_and_sparse_features() -> None:
    for sparse in (False, True):
        [finding] = twins_across_splits(graph(20, sparse=sparse), FULL)
        assert finding.severity == "high"
        assert finding.text.startswith("20 of 100 validation and test nodes")
        assert "100% of them its label" in finding.text


def test_few_twins_are_medium_and_none_is_no_finding() -> None:
    [finding] = twins_across_splits(graph(3), FULL)
    assert finding.severity == "medium"
    assert list(twins_across_splits(graph(0), FULL)) == []


def test_nodes_with_the_same_features_and_other_neighbours_are_no_twins() -> None:
    found = graph(20)
    assert list(twins_across_splits(found, QUICK))
    moved = Graph(
        torch.randint(N, (2, 900)), found.features, found.labels, train=found.train, test=found.test
    )
    assert list(twins_across_splits(moved, FULL)) == []


def test_features_that_many_nodes_share_tell_no_twins() -> None:
    shared = torch.randint(2, (N, 2)).float()
    assert list(twins_across_splits(graph(20, features=shared), FULL)) == []


def test_a_graph_beyond_the_budget_is_not_read() -> None:
    assert list(twins_across_splits(graph(20), Budget(cells=10, entries=10))) == []


def test_keys_of_rows_are_equal_where_rows_are() -> None:
    x = torch.randn(50, 7)
    x[:, 3] = 0
    x[9], x[11] = x[4], -x[4]
    x[12] = x[4].roll(1)
    keys = row_keys(x)
    assert keys[9] == keys[4]
    assert len(keys.unique()) == 49
    assert torch.equal(row_keys(x.to_sparse_csr()), keys)
