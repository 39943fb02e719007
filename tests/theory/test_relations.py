"""Several matrices over the same nodes: one level with a hop for each relation.

A model that propagates the same h over two relations is compared with the dense formula
σ(P₁ H V + P₂ H W), in float64: exactly where nothing is random, in the mean where something is.
"""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn

from tests.messages import refused
from tests.theory.problems import CLASSES, FEATURES, HIDDEN, double_minibatches, error, random_graph
from vrgcn import Graph, MiniBatches, TrainConfig, fit, predict
from vrgcn.graph.propagation import Propagation, build_propagation

GRAPH = random_graph()
BATCH = torch.tensor([40, 3, 59, 17, 8, 22, 57, 31])
EXACT = 1e-12


def other_matrix() -> Tensor:
    """(nodes, nodes): a few entries in each row, elsewhere than the graph's edges, some negative,
    some on the diagonal."""
    generator = torch.Generator().manual_seed(8)
    dense = torch.randn(GRAPH.num_nodes, GRAPH.num_nodes, generator=generator, dtype=torch.float64)
    return dense * (torch.rand(dense.shape, generator=generator) < 0.06)


MATRICES: dict[str, Any] = {
    "cites": "mean",
    "knows": Propagation.from_matrix(other_matrix(), dtype=torch.float64),
}
DENSE = {
    "cites": build_propagation("mean", GRAPH).to_dense(),
    "knows": other_matrix(),
}


class Relational(nn.Module):
    """Layers of P₁ H V + P₂ H W; the last layer asks for one relation alone, and for it twice."""

    def __init__(self, dropout: float = 0.0, features_first: bool = True) -> None:
        super().__init__()
        torch.manual_seed(3)
        widths = [FEATURES, HIDDEN, HIDDEN]
        self.cites = nn.ModuleList(nn.Linear(a, HIDDEN) for a in widths)
        self.knows = nn.ModuleList(nn.Linear(a, HIDDEN) for a in widths)
        self.last = nn.Linear(HIDDEN, CLASSES)
        self.dropout = nn.Dropout(dropout)
        self.features_first = features_first
        self.double()

    def forward(self, x: Tensor, propagate: Any) -> Tensor:
        h = x if self.features_first else torch.tanh(x)
        for number in (0, 1):
            given = self.dropout(h) if number else h
            cited = self.cites[number](propagate(given, over="cites"))
            h = torch.tanh(cited + self.knows[number](propagate(given, over="knows")))
        once, twice = propagate(h, over="knows"), propagate(h, over="knows")
        return self.last(torch.tanh(self.knows[2](once) + self.cites[2](twice)))


class Dense:
    def __call__(self, h: Tensor, over: str) -> Tensor:
        return DENSE[over] @ h


def dense_outputs(model: Relational) -> Tensor:
    return model(GRAPH.features, Dense())


def made(model: nn.Module, estimator: str, **given: Any) -> MiniBatches:
    return double_minibatches(
        model, GRAPH, estimator=estimator, propagation=MATRICES, nodes="all", **given
    )


def gradients(loss: Tensor, model: nn.Module) -> list[Tensor]:
    return list(torch.autograd.grad(loss, list(model.parameters())))


@pytest.mark.parametrize("features_first", [True, False])
def test_levels_and_relations_are_found(features_first: bool) -> None:
    setup = made(Relational(features_first=features_first), "cv").setup
    assert setup.training.levels == (("cites", "knows"), ("cites", "knows"), ("knows",))
    assert setup.preprocess == features_first
    assert set(setup.P) == {"cites", "knows"}


@pytest.mark.parametrize("estimator", ["exact", "ns", "cv", "cvd"])
@pytest.mark.parametrize("preprocess", [None, False])
@pytest.mark.parametrize("features_first", [True, False])
def test_with_all_neighbours_outputs_and_gradients_are_the_dense_formulas(
    estimator: str, preprocess: bool | None, features_first: bool
) -> None:
    model = Relational(features_first=features_first)
    if preprocess is None and not features_first:
        preprocess = False
    batches = made(model, estimator, fanout=100, preprocess=preprocess)
    outputs = batches.batch(BATCH).run(model)
    wanted = dense_outputs(model)[BATCH]
    assert error(outputs, wanted) < EXACT
    for mine, theirs in zip(
        gradients(outputs.square().sum(), model), gradients(wanted.square().sum(), model),
        strict=True,
    ):  # fmt: skip
        assert error(mine, theirs) < EXACT


@pytest.mark.parametrize("fanout", [0, 3])
@pytest.mark.parametrize("features_first", [True, False])
def test_all_nodes_in_one_minibatch_of_two_way_have_the_dense_gradient(
    features_first: bool, fanout: int
) -> None:
    model = Relational(features_first=features_first)
    batches = made(model, "two-way", fanout=fanout, batch_size=GRAPH.num_nodes)
    (batch,) = batches
    loss = batch.run(model).square().sum(1).mean()
    wanted = dense_outputs(model).square().sum(1).mean()
    for mine, theirs in zip(gradients(loss, model), gradients(wanted, model), strict=True):
        assert error(mine, theirs) < EXACT
    assert {kind for _, kind in batches.histories.tables} == {"h", "g", "g1"}


@pytest.mark.parametrize("estimator", ["cv", "cvd", "history"])
@pytest.mark.parametrize("features_first", [True, False])
def test_theorem_1_holds_after_as_many_epochs_as_levels(
    estimator: str, features_first: bool
) -> None:
    model = Relational(features_first=features_first)
    batches = made(model, estimator, fanout=1, batch_size=7)
    wanted = dense_outputs(model)
    errors = []
    with torch.no_grad():
        for _ in range(4 - features_first):
            outputs = torch.zeros_like(wanted)
            for batch in batches:
                outputs[batch.nodes] = batch.run(model)
                batch.commit()
            errors.append(error(outputs, wanted))
    assert errors[-1] < EXACT
    assert min(errors[:-1]) > 1e-3


def test_a_warm_start_and_exact_prediction_are_the_dense_formula(tmp_path: Any) -> None:
    model = Relational().eval()
    wanted = dense_outputs(model)
    assert error(predict(model, GRAPH, propagation=MATRICES), wanted) < EXACT
    on_disk = predict(model, GRAPH, propagation=MATRICES, directory=tmp_path)
    assert error(on_disk, wanted) < EXACT
    some = predict(model, GRAPH, [5, 0], propagation=MATRICES)
    assert error(some, wanted[[5, 0]]) < EXACT
    batches = made(model, "history")
    batches.warm_start(model)
    assert error(batches.batch(BATCH).run(model), wanted[BATCH]) < EXACT


@pytest.mark.parametrize("estimator", ["ns", "is", "cv", "cvd"])
def test_the_estimate_of_a_level_has_the_mean_of_the_dense_formula(estimator: str) -> None:
    # One linear level over both relations, so the mean is known; 1000 passes, 5 standard errors.
    class Linear(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.scale = nn.Parameter(torch.ones((), dtype=torch.float64))
            self.dropout = nn.Dropout(0.4)

        def forward(self, x: Tensor, propagate: Any) -> Tensor:
            h = self.dropout(x) * self.scale
            return propagate(h, over="cites") - 2 * propagate(h, over="knows")

    model = Linear().train()
    batches = made(model, estimator, fanout=1, sample_size=30, preprocess=False)
    if batches.estimator.history:
        table = batches.histories.table(0, FEATURES)
        table.values.copy_(GRAPH.features.flip(0))
    torch.manual_seed(0)
    with torch.no_grad():
        draws = torch.stack([batches.batch(BATCH).run(model) for _ in range(1000)])
    wanted = ((DENSE["cites"] - 2 * DENSE["knows"]) @ GRAPH.features)[BATCH]
    off = (draws.mean(0) - wanted).abs() / (draws.std(0) / 1000**0.5 + 1e-9)
    assert off.max() < 5


@pytest.mark.parametrize("estimator", ["exact", "ns", "is", "cv", "cvd", "history"])
def test_a_relational_model_trains_and_predicts(estimator: str) -> None:
    graph = Graph(
        GRAPH.edge_index(), GRAPH.features, GRAPH.labels,
        edge_weight=GRAPH.adjacency.values, train=torch.arange(40), val=torch.arange(40, 60),
    )  # fmt: skip
    model = Relational(dropout=0.1)
    config = TrainConfig(estimator=estimator, epochs=8, batch_size=16, sample_size=60)
    curve = fit(model, graph, config, propagation=MATRICES).curve
    assert curve[-1].loss < curve[0].loss
    assert error(predict(model, graph, propagation=MATRICES), dense_outputs(model)) < EXACT


def test_a_relation_without_a_matrix_is_named() -> None:
    with refused():
        MiniBatches(Relational(), GRAPH, propagation={"cites": "mean"})
    with refused():
        MiniBatches(Relational(), GRAPH, propagation="mean")
