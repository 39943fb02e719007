"""Proves that CVD's pass without dropout may be run in two parts.

The same numbers come out as in one pass over all rows: outputs, gradients, histories. And it is
done only with models whose rows do not depend on each other.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tests.theory.problems import (
    CLASSES,
    FEATURES,
    HIDDEN,
    MODELS,
    double_minibatches,
    random_graph,
)
from vrgcn import Graph, MiniBatches
from vrgcn.engine.parts import FirstPassInParts, targets_again
from vrgcn.engine.trace import is_row_wise

ROUNDING = 1e-12
GRAPH = random_graph(200)


class Middle(nn.Module):
    """Two propagations, something of the caller's between them."""

    def __init__(self, between: Callable[[Tensor], Tensor], dropout: float = 0.5) -> None:
        super().__init__()
        torch.manual_seed(3)
        self.first = nn.Linear(FEATURES, HIDDEN, dtype=torch.float64)
        self.last = nn.Linear(HIDDEN, CLASSES, dtype=torch.float64)
        self.between = between
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Tensor, propagate: Any) -> Tensor:
        h = self.between(self.first(self.dropout(propagate(x))))
        return self.last(propagate(self.dropout(h)))


def train(model: nn.Module, *, in_parts: bool, **settings: Any) -> tuple[list[Tensor], MiniBatches]:
    """Outputs and gradients of three epochs of gradient descent, and what they leave behind."""
    torch.manual_seed(11)
    settings = {"nodes": "all", "batch_size": 16, "seed": 5, **settings}
    batches = double_minibatches(model, GRAPH, estimator="cvd", **settings)
    assert batches.in_parts
    batches.in_parts = in_parts
    found = []
    for _ in range(3):
        for batch in batches:
            outputs = batch.run(model)
            loss = F.cross_entropy(outputs, batch.labels)
            gradients = torch.autograd.grad(loss, list(model.parameters()))
            with torch.no_grad():
                for parameter, gradient in zip(model.parameters(), gradients, strict=True):
                    parameter.sub_(0.1 * gradient)
            batch.commit()
            found += [outputs.detach(), *gradients]
    return found, batches


@pytest.mark.parametrize("settings", [{}, {"fanout": 2}, {"inductive": True, "nodes": "train"}])
@pytest.mark.parametrize("name", list(MODELS))
def test_in_parts_or_not_the_same_comes_out(
    name: str, settings: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    again = []
    run = FirstPassInParts.run

    def counted(self: FirstPassInParts, model: nn.Module) -> None:
        again.append(len(self._rows.x) - self.plan.sizes[0])
        run(self, model)

    monkeypatch.setattr(FirstPassInParts, "run", counted)
    whole, before = train(MODELS[name](dropout=0.5), in_parts=False, **settings)
    assert not again
    parts, after = train(MODELS[name](dropout=0.5), in_parts=True, **settings)
    assert len(again) > 10  # most minibatches are run in parts,
    assert max(again) > 0  # with targets that are sampled as neighbours among them
    for one, other in zip(whole, parts, strict=True):
        torch.testing.assert_close(one, other, rtol=ROUNDING, atol=ROUNDING)
    one, other = before.histories.tables[1], after.histories.tables[1]
    torch.testing.assert_close(one.values, other.values, rtol=ROUNDING, atol=ROUNDING)
    assert torch.equal(one.written, other.written)


def test_without_gradient_for_the_targets_and_with_it_for_their_neighbours() -> None:
    modes = []
    model = Middle(lambda h: (modes.append((len(h), torch.is_grad_enabled())), h)[1])
    batches = double_minibatches(model, GRAPH, estimator="cvd", nodes="all", batch_size=16)
    first, second, *_ = batches
    first.run(model)  # finds out that something is dropped
    modes.clear()
    second.run(model)
    twice = targets_again(second.plan)
    sources = second.plan.sizes[0]
    assert twice is not None
    assert modes == [(16, False), (sources - 16 + len(twice), True), (sources, True)]


def test_where_most_neighbours_are_targets_too_it_is_one_pass() -> None:
    model = Middle(torch.tanh)
    batches = double_minibatches(model, GRAPH, estimator="cvd", nodes="all", batch_size=200)
    assert batches.in_parts
    (batch,) = batches
    assert targets_again(batch.plan) is None
    many = double_minibatches(model, GRAPH, estimator="cvd", nodes="all", fanout=50)
    assert targets_again(next(iter(many)).plan) is None


ROW_WISE = {
    "tanh": torch.tanh,
    "LayerNorm": nn.LayerNorm(HIDDEN, dtype=torch.float64),
    "softmax over columns": lambda h: h.softmax(1),
}
NOT_ROW_WISE = {
    "BatchNorm": nn.BatchNorm1d(HIDDEN, dtype=torch.float64),
    "centred": lambda h: h - h.mean(0),
    "scaled by the largest": lambda h: h / h.abs().max(),
    "softmax over rows": lambda h: h.softmax(0),
    "by number": lambda h: h * len(h) ** -0.5,
    "shifted": lambda h: h.roll(1, 0),
}


@pytest.mark.parametrize("between", ROW_WISE.values(), ids=ROW_WISE.keys())
def test_models_whose_rows_do_not_depend_on_each_other(between: Any) -> None:
    assert is_row_wise(Middle(between), GRAPH.features)


@pytest.mark.parametrize("between", NOT_ROW_WISE.values(), ids=NOT_ROW_WISE.keys())
def test_models_whose_rows_do(between: Any) -> None:
    model = Middle(between)
    assert not is_row_wise(model, GRAPH.features)
    assert not double_minibatches(model, GRAPH, estimator="cvd").in_parts


def test_features_that_cannot_tell_count_as_no() -> None:
    alike = torch.ones(20, FEATURES, dtype=torch.float64)
    assert not is_row_wise(Middle(torch.tanh), alike)
    assert not is_row_wise(Middle(torch.tanh), GRAPH.features.to_sparse_csr())


def test_looking_leaves_no_trace() -> None:
    model = Middle(torch.tanh)
    random = torch.get_rng_state()
    is_row_wise(model, GRAPH.features)
    assert model.training
    assert model.dropout.training
    assert torch.equal(torch.get_rng_state(), random)


@pytest.mark.parametrize(
    "settings",
    [{"estimator": "cv"}, {"estimator": "exact"}, {"preprocess": False}, {"layers": 3}],
    ids=lambda settings: next(iter(settings)),
)
def test_only_where_there_is_one_call_to_estimate(settings: dict[str, Any]) -> None:
    settings = {"estimator": "cvd", **settings}
    model = MODELS["graphsage"](settings.pop("layers", 2), dropout=0.5)
    assert not double_minibatches(model, GRAPH, **settings).in_parts


def test_a_model_that_no_longer_makes_its_second_call_is_told_so() -> None:
    class Fickle(Middle):
        calls = 2

        def forward(self, x: Tensor, propagate: Any) -> Tensor:
            h = self.between(self.first(self.dropout(propagate(x))))
            return self.last(propagate(self.dropout(h)) if self.calls == 2 else h)

    model = Fickle(torch.tanh)
    graph = Graph(GRAPH.edge_index(), GRAPH.features, GRAPH.labels, train=torch.arange(200))
    first, second, *_ = double_minibatches(model, graph, estimator="cvd", batch_size=16)
    first.run(model)
    model.calls = 1
    with pytest.raises(RuntimeError, match="called propagate 1 times"):
        second.run(model)
