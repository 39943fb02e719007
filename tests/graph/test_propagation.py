"""Propagation matrices against the textbook's dense formulas."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from vrgcn import Graph, Propagation
from vrgcn.engine.averages import AveragedFeatures
from vrgcn.graph.propagation import (
    PROPAGATIONS,
    build_propagation,
    chunks,
    is_symmetric,
    with_neighbours,
)


@st.composite
def graphs(draw):
    """Small graphs of any kind: directed or not, weighted or not, self-loops, isolated nodes."""
    nodes = draw(st.integers(1, 7))
    node = st.integers(0, nodes - 1)
    edges = draw(st.lists(st.tuples(node, node), max_size=20))
    weights = None
    if draw(st.booleans()):
        weight = st.sampled_from([0.0, 0.25, 1.0, 3.0])
        weights = draw(st.lists(weight, min_size=len(edges), max_size=len(edges)))
    return Graph(
        [[e[0] for e in edges], [e[1] for e in edges]],
        torch.randn(nodes, 2, generator=torch.Generator().manual_seed(0)),
        edge_weight=weights,
        undirected=draw(st.booleans()),
    )


def dense_adjacency(graph: Graph) -> torch.Tensor:
    return graph.adjacency.to_torch(torch.float64).to_dense()


def dense_gcn(A: torch.Tensor) -> torch.Tensor:
    A = A + torch.eye(len(A), dtype=A.dtype)
    return A / (A.sum(1)[:, None] * A.sum(0)[None, :]).sqrt()


def dense_mean(A: torch.Tensor) -> torch.Tensor:
    degree = A.sum(1, keepdim=True)
    return torch.where(degree > 0, A / degree, torch.zeros_like(A))


DENSE = {"gcn": dense_gcn, "mean": dense_mean, "identity": lambda A: torch.eye(len(A)).double()}


@pytest.mark.parametrize("rule", DENSE)
@given(graph=graphs())
@settings(max_examples=40, deadline=None)
def test_matrix_is_the_dense_formula(rule, graph):
    P = build_propagation(rule, graph)
    expected = DENSE[rule](dense_adjacency(graph))
    torch.testing.assert_close(P.to_dense().double(), expected, rtol=1e-6, atol=1e-7)
    assert (P.adjacency.indices != P.adjacency.row_of_entry).all()
    torch.testing.assert_close(P.transposed.to_dense(), P.to_dense().T)
    h = torch.randn(graph.num_nodes, 3, generator=torch.Generator().manual_seed(1))
    torch.testing.assert_close(P @ h, (expected @ h.double()).float(), rtol=1e-5, atol=1e-6)


def test_gcn_by_hand():
    # 0 - 1 - 2 and node 3 alone: degrees with self-loops 2, 3, 2, 1.
    graph = Graph([[0, 1], [1, 2]], torch.ones(4, 1), undirected=True)
    s = 6**-0.5
    expected = [[1 / 2, s, 0, 0], [s, 1 / 3, s, 0], [0, s, 1 / 2, 0], [0, 0, 0, 1]]
    torch.testing.assert_close(PROPAGATIONS["gcn"](graph).to_dense(), torch.tensor(expected))


def test_gcn_of_a_directed_graph_divides_by_row_and_column_degree():
    # 0 -> 1, 0 -> 2, 1 -> 2: rows of A + I sum to 1, 2, 3 and columns to 3, 2, 1.
    graph = Graph([[0, 0, 1], [1, 2, 2]], torch.ones(3, 1))
    expected = [
        [3**-0.5, 0, 0],
        [6**-0.5, 4**-0.5, 0],
        [9**-0.5, 6**-0.5, 3**-0.5],
    ]
    torch.testing.assert_close(PROPAGATIONS["gcn"](graph).to_dense(), torch.tensor(expected))


def test_gcn_counts_a_given_self_loop_besides_the_added_one():
    graph = Graph([[0], [0]], torch.ones(2, 1), edge_weight=[3.0])
    assert PROPAGATIONS["gcn"](graph).to_dense().tolist() == [[1, 0], [0, 1]]
    graph = Graph([[0, 0], [0, 1]], torch.ones(2, 1), edge_weight=[2.0, 1.0])
    expected = [[3 / 12**0.5, 0], [1 / 8**0.5, 1 / 2**0.5]]
    torch.testing.assert_close(PROPAGATIONS["gcn"](graph).to_dense(), torch.tensor(expected))


def test_mean_weighs_by_edge_and_leaves_isolated_nodes_at_zero():
    graph = Graph([[0, 1, 2], [2, 2, 2]], torch.ones(4, 1), edge_weight=[1.0, 3.0, 4.0])
    P = PROPAGATIONS["mean"](graph)
    assert P.to_dense().tolist() == [[0] * 4, [0] * 4, [0.125, 0.375, 0.5, 0], [0] * 4]
    assert P.own.tolist() == [0, 0, 0.5, 0]


def test_mean_of_zero_weights_is_zero_not_nan():
    graph = Graph([[0, 1], [2, 2]], torch.ones(3, 1), edge_weight=[0.0, 0.0])
    assert PROPAGATIONS["mean"](graph).to_dense().tolist() == [[0] * 3] * 3


def test_double_precision_features_get_a_double_precision_matrix():
    graph = Graph([[0, 1], [1, 2]], torch.ones(3, 1, dtype=torch.float64), undirected=True)
    P = PROPAGATIONS["gcn"](graph)
    assert P.own.dtype == P.rows(torch.arange(3)).weights().dtype == torch.float64
    assert P.to_dense()[0, 1].item() == pytest.approx(6**-0.5, rel=1e-15)


def forms(matrix: torch.Tensor) -> dict[str, object]:
    return {
        "dense": matrix,
        "csr": matrix.to_sparse_csr(),
        "coo": matrix.to_sparse_coo(),
        "numpy": matrix.numpy(),
        "lists": matrix.tolist(),
        "scipy csr": scipy.sparse.csr_matrix(matrix.numpy()),
        "scipy array": scipy.sparse.coo_array(matrix.numpy()),
    }


M = torch.tensor([[0.5, -1.0, 0.0], [0.0, 0.0, 0.0], [2.0, 0.0, -3.0]])


@pytest.mark.parametrize("form", forms(M))
def test_own_matrix_in_any_form_is_taken_as_it_is(form):
    P = Propagation.from_matrix(forms(M)[form])
    assert torch.equal(P.to_dense(), M)
    assert P.own.tolist() == [0.5, 0, -3]
    assert P.adjacency.num_entries == 2
    assert P.own.dtype == torch.float32


def test_entries_of_an_own_matrix_at_the_same_place_are_summed():
    coo = scipy.sparse.coo_matrix(([1.0, 2.0, 4.0, 8.0], ([0, 0, 1, 1], [1, 1, 1, 1])), (2, 2))
    assert Propagation.from_matrix(coo).to_dense().tolist() == [[0, 3], [0, 12]]


def test_own_rule_and_own_matrix_are_used():
    graph = Graph([[0, 1], [1, 2]], torch.ones(3, 1))
    P = Propagation.from_matrix(M)
    assert build_propagation(P, graph) is P
    assert build_propagation(lambda given: P if given is graph else None, graph) is P


@settings(max_examples=60, deadline=None)
@given(graphs())
def test_the_adjacency_is_shared_unless_it_has_self_loops(graph):
    A = graph.adjacency
    loops = bool((A.indices == A.row_of_entry).any())
    for rule in ("gcn", "mean"):
        P = build_propagation(rule, graph)
        assert (P.adjacency is A) != loops
        for factor in (P.own, P.left, P.right):
            assert not isinstance(factor, torch.Tensor) or factor.shape == (graph.num_nodes,)


def test_the_mean_of_an_unweighted_graph_has_no_value_for_each_entry():
    graph = Graph([[0, 1, 2], [1, 2, 0]], torch.ones(3, 1), undirected=True)
    rows = build_propagation("mean", graph).rows(torch.arange(3))
    assert rows.values is None
    assert rows.scale.tolist() == [0.5, 0.5, 0.5]


def test_the_transpose_of_an_undirected_graph_shares_its_edges():
    graph = Graph([[0, 1, 2], [1, 2, 3]], torch.ones(4, 1), undirected=True)
    P = build_propagation("mean", graph)
    assert P.transposed.adjacency is P.adjacency
    directed = build_propagation("mean", Graph([[0, 1, 2], [1, 2, 3]], torch.ones(4, 1)))
    assert directed.transposed.adjacency is not directed.adjacency


@pytest.mark.parametrize(
    ("edges", "weights", "symmetric"),
    [
        ([[0, 1, 1, 2], [1, 0, 2, 1]], None, True),
        ([[0, 1, 1, 2], [1, 0, 2, 1]], [0.5, 0.5, 3.0, 3.0], True),
        ([[0, 1, 1, 2], [1, 0, 2, 1]], [0.5, 3.0, 3.0, 0.5], False),  # in values only
        ([[0, 1, 2], [1, 2, 0]], None, False),
        ([[0, 1, 1], [1, 0, 2]], None, False),
    ],
)
def test_symmetry_is_of_places_and_values(edges, weights, symmetric):
    given = None if weights is None else torch.tensor(weights)
    A = Graph(edges, torch.ones(4, 1), edge_weight=given).adjacency
    dense = A.to_torch(torch.float64).to_dense()
    assert is_symmetric(A) == torch.equal(dense, dense.T) == symmetric


@pytest.mark.parametrize("rule", PROPAGATIONS)
@given(graph=graphs(), seed=st.integers(0, 100))
@settings(max_examples=40, deadline=None)
def test_rows_are_rows_of_the_matrix(rule, graph, seed):
    P = PROPAGATIONS[rule](graph)
    nodes = torch.randperm(graph.num_nodes, generator=torch.Generator().manual_seed(seed))[:3]
    rows = P.rows(nodes).to_torch(P.dtype).to_dense()
    rows[torch.arange(len(nodes)), nodes] += P.own_rows(nodes)
    assert torch.equal(rows, P.to_dense()[nodes])


def test_the_adjacency_sums_over_neighbours_and_loops():
    edges = torch.tensor([[0, 1, 2, 2], [1, 2, 1, 2]])
    graph = Graph(edges, torch.ones(3, 1), edge_weight=torch.tensor([1.0, 2.0, 3.0, 4.0]))
    P = PROPAGATIONS["adjacency"](graph)
    assert P.to_dense().tolist() == [[0, 0, 0], [1, 0, 3], [0, 2, 4]]
    assert (P @ graph.features).tolist() == [[0], [4], [6]]


def filled(P, features, nodes=None):
    averages = AveragedFeatures(P, features)
    averages.fill(nodes)
    return averages.table


@given(graph=graphs())
@settings(max_examples=25, deadline=None)
def test_propagated_features_are_the_product_dense_or_sparse(graph):
    P = PROPAGATIONS["gcn"](graph)
    expected = P @ graph.features
    torch.testing.assert_close(filled(P, graph.features), expected)
    sparse = filled(P, graph.features.to_sparse_csr())
    torch.testing.assert_close(sparse.to_dense(), expected)
    some = torch.arange(graph.num_nodes)[::2]
    part = filled(P, graph.features, some)
    torch.testing.assert_close(part[some], expected[some])
    assert part[1::2].abs().sum() == 0


@given(graph=graphs(), chosen=st.sets(st.integers(0, 6), min_size=1))
@settings(max_examples=40, deadline=None)
def test_with_neighbours_is_the_support_of_the_rows(graph, chosen):
    P = PROPAGATIONS["gcn"](graph)
    nodes = torch.tensor(sorted({c % graph.num_nodes for c in chosen}))
    A = graph.adjacency
    stored = torch.zeros(graph.num_nodes, graph.num_nodes, dtype=torch.bool)
    stored[A.row_of_entry, A.indices] = True
    expected = stored[nodes].any(0)
    expected[nodes] = True
    assert with_neighbours(nodes, P).tolist() == expected.nonzero()[:, 0].tolist()


def test_chunks_partition_the_nodes_and_bound_the_entries(monkeypatch):
    monkeypatch.setattr("vrgcn.graph.propagation.CHUNK_COST", 500)
    hub = np.stack([np.arange(1, 400), np.zeros(399, dtype=np.int64)])
    P = PROPAGATIONS["mean"](Graph(hub, torch.ones(400, 1), undirected=True))
    nodes = torch.arange(400)
    parts = list(chunks(nodes, P))
    assert torch.equal(torch.cat(parts), nodes)
    assert len(parts) > 40
    costs = [int((P.degrees(part) + 64).sum()) for part in parts]
    assert max(costs) <= 500 + 399 + 64
