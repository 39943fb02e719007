"""A graph is what was given: edges in PyG's direction, features, labels, splits."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.messages import refused
from vrgcn import GCN, Graph, TrainConfig, fit
from vrgcn.graph.sparse import CSR

X3 = torch.arange(6.0).view(3, 2)


def dense(graph: Graph) -> torch.Tensor:
    return graph.adjacency.to_torch().to_dense()


@st.composite
def edge_lists(draw):
    nodes = draw(st.integers(1, 6))
    node = st.integers(0, nodes - 1)
    edges = draw(st.lists(st.tuples(node, node, st.integers(-3, 3)), max_size=20))
    return nodes, edges


def test_source_comes_first_and_the_target_owns_the_row():
    graph = Graph([[0, 0, 1], [1, 2, 2]], X3)
    assert dense(graph).tolist() == [[0, 0, 0], [1, 0, 0], [1, 1, 0]]
    assert graph.num_edges == 3
    assert not graph.weighted


def test_columns_of_a_row_ascend_whatever_the_order_of_edges():
    graph = Graph([[2, 0, 1, 2], [0, 0, 0, 1]], X3, edge_weight=[3.0, 1.0, 2.0, 4.0])
    A = graph.adjacency
    assert A.indptr.tolist() == [0, 3, 4, 4]
    assert A.indices.tolist() == [0, 1, 2, 2]
    assert A.values.tolist() == [1, 2, 3, 4]


def test_edge_index_gives_back_the_merged_edges_in_pyg_direction():
    graph = Graph([[2, 0, 2, 1], [1, 2, 1, 1]], X3)
    assert sorted(map(tuple, graph.edge_index().T.tolist())) == [(0, 2), (1, 1), (2, 1)]
    again = Graph(graph.edge_index(), X3)
    assert torch.equal(dense(again), dense(graph))


def test_unweighted_duplicates_become_one_edge_of_weight_one():
    graph = Graph([[0, 0, 0, 1], [1, 1, 1, 0]], X3)
    assert dense(graph).tolist() == [[0, 1, 0], [1, 0, 0], [0, 0, 0]]
    assert graph.num_edges == 2


def test_weights_of_duplicates_are_summed_even_to_zero():
    graph = Graph([[0, 0, 1, 1], [1, 1, 0, 0]], X3, edge_weight=[0.5, 2.0, 1.0, -1.0])
    assert dense(graph).tolist() == [[0, 0, 0], [2.5, 0, 0], [0, 0, 0]]
    assert graph.num_edges == 2
    assert graph.weighted


def test_sums_of_many_weights_do_not_lose_precision():
    many = 100_000
    edges = np.zeros((2, many), dtype=np.int64)
    edges[1] = 1
    graph = Graph(edges, X3, edge_weight=np.full(many, 0.1))
    assert dense(graph)[1, 0] == pytest.approx(many * 0.1, rel=1e-6)


def test_self_loops_are_kept_and_count_once():
    graph = Graph([[0, 1], [0, 2]], X3, undirected=True)
    assert dense(graph).tolist() == [[1, 0, 0], [0, 0, 1], [0, 1, 0]]
    assert graph.num_edges == 3


def test_undirected_self_loop_keeps_its_weight():
    graph = Graph([[0, 1], [0, 2]], X3, edge_weight=[0.5, 2.0], undirected=True)
    assert dense(graph).tolist() == [[0.5, 0, 0], [0, 0, 2], [0, 2, 0]]


def test_undirected_edge_given_both_ways_stays_one_edge():
    graph = Graph([[0, 1], [1, 0]], X3, undirected=True)
    assert dense(graph).tolist() == [[0, 1, 0], [1, 0, 0], [0, 0, 0]]


@pytest.mark.parametrize("edges", [[], [[], []], np.zeros((2, 0)), torch.empty(2, 0).long()])
def test_graph_may_have_no_edges(edges):
    graph = Graph(edges, X3)
    assert graph.num_edges == 0
    assert dense(graph).tolist() == [[0] * 3] * 3


def test_isolated_nodes_have_empty_rows():
    graph = Graph([[0], [3]], torch.ones(5, 1))
    assert graph.adjacency.counts.tolist() == [0, 0, 0, 1, 0]


@given(edge_lists(), st.booleans(), st.booleans())
@settings(max_examples=80, deadline=None)
def test_adjacency_is_the_accumulated_edges(case, weighted, undirected):
    nodes, edges = case
    expected = np.zeros((nodes, nodes))
    for source, target, weight in edges:
        for row, column in {(target, source), (source, target) if undirected else (target, source)}:
            expected[row, column] += weight if weighted else 1
    if not weighted:
        expected = (expected > 0).astype(float)
    graph = Graph(
        [[e[0] for e in edges], [e[1] for e in edges]],
        torch.ones(nodes, 1),
        edge_weight=[float(e[2]) for e in edges] if weighted else None,
        undirected=undirected,
    )
    np.testing.assert_array_equal(dense(graph).numpy(), expected)
    A = graph.adjacency
    assert (A.indices.diff()[A.row_of_entry.diff() == 0] > 0).all()


def sparse_forms() -> dict[str, object]:
    values = torch.tensor([[0.0, 2.0, 0.0], [0.0, 0.0, 0.0], [1.0, 0.0, -3.0]])
    unsorted = scipy.sparse.csr_matrix(
        (np.float32([1, 1, -3, 1]), np.array([1, 1, 2, 0]), np.array([0, 2, 2, 4])), shape=(3, 3)
    )
    return {
        "csr": values.to_sparse_csr(),
        "coo": values.to_sparse_coo(),
        "uncoalesced coo": torch.sparse_coo_tensor(
            [[0, 0, 2, 2], [1, 1, 0, 2]], [1.5, 0.5, 1.0, -3.0], (3, 3), check_invariants=True
        ),
        "scipy csr": scipy.sparse.csr_matrix(values.numpy()),
        "scipy csc": scipy.sparse.csc_array(values.numpy()),
        "scipy coo": scipy.sparse.coo_matrix(values.numpy()),
        "scipy csr, unsorted with duplicates": unsorted,
        "integers": values.long().to_sparse_csr(),
    }


@pytest.mark.parametrize("form", sparse_forms())
def test_sparse_features_stay_sparse_and_equal(form):
    features = Graph([[0], [1]], sparse_forms()[form]).features
    assert features.layout == torch.sparse_csr
    assert features.dtype == torch.float32
    assert features.crow_indices().dtype == features.col_indices().dtype == torch.int64
    assert features.to_dense().tolist() == [[0, 2, 0], [0, 0, 0], [1, 0, -3]]


def test_scipy_features_are_not_changed_by_making_a_graph():
    matrix = scipy.sparse.csr_matrix(
        (np.float32([1, 2, 3]), np.array([1, 0, 0]), np.array([0, 3, 3])), shape=(2, 2)
    )
    Graph([[0], [1]], matrix)
    assert matrix.indices.tolist() == [1, 0, 0]
    assert matrix.data.tolist() == [1, 2, 3]


@pytest.mark.parametrize("convert", [torch.tensor, np.array, list])
def test_tensors_arrays_and_lists_make_the_same_graph(convert):
    graph = Graph(
        convert([[0, 1], [1, 2]]),
        convert([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]),
        convert([0, 1, -1]),
        edge_weight=convert([0.5, 1.5]),
        train=convert([0]),
        val=convert([False, True, False]),
    )
    assert dense(graph).tolist() == [[0, 0, 0], [0.5, 0, 0], [0, 1.5, 0]]
    assert graph.features.tolist() == [[1, 2], [3, 4], [5, 6]]
    assert graph.labels.tolist() == [0, 1, -1]
    assert (graph.train.tolist(), graph.val.tolist(), graph.test.tolist()) == ([0], [1], [])


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.float16, np.int32, np.uint8])
def test_features_of_any_real_dtype_train_an_ordinary_model(dtype):
    graph = Graph(
        [[0, 1], [1, 0]], np.arange(12).reshape(4, 3).astype(dtype), [0, 1, 0, 1], train=[0, 1]
    )
    result = fit(GCN(3, 4, 2, dropout=0.0), graph, TrainConfig(epochs=1))
    assert np.isfinite(result.curve[0].loss)


def test_classes_are_counted_from_the_labels_unless_given():
    assert Graph([], X3, [0, 2, 1]).num_classes == 3
    assert Graph([], X3, [0, 2, 1], num_classes=5).num_classes == 5
    assert Graph([], X3).num_classes == 0
    assert Graph([], X3).labels is None


def test_weights_of_repeated_edges_that_sum_to_infinity_are_refused():
    weights = torch.tensor([3e38, 3e38])
    with refused():
        Graph(torch.tensor([[0, 0], [1, 1]]), torch.ones(2, 1), edge_weight=weights)


def test_unlabelled_nodes_are_minus_one_and_allowed_outside_the_splits():
    graph = Graph([], X3, [1, -1, 0], train=[0, 2])
    assert graph.labels.tolist() == [1, -1, 0]
    assert graph.labels.dtype == torch.int64
    assert not graph.multilabel


@pytest.mark.parametrize("unknown", [-1.0, float("nan")])
def test_multilabel_rows_may_be_unknown(unknown):
    graph = Graph([], X3, [[0, 1.0], [unknown, unknown], [1, 1]], train=[0], val=[2])
    assert graph.multilabel
    assert graph.num_classes == 2
    assert graph.labels.tolist() == [[0, 1], [-1, -1], [1, 1]]


@pytest.mark.parametrize("dtype", [torch.bool, torch.int64, torch.float64])
def test_multilabels_become_floats(dtype):
    graph = Graph([], X3, torch.tensor([[0, 1], [1, 0], [0, 0]]).to(dtype))
    assert graph.labels.dtype == torch.float32
    assert graph.labels.tolist() == [[0, 1], [1, 0], [0, 0]]


def test_splits_are_sorted_ids_from_ids_or_masks():
    graph = Graph(
        [],
        torch.ones(6, 1),
        [0] * 6,
        train=[4, 0],
        val=[False, True] + [False] * 4,
        test=range(2, 4),
    )
    assert graph.split("train").tolist() == [0, 4]
    assert graph.split("val").tolist() == [1]
    assert graph.split("test").tolist() == [2, 3]
    assert graph.train.dtype == graph.val.dtype == graph.test.dtype == torch.int64


def test_among_keeps_the_edges_with_both_ends_inside_and_shares_the_rest():
    graph = Graph(
        [[0, 1, 2, 3, 1, 1], [1, 2, 3, 0, 1, 3]],
        torch.randn(4, 2),
        [0, 1, 0, 1],
        edge_weight=[1.0, 2.0, 3.0, 4.0, 5.0, 6.0],
        train=[1, 3],
    )
    inside = graph.among(graph.train)
    assert inside.edge_index().T.tolist() == [[1, 1], [1, 3]]
    assert inside.adjacency.values.tolist() == [5, 6]
    assert inside.num_nodes == 4
    assert inside.features is graph.features
    assert inside.labels is graph.labels
    assert torch.equal(inside.train, graph.train)
    assert inside.weighted
    assert graph.num_edges == 6


@given(edge_lists(), st.sets(st.integers(0, 5)))
@settings(max_examples=30, deadline=None)
def test_among_is_the_masked_adjacency(case, chosen):
    nodes, edges = case
    graph = Graph([[e[0] for e in edges], [e[1] for e in edges]], torch.ones(nodes, 1))
    mask = torch.tensor([node in chosen for node in range(nodes)])
    expected = dense(graph) * mask[:, None] * mask[None, :]
    assert torch.equal(dense(graph.among(mask.nonzero()[:, 0])), expected)


def test_labels_may_be_numbers():
    graph = Graph([], X3, [1.5, float("nan"), 7], train=[0], test=[2], task="regression")
    assert (graph.task, graph.num_classes, graph.multilabel) == ("regression", 0, False)
    assert graph.labels.dtype == torch.float64
    assert graph.labelled.tolist() == [True, False, True]
    assert "regression, train=1, val=0, test=1" in repr(graph)
    for other in (graph.among(torch.tensor([0])), graph.with_features(torch.ones(3, 5))):
        assert other.task == "regression"
    whole = Graph([], X3, [3, -1, 2], task="regression")
    assert whole.labels.tolist() == [3, -1, 2]
    assert whole.labelled.all()


def test_a_task_that_the_labels_tell_may_be_named_too():
    assert Graph([], X3, [0, 1, 1], task="classes").task == Graph([], X3, [0, 1, 1]).task
    several = [[0, 1], [1, 1], [0, 0]]
    assert Graph([], X3, several, task="multilabel").task == Graph([], X3, several).task
    assert Graph([], X3, task="regression").task == "regression"


def test_from_parts_takes_what_a_graph_has():
    graph = Graph([[0, 1], [1, 2]], X3, [0, 1, 0], train=[0], test=[2])
    splits = {name: graph.split(name) for name in ("train", "val", "test")}
    A = graph.adjacency
    copy = Graph.from_parts(
        CSR(A.indptr, A.indices, A.values, 3), graph.features, graph.labels, splits, 2
    )
    assert torch.equal(dense(copy), dense(graph))
    assert repr(copy) == repr(graph)


def test_repr_tells_the_sizes():
    graph = Graph([[0, 1], [1, 2]], X3.to_sparse_csr(), [0, 1, 0], train=[0], undirected=True)
    assert repr(graph) == (
        "Graph(nodes=3, entries=4, features=2 sparse, classes=2, train=1, val=0, test=0)"
    )
