"""A model on a graph, looked at once."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from tests.messages import refused
from tests.theory.problems import Embedded, dense_matrix, gcn, graphsage, random_graph
from vrgcn.engine.setup import Setup, propagation_of, set_up
from vrgcn.graph.graph import Graph
from vrgcn.graph.propagation import Propagation

GRAPH = random_graph()
P = dense_matrix(GRAPH, "mean")
NODES = torch.tensor([17, 3, 59])


def half_trained() -> Graph:
    """Only the first half of the nodes are training nodes."""
    return Graph(GRAPH.edge_index(), GRAPH.features, GRAPH.labels, train=torch.arange(30))


@pytest.mark.parametrize("preprocess", [None, True, False])
def test_a_preprocessed_level_is_propagated_over_nothing(preprocess: bool | None) -> None:
    setup = set_up(graphsage(3), GRAPH, preprocess=preprocess)
    assert setup.preprocess == (preprocess is not False)
    first, *others = setup.matrices
    assert first == ({} if setup.preprocess else setup.P)
    assert others == [setup.P, setup.P]


@pytest.mark.parametrize("sparse", [False, True])
def test_a_minibatch_starts_from_rows_of_x_and_of_p_x(sparse: bool) -> None:
    features = GRAPH.features.to_sparse_csr() if sparse else GRAPH.features
    setup = set_up(graphsage(), GRAPH.with_features(features), preprocess=True)
    inputs = setup.inputs(NODES)
    x, averages = inputs.x, inputs.answer(inputs.x, None)
    if sparse:
        x, averages = x.to_dense(), averages.to_dense()
    assert torch.equal(x, GRAPH.features[NODES])
    assert torch.allclose(averages, (P @ GRAPH.features)[NODES], atol=1e-12)
    assert (inputs.ready is None) == sparse
    if inputs.ready is not None:
        assert torch.equal(inputs.ready[1], torch.cat([x, averages], dim=1))


def test_what_is_not_the_features_is_not_answered_from_p_x() -> None:
    inputs = set_up(graphsage(), GRAPH, preprocess=True).inputs(NODES)
    with refused(RuntimeError):
        inputs.answer(inputs.x.clone(), None)


def test_a_model_that_changes_the_features_first_has_nothing_to_preprocess() -> None:
    assert not set_up(Embedded(2), GRAPH, preprocess=None).preprocess
    with refused():
        set_up(Embedded(2), GRAPH, preprocess=True)


def test_dropout_before_the_first_propagation_is_told_from_a_layer_there() -> None:
    dropping = gcn(dropout=0.5, order="before")
    assert set_up(dropping, GRAPH).features_dropped
    assert not set_up(gcn(dropout=0.5), GRAPH).features_dropped
    assert not set_up(Embedded(2), GRAPH).features_dropped


def test_an_inductive_setup_has_the_edges_among_training_nodes_and_evaluates_on_all() -> None:
    graph = half_trained()
    setup = set_up(graphsage(), graph, preprocess=True, inductive=True)
    inside = setup.P[None].to_dense()
    assert inside[30:].abs().sum() == inside[:, 30:].abs().sum() == 0
    assert inside[:30].abs().sum() > 0
    averages = setup.averages[None].table
    assert torch.allclose(averages, inside @ graph.features, atol=1e-12)

    everywhere = setup.on_all_edges()
    assert torch.allclose(everywhere.P[None].to_dense(), dense_matrix(graph, "mean"), atol=1e-12)
    assert everywhere.on_all_edges() is everywhere
    rows = everywhere.averages[None].rows(NODES, keep=False)
    wanted = (dense_matrix(graph, "mean") @ graph.features)[NODES]
    assert torch.allclose(rows, wanted, atol=1e-12)


def test_an_inductive_setup_knows_the_averages_of_nodes_that_it_was_not_told_of() -> None:
    graph = half_trained()
    setup = set_up(gcn(), graph, preprocess=True, inductive=True)
    nodes = torch.tensor([45, 3])  # by gcn a node averages itself, so that no row is zero
    expected = setup.P[None].to_dense() @ graph.features
    assert expected[45].abs().sum() > 0
    averages = setup.inputs(nodes).averaged[None]
    assert torch.allclose(averages, expected[nodes], atol=1e-12)


def test_an_inductive_setup_needs_a_rule_where_a_matrix_would_have_all_edges() -> None:
    matrix = Propagation.from_matrix(P, dtype=torch.float64)
    for rule in (matrix, {"cites": "mean", "knows": matrix}):
        with refused():
            set_up(graphsage(), half_trained(), propagation=rule, inductive=True)
    assert set_up(graphsage(), half_trained(), propagation=lambda g: matrix, inductive=True)


def test_a_model_says_what_matrix_it_is_meant_for() -> None:
    assert propagation_of(graphsage()) == "mean"
    assert propagation_of(torch.nn.Linear(2, 2)) == "gcn"


def test_no_relation_at_all_is_refused() -> None:
    with refused():
        set_up(graphsage(), GRAPH, propagation={})


def test_averages_lie_in_a_folder_that_is_named(tmp_path: Any) -> None:
    setup: Setup = set_up(graphsage(), GRAPH, preprocess=True, directory=tmp_path)
    assert (tmp_path / "averages-0.bin").stat().st_size == 8 * GRAPH.features.numel()
    assert torch.allclose(setup.averages[None].table, P @ GRAPH.features, atol=1e-12)
