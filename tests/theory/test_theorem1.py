"""Proves Theorem 1: at fixed weights, epochs over all nodes make the control variate exact.

Count: the features are their own exact history, so every input of call 2 is exact when computed,
and epoch 1 makes the table of call 2 exact. Epoch 2 reads it and makes the table of call 3 exact,
and so on: after e epochs the tables of calls 2..e+1 are exact and none above, and epoch L is the
first whose outputs are. A model that changes the features before its first call needs one epoch
more. Each test also asserts that what should not be exact yet is off by more than `WRONG`, so it
fails when the tables are right for another reason; neighbour sampling is never right.

Errors are the largest difference over all nodes relative to the largest value, in float64:
`EXACT` is rounding (measured: below 2e-15), `WRONG` is far from it (measured: above 0.02).

The same argument is how `predict` works, in sweeps instead of epochs; the last part proves that it
gives the dense formula's outputs on a directed, weighted graph with isolated nodes, in the
precision of the features: `SINGLE` bounds that of a float32 model (measured: below 5e-7).
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from tests.theory.problems import (
    MODELS,
    Embedded,
    double_minibatches,
    epoch,
    error,
    exact_pass,
    random_graph,
)
from vrgcn.engine.minibatches import MiniBatches
from vrgcn.graph.propagation import Propagation
from vrgcn.inference.predict import predict

EXACT, WRONG, SINGLE = 1e-12, 1e-3, 3e-6
GRAPH = random_graph()


def batches_of(model: nn.Module, **settings: Any) -> MiniBatches:
    return double_minibatches(
        model, GRAPH, **{"nodes": "all", "batch_size": 16, "fanout": 1, **settings}
    )


def assert_exact_after_the_epochs_of_the_theorem(
    model: nn.Module, batches: MiniBatches, *, first_table: int
) -> None:
    """Table k (from 0) is exact after epoch k + 1 - first_table, not before; the outputs last."""
    *activations, output = exact_pass(model, GRAPH)
    calls = len(activations)
    for number in range(1, calls - first_table + 2):
        outputs = epoch(batches, model)
        tables = [(level, "h") for level in range(first_table, calls)]
        assert sorted(batches.histories.tables) == tables
        errors = [
            error(batches.histories.tables[call, "h"].values, activations[call])
            for call in range(first_table, calls)
        ]
        assert max(errors[:number]) < EXACT
        assert min(errors[number:], default=1) > WRONG
        if number <= calls - first_table:
            assert error(outputs, output) > WRONG
        else:
            assert error(outputs, output) < EXACT


@pytest.mark.parametrize("preprocess", [True, False])
@pytest.mark.parametrize("estimator", ["cv", "cvd", "history"])
@pytest.mark.parametrize("name", list(MODELS))
@pytest.mark.parametrize("layers", [2, 3, 4])
def test_activations_and_outputs_are_exact_after_as_many_epochs_as_layers_and_not_before(
    layers: int, name: str, estimator: str, preprocess: bool
) -> None:
    model = MODELS[name](layers)
    batches = batches_of(model, estimator=estimator, preprocess=preprocess)
    assert_exact_after_the_epochs_of_the_theorem(model, batches, first_table=1)


@pytest.mark.parametrize("estimator", ["cv", "cvd", "history"])
@pytest.mark.parametrize("layers", [1, 2, 3])
def test_a_model_that_embeds_the_features_first_needs_one_epoch_more(
    layers: int, estimator: str
) -> None:
    model = Embedded(layers)
    batches = batches_of(model, estimator=estimator)
    assert not batches.setup.preprocess
    assert_exact_after_the_epochs_of_the_theorem(model, batches, first_table=0)


@pytest.mark.parametrize("fanout", [0, 3, [1, 2, 3]])
def test_the_fan_out_does_not_matter(fanout: Any) -> None:
    model = MODELS["gcn"](3)
    batches = batches_of(model, estimator="cv", fanout=fanout)
    assert_exact_after_the_epochs_of_the_theorem(model, batches, first_table=1)


@pytest.mark.parametrize("batch_size", [1, 60])
def test_the_batch_size_does_not_matter(batch_size: int) -> None:
    model = MODELS["graphsage"](3)
    batches = batches_of(model, estimator="cv", batch_size=batch_size)
    assert_exact_after_the_epochs_of_the_theorem(model, batches, first_table=1)


def test_exactness_stays_once_it_is_reached() -> None:
    model = MODELS["gcn"](2)
    batches = batches_of(model, estimator="cv")
    wanted = exact_pass(model, GRAPH)[-1]
    errors = [error(epoch(batches, model), wanted) for _ in range(5)]
    assert max(errors[1:]) < EXACT


@pytest.mark.parametrize("preprocess", [True, False])
@pytest.mark.parametrize("name", list(MODELS))
def test_neighbour_sampling_is_never_exact(name: str, preprocess: bool) -> None:
    model = MODELS[name](2)
    batches = batches_of(model, estimator="ns", preprocess=preprocess)
    wanted = exact_pass(model, GRAPH)[-1]
    assert min(error(epoch(batches, model), wanted) for _ in range(8)) > WRONG


@pytest.mark.parametrize("name", list(MODELS))
def test_cvd_keeps_exact_histories_of_the_mean_even_while_it_drops(name: str) -> None:
    model = MODELS[name](3, dropout=0.5)
    batches = batches_of(model, estimator="cvd")
    model.eval()
    *activations, output = exact_pass(model, GRAPH)
    model.train()
    outputs = [epoch(batches, model) for _ in range(3)][-1]
    for call in (1, 2):
        assert error(batches.histories.tables[call, "h"].values, activations[call]) < EXACT
    assert error(outputs, output) > WRONG  # this one is dropped


@pytest.mark.parametrize("name", list(MODELS))
def test_cv_keeps_dropped_activations_and_is_not_exact_under_dropout(name: str) -> None:
    model = MODELS[name](3, dropout=0.5)
    batches = batches_of(model, estimator="cv")
    model.eval()
    activations = exact_pass(model, GRAPH)
    model.train()
    for _ in range(4):
        epoch(batches, model)
    assert error(batches.histories.tables[1, "h"].values, activations[1]) > WRONG


def test_visiting_only_some_nodes_breaks_the_theorem_and_refreshing_the_others_restores_it() -> (
    None
):
    model = MODELS["gcn"](3)
    visited = torch.arange(0, GRAPH.num_nodes, 2)
    wanted = exact_pass(model, GRAPH)[-1][visited]

    stale = batches_of(model, estimator="history", nodes=visited)
    assert min(error(epoch(stale, model)[visited], wanted) for _ in range(6)) > WRONG

    refreshed = batches_of(model, estimator="history", nodes=visited)
    errors = []
    for _ in range(3):
        refreshed.refresh(model, refreshed.unvisited())
        errors.append(error(epoch(refreshed, model)[visited], wanted))
    assert min(errors[:2]) > WRONG
    assert errors[2] < EXACT


PREDICTED = {
    "gcn": lambda: MODELS["gcn"](3, dropout=0.5),
    "gcn, dropout before": lambda: MODELS["gcn"](2, dropout=0.5, order="before"),
    "graphsage": lambda: MODELS["graphsage"](3, dropout=0.2),
    "embedded": lambda: Embedded(2, nn.Dropout(0.5)),
}


@pytest.fixture(params=list(PREDICTED))
def trained(request: pytest.FixtureRequest) -> nn.Module:
    """A model in training mode, dropout and all: to predict is to leave that out."""
    return PREDICTED[request.param]()


def dense_outputs(model: nn.Module) -> Tensor:
    model.eval()
    outputs = exact_pass(model, GRAPH)[-1].detach()
    model.train()
    return outputs


def test_the_graph_has_what_prediction_could_stumble_on() -> None:
    A = GRAPH.adjacency.to_torch().to_dense()
    degrees = GRAPH.adjacency.counts
    assert not torch.equal(A, A.t())
    assert int((degrees == 0).sum()) >= 3
    assert len(A.unique()) > 10
    assert A[7, 7] > 0


def test_predictions_in_float32_are_the_dense_formula_in_float32(trained: nn.Module) -> None:
    wanted = dense_outputs(trained)
    graph = GRAPH.with_features(GRAPH.features.float())
    outputs = predict(trained.float(), graph)
    assert outputs.dtype == torch.float32
    assert error(outputs.double(), wanted) < SINGLE


@pytest.mark.parametrize("on_disk", [False, True])
@pytest.mark.parametrize("chunk_cost", [100, 500, 1 << 20])
def test_predictions_are_the_dense_formula_whatever_the_chunks_and_wherever_the_tables(
    trained: nn.Module,
    chunk_cost: int,
    on_disk: bool,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    monkeypatch.setattr("vrgcn.graph.propagation.CHUNK_COST", chunk_cost)
    sizes: list[int] = []
    directory = tmp_path / "tables" if on_disk else None
    outputs = predict(trained, GRAPH, directory=directory, on_chunk=sizes.append)
    assert error(outputs, dense_outputs(trained)) < EXACT
    assert (max(sizes) <= 2) == (chunk_cost == 100)
    assert on_disk == any(tmp_path.rglob("*.bin"))
    assert trained.training


@pytest.mark.parametrize("chunk_cost", [100, 1 << 20])
def test_predictions_of_chosen_nodes_are_their_rows_in_the_order_asked(
    trained: nn.Module, chunk_cost: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("vrgcn.graph.propagation.CHUNK_COST", chunk_cost)
    wanted = dense_outputs(trained)
    for nodes in ([59, 3, 58, 3, 17], [57], list(range(60))[::-1]):
        assert error(predict(trained, GRAPH, nodes), wanted[nodes]) < EXACT


def test_predictions_with_a_matrix_of_ones_own_are_the_dense_formula(trained: nn.Module) -> None:
    generator = torch.Generator().manual_seed(5)
    matrix = torch.randn(60, 60, generator=generator, dtype=torch.float64)
    matrix *= torch.rand(60, 60, generator=generator) < 0.1
    trained.eval()
    wanted = exact_pass(trained, GRAPH, matrix)[-1]
    P = Propagation.from_matrix(matrix, torch.float64)
    assert error(predict(trained, GRAPH, propagation=P), wanted) < EXACT
