"""Gradients of full-batch training by the dense formula, and those of minibatches beside them."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tests.theory.problems import CLASSES, FEATURES, dense_matrix, exact_pass
from vrgcn.engine.batch import Batch
from vrgcn.engine.minibatches import MiniBatches
from vrgcn.engine.setup import propagation_of
from vrgcn.graph.graph import Graph


def undirected(nodes: int = 40, pairs: int = 90, *, seed: int = 0, **settings: Any) -> Graph:
    """No weights, both directions, some nodes without neighbours."""
    generator = torch.Generator().manual_seed(seed)
    return Graph(
        torch.randint(nodes - 2, (2, pairs), generator=generator),
        torch.randn(nodes, FEATURES, generator=generator, dtype=torch.float64),
        torch.randint(CLASSES, (nodes,), generator=generator),
        undirected=True,
        **{"train": torch.arange(nodes), **settings},
    )


def losses(outputs: Tensor, batch: Batch) -> Tensor:
    assert batch.labels is not None
    return F.cross_entropy(outputs[batch.in_loss], batch.labels[batch.in_loss], reduction="none")


def full_gradient(model: nn.Module, graph: Graph, P: Tensor | None = None) -> Tensor:
    """Return the gradient of the mean loss of the training nodes, by the dense formula."""
    assert graph.labels is not None
    output = exact_pass(model, graph, P)[-1]
    loss = F.cross_entropy(output[graph.train], graph.labels[graph.train])
    return flat(torch.autograd.grad(loss, list(model.parameters())))


def flat(gradients: Any) -> Tensor:
    return torch.cat([gradient.reshape(-1) for gradient in gradients])


def batch_gradient(model: nn.Module, batch: Batch) -> Tensor:
    loss = batch.mean(losses(batch.run(model), batch))
    return flat(torch.autograd.grad(loss, list(model.parameters())))


def epoch_gradient(model: nn.Module, batches: MiniBatches) -> Tensor:
    """The mean over an epoch's minibatches, each weighted by its nodes; histories are written."""
    total: Any = 0
    for batch in batches:
        total = total + batch_gradient(model, batch) * len(batch.nodes)
        batch.commit()
    return total / len(batches.nodes)


def exact_gradients(model: nn.Module, graph: Graph) -> list[Tensor]:
    """Return the contents of the tables of gradients by level: left ∂(sum of losses)/∂(P h),
    (nodes, width)."""
    P = dense_matrix(graph, propagation_of(model))
    answers: list[Tensor] = []

    class Remember:
        def __call__(self, h: Tensor) -> Tensor:
            answers.append((P @ h).detach().requires_grad_() if not h.requires_grad else P @ h)
            return answers[-1]

        def own(self, h: Tensor) -> Tensor:
            return h

        def beside(self, h: Tensor) -> Tensor:
            return torch.cat([h, self(h)], dim=-1)

    output = model(graph.features, Remember())
    assert graph.labels is not None
    loss = F.cross_entropy(output[graph.train], graph.labels[graph.train], reduction="sum")
    left = torch.ones(graph.num_nodes, dtype=torch.float64)
    rule = propagation_of(model)
    sums = graph.adjacency.to_torch(torch.float64).to_dense().sum(1)
    if rule == "gcn":
        left = (1 + sums).rsqrt()
    elif rule == "mean":
        left = torch.where(sums > 0, sums, 1).reciprocal()
    return [left[:, None] * g for g in torch.autograd.grad(loss, answers)]


def arbitrary_tables(model: nn.Module, batches: MiniBatches, *, seed: int = 0) -> None:
    """Fill every table, of activations and gradients, with random numbers."""
    generator = torch.Generator().manual_seed(seed)
    for batch in batches:  # makes the tables
        batch_gradient(model, batch)
        batch.commit()
    for table in batches.histories.tables.values():
        table.values.copy_(torch.randn(table.values.shape, generator=generator).double())
        if table.frame is not None:
            table.frame.move = torch.randn(table.frame.move.shape, generator=generator).double()
