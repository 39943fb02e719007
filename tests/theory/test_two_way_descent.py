"""Theorem 2 in practice: SGD with `two-way` comes to rest where the exact loss does.

The problem and the rates are those of test_theorem2.py. And a construction in which the history of
activations is exact and its gradient has the wrong sign.
"""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn

from tests.theory.problems import double_minibatches
from tests.theory.test_theorem2 import norm_after_training
from vrgcn.engine.minibatches import MiniBatches
from vrgcn.graph.graph import Graph


@pytest.mark.parametrize("seed", [0, 1])
def test_sgd_with_two_way_reaches_a_stationary_point_where_history_alone_does_not(
    seed: int,
) -> None:
    norm = norm_after_training("two-way", seed)
    assert norm < 0.04
    assert norm < 2 * norm_after_training("exact", seed)
    assert norm_after_training("history", seed) > 4 * norm


class OneWeight(nn.Module):
    """P (w x)."""

    propagation = "gcn"

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.zeros((), dtype=torch.float64))

    def forward(self, x: Tensor, propagate: Any) -> Tensor:
        return propagate(self.weight * x)


# Two neighbours, x = 1 and -3, so that P x = -1 for both, but the own part of node 0 is +1/2. The
# loss is that of node 0 alone, (z + 1)² / 2, least at w = 1; its gradient at w is w - 1.
X = torch.tensor([[1.0], [-3.0]], dtype=torch.float64)
GRAPH = Graph([[0], [1]], X, undirected=True)


def minibatches(model: nn.Module, estimator: str) -> MiniBatches:
    return double_minibatches(
        model, GRAPH, estimator=estimator, nodes="all", fanout=0, batch_size=1, preprocess=False,
        trained=torch.tensor([True, False]),
    )  # fmt: skip


def epoch_gradient(model: OneWeight, batches: MiniBatches) -> float:
    """Sum over both nodes of the gradient of the loss of node 0."""
    total = 0.0
    for batch in batches:
        z = batch.run(model)
        losses = ((z + 1).square() / 2)[batch.in_loss]
        # A minibatch has one node, so `mean` has the factor 2 of the visits over the trained.
        total += float(torch.autograd.grad(batch.mean(losses), model.weight)[0]) / 2
        batch.commit()
    return total


def test_exact_histories_of_activations_alone_can_give_a_gradient_of_the_wrong_sign() -> None:
    model = OneWeight()
    found = {}
    for estimator in ("history", "two-way"):
        batches = minibatches(model, estimator)
        for _ in range(3):  # weights fixed: all tables become exact
            found[estimator] = epoch_gradient(model, batches)
        table = batches.histories.tables[0, "h"].values
        torch.testing.assert_close(table, (model.weight * X).detach())
    assert found["two-way"] == pytest.approx(-1, abs=1e-12)
    assert found["history"] == pytest.approx(0.5, abs=1e-12)


def test_descent_by_it_climbs_and_two_way_arrives() -> None:
    ends = {}
    for estimator in ("history", "two-way"):
        model = OneWeight()
        batches = minibatches(model, estimator)
        for number in range(60):
            gradient = epoch_gradient(model, batches)
            with torch.no_grad():
                model.weight -= 0.3 / (1 + 0.02 * number) * gradient
        ends[estimator] = model.weight.item()
    assert ends["two-way"] == pytest.approx(1, abs=1e-3)
    assert ends["history"] < -1
