"""Weights of classes and smoothed labels keep every estimate on the scale of the full loss.

PyTorch's weighted mean divides by the sum of the weights, ours by the number of nodes: balanced
weights are 1 on average, so the two agree, whichever nodes are visited beside the training nodes.
"""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F

from tests.theory.full_batch import flat, undirected
from tests.theory.problems import (
    CLASSES,
    RAW,
    RAW_CV,
    double_minibatches,
    error,
    exact_pass,
    gcn,
    graphsage,
)
from vrgcn import TrainConfig
from vrgcn.engine.batch import Batch
from vrgcn.engine.minibatches import MiniBatches
from vrgcn.training.objective import Objective, build_objective

ROUNDING = 1e-12
CONFIG = TrainConfig(class_weights="balanced", label_smoothing=0.15)


def unbalanced(nodes: int = 40):
    """A third of the nodes are trained on; the first class has most of them."""
    train = torch.arange(0, nodes, 3)
    graph = undirected(nodes, 90, train=train)
    graph.labels[train] = torch.tensor([0] * 9 + [1, 1, 2, 2, 2])
    assert len(graph.labels[train].unique()) == CLASSES
    return graph


def full_gradient(model, graph) -> torch.Tensor:
    """Return the gradient of PyTorch's weighted and smoothed mean over the training nodes, by the
    dense formula."""
    y = graph.labels[graph.train]
    counts = torch.bincount(y, minlength=CLASSES).double()
    output = exact_pass(model, graph)[-1][graph.train]
    loss = F.cross_entropy(output, y, len(y) / (CLASSES * counts), label_smoothing=0.15)
    return flat(torch.autograd.grad(loss, list(model.parameters())))


def batch_gradient(model, objective: Objective, batch: Batch) -> torch.Tensor:
    in_loss = batch.in_loss
    losses = objective.loss(batch.run(model)[in_loss], batch.nodes[in_loss])
    return flat(torch.autograd.grad(batch.mean(losses), list(model.parameters())))


def epoch_gradient(model, objective: Objective, batches: MiniBatches) -> torch.Tensor:
    total = torch.zeros(())
    for batch in batches:
        if batch.needs_gradient:
            total = total + batch_gradient(model, objective, batch) * len(batch.nodes)
        else:
            batch.renew(model)
        batch.commit()
    return total / len(batches.visits.backward)


@pytest.mark.parametrize("nodes", ["train", "all"])
@pytest.mark.parametrize("make", [gcn, graphsage])
def test_the_mean_over_exact_minibatches_is_the_full_gradient(make, nodes: str) -> None:
    model, graph = make(2), unbalanced()
    objective = build_objective(graph, CONFIG)
    batches = double_minibatches(model, graph, estimator="exact", nodes=nodes, batch_size=5)
    found = epoch_gradient(model, objective, batches)
    assert error(found, full_gradient(model, graph)) < ROUNDING


@pytest.mark.parametrize("make", [gcn, graphsage])
@pytest.mark.parametrize("estimator", [RAW, RAW_CV])
def test_two_way_histories_come_to_the_full_gradient(estimator: str, make) -> None:
    """Weights fixed: the tables of one level are exact after three epochs, see Theorem 1 both ways;
    with sampled neighbours nothing is left to correct then either."""
    model, graph = make(2), unbalanced()
    objective = build_objective(graph, CONFIG)
    batches = double_minibatches(model, graph, estimator=estimator, nodes="all", batch_size=7)
    for _ in range(4):
        found = epoch_gradient(model, objective, batches)
    assert error(found, full_gradient(model, graph)) < ROUNDING


def test_a_two_way_minibatch_of_all_nodes_is_weighted_full_batch_training() -> None:
    model, graph = gcn(3), unbalanced()
    objective = build_objective(graph, CONFIG)
    batches = double_minibatches(model, graph, estimator="two-way", nodes="all", batch_size=40)
    found = [batch_gradient(model, objective, b) for b in batches if b.needs_gradient]
    assert error(found[0], full_gradient(model, graph)) < ROUNDING
