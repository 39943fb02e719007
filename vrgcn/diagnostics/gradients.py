"""Compares the gradients of every estimator with the exact one, over the minibatches of an epoch.

A single minibatch does not allow a comparison if gradients have a history: a visited node v takes
(Pᵀ ḡ)_v for all its neighbours, which may be visited at another time, and only the mean over
minibatches is the exact gradient (engine/way_back.py). So each pass draws a new minibatch, the same
for all estimators.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor, nn

from vrgcn.engine.minibatches import MiniBatches
from vrgcn.training.gradients import frozen, gradient, trainable
from vrgcn.training.moments import Deviation, Moments, paired_deviation
from vrgcn.training.target import Target


@dataclass(frozen=True)
class Gradients:
    """One estimator's gradient over minibatches, against that of the exact algorithm.

    whole: of all parameters together
    layers: of the parameters of each layer, by the name of its module; parameters: of each by name
    trained: number of the minibatches that have a training node
    known: False if the exact gradient is zero; then there is nothing to compare with, and none of
        the numbers means anything
    """

    whole: Deviation
    layers: dict[str, Deviation]
    parameters: dict[str, Deviation]
    trained: int
    known: bool


def reached_nodes(batches: Mapping[str, MiniBatches]) -> Tensor:
    """Return the nodes (nodes,) that every estimator visits, including all nodes that have a
    gradient: the smallest set that any of them visits forward and backward, since others visit all
    nodes."""
    return min((their.visits.backward for their in batches.values()), key=len)


def random_minibatch(nodes: Tensor, size: int, generator: torch.Generator) -> Tensor:
    """Draw at most `size` of the nodes."""
    return nodes[torch.randperm(len(nodes), generator=generator)[:size]]


def measure_gradients(
    model: nn.Module,
    batches: Mapping[str, MiniBatches],
    reference: str,
    target: Target,
    *,
    passes: int,
    seed: int,
    count: Callable[[int], None],
) -> dict[str, Gradients]:
    """Measure the gradients of each estimator, at the model's weights and with the histories in
    `batches`.

    reference: the name of the estimator whose gradients the others should have in the mean
    count: called with 1 after each pass of an estimator
    """
    drawn = reached_nodes(batches)
    size = batches[reference].batch_size
    found = {name: _Found() for name in batches}
    generator = torch.Generator().manual_seed(seed)
    trained = 0
    for number in range(passes):
        nodes = random_minibatch(drawn, size, generator)
        trained += bool(batches[reference].trained[nodes].any())
        own = seed * 1_000_003 + number
        gradients = {}
        for name, their in batches.items():
            # The loss weights each training node by the number of nodes that its own epoch visits.
            share = len(drawn) / len(their.visits.backward)
            gradients[name] = [
                g * share for g in minibatch_gradient(model, their, nodes, target, own)
            ]
            count(1)
        for name, theirs in gradients.items():
            found[name].add(theirs, gradients[reference])
    names = [name for name, parameter in model.named_parameters() if parameter.requires_grad]
    return {
        name: _against(moments, found[reference], names, trained) for name, moments in found.items()
    }


def minibatch_gradient(
    model: nn.Module,
    batches: MiniBatches,
    nodes: Tensor,
    target: Target,
    seed: int,
    *,
    parameters: Sequence[Tensor] | None = None,
) -> tuple[Tensor, ...]:
    """Return the gradient of one minibatch's loss, with weights and histories frozen; zero if it
    has no training node.

    parameters: the parameters to differentiate; None: all
    """
    parameters = trainable(model) if parameters is None else parameters
    with frozen(model, seed) as generator:
        batch = batches.batch(nodes, generator)
        if not batch.needs_gradient:  # it has no training node
            return tuple(torch.zeros_like(parameter) for parameter in parameters)
        own_gradient = gradient(target, batch, batch.run(model), parameters)
        batch.discard()
    return own_gradient


@dataclass
class _Found:
    """Moments of an estimator's gradient, and of its difference to the reference."""

    estimate: Moments = field(default_factory=Moments)
    difference: Moments = field(default_factory=Moments)

    def add(self, gradients: list[Tensor], exact: list[Tensor]) -> None:
        self.estimate.add(gradients)
        self.difference.add([g - r for g, r in zip(gradients, exact, strict=True)])


def _against(estimated: _Found, exact: _Found, names: list[str], trained: int) -> Gradients:
    def of(places: list[int]) -> Deviation:
        return paired_deviation(
            estimated.estimate.parts(places),
            exact.estimate.parts(places),
            estimated.difference.parts(places),
        )

    layers: dict[str, list[int]] = {}
    for index, name in enumerate(names):
        layers.setdefault(layer_of(name), []).append(index)
    return Gradients(
        of(list(range(len(names)))),
        {layer: of(places) for layer, places in layers.items()},
        {name: of([index]) for index, name in enumerate(names)},
        trained,
        known=any(bool(mean.any()) for mean in exact.estimate.mean),
    )


def layer_of(parameter: str) -> str:
    """Return the module that counts as a parameter's layer: the first with a number, such as
    layers.1 of layers.1.linears.0.weight; otherwise the outermost."""
    parts = parameter.split(".")
    for index, part in enumerate(parts):
        if part.isdecimal():
            return ".".join(parts[: index + 1])
    return parts[0]
