"""Repeated passes of one minibatch: weights and histories frozen, plans and dropout masks new.

cv = MiniBatches(model, graph, estimator="cv", ...)         # trained with: histories filled
exact = MiniBatches(model, graph, estimator="exact", ...)
estimate = gradient_moments(model, cv, nodes, passes=1000)
reference = gradient_moments(model, exact, nodes, passes=1000)   # 1 without dropout
mean_absolute_deviation(estimate, reference)                     # .bias, .std
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import torch
from torch import Tensor, nn

from vrgcn.engine.batch import Batch
from vrgcn.engine.minibatches import MiniBatches
from vrgcn.engine.trace import device_of, set_mode
from vrgcn.files.mistakes import InputError
from vrgcn.graph.randomness import default_generator, drawing_from
from vrgcn.training.moments import Moments
from vrgcn.training.target import Target


@contextmanager
def frozen(model: nn.Module, seed: int, *, dropout: bool = True) -> Iterator[torch.Generator]:
    """Make passes inside this context leave no trace: not in random numbers (dropout draws from
    `seed`, and plans from the given generator), not in the model's mode, and not in statistics that
    it keeps in buffers, as BatchNorm does. Histories are safe as long as each batch is discarded.

    dropout: whether dropout is on; layers that normalise over the batch do so in either case, as in
        training
    """
    device = device_of(model)
    seed %= 2**63  # a multiple of a run's seed may be too large for PyTorch
    own = torch.Generator(device).manual_seed(seed)
    buffers = [(buffer, buffer.clone()) for buffer in model.buffers()]
    with (
        default_generator(device, seed),
        drawing_from(own),
        set_mode(model, training=dropout, norms=True),
    ):
        try:
            yield torch.Generator().manual_seed(seed)
        finally:
            for buffer, value in buffers:
                buffer.copy_(value)


def gradient_moments(
    model: nn.Module,
    batches: MiniBatches,
    nodes: Tensor,
    target: Target,
    *,
    passes: int,
    parameters: Sequence[Tensor] | None = None,
    dropout: bool = True,
    seed: int = 0,
) -> Moments:
    """Return the moments of the gradient of one minibatch's mean loss, over passes that each draw a
    new plan and new dropout masks. Weights, their `grad`, histories and random numbers stay
    unchanged.

    batches: the estimator and its histories, as training left them
    nodes: (batch,) ids, the minibatch
    target: whose loss
    parameters: whose gradient, such as [model.layers[0].linears[0].weight]; if None, of all
    dropout: False measures without dropout a model that has it
    """
    chosen = trainable(model) if parameters is None else list(parameters)
    moments = Moments()
    with frozen(model, seed, dropout=dropout) as generator:
        for _ in range(passes):
            batch = batches.batch(nodes, generator)
            moments.add(gradient(target, batch, batch.run(model), chosen))
            batch.discard()
    return moments


def gradient(
    target: Target, batch: Batch, outputs: Tensor, parameters: Sequence[Tensor]
) -> tuple[Tensor, ...]:
    """Return the gradient of the loss that training minimises; zero for parameters that do not
    affect it.

    outputs: (batch, classes), from `batch.run`
    """
    if not batch.needs_gradient:
        raise InputError("the minibatch has no labelled training node, so its loss has no gradient")
    loss = batch.mean(target.losses(batch, outputs))
    found = torch.autograd.grad(loss, parameters, allow_unused=True, materialize_grads=True)
    return tuple(part.to_dense() if part.is_sparse else part for part in found)


def trainable(model: nn.Module) -> list[Tensor]:
    return [parameter for parameter in model.parameters() if parameter.requires_grad]
