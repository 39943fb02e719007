"""Gradients of every estimator against the exact one, over the minibatches that an epoch may draw.

On one minibatch alone there is nothing to compare where gradients have a history: a visited node v
takes (Pᵀ ḡ)_v for all its neighbours, who may be visited at another time, and only the mean over
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
from vrgcn.training.objective import Objective


@dataclass(frozen=True)
class Gradients:
    """One estimator's gradient over minibatches, against that of the exact algorithm.

    whole: of all parameters together
    layers: of the parameters of each layer, by the name of its module; parameters: of each by name
    trained: how many of the minibatches have a node that is trained on
    known: whether the exact gradient is other than zero, so that there is something to compare
        with; if not, none of the numbers means anything
    """

    whole: Deviation
    layers: dict[str, Deviation]
    parameters: dict[str, Deviation]
    trained: int
    known: bool


def reached_nodes(batches: Mapping[str, MiniBatches]) -> Tensor:
    """(nodes,) visited by every estimator, among them all nodes that have a gradient: the fewest
    that any of them visits forward and backward, for the others' are all that there are."""
    return min((their.visits.backward for their in batches.values()), key=len)


def random_minibatch(nodes: Tensor, size: int, generator: torch.Generator) -> Tensor:
    """(at most `size`,) of the nodes."""
    return nodes[torch.randperm(len(nodes), generator=generator)[:size]]


def measure_gradients(
    model: nn.Module,
    batches: Mapping[str, MiniBatches],
    reference: str,
    objective: Objective,
    *,
    passes: int,
    seed: int,
    count: Callable[[int], None],
) -> dict[str, Gradients]:
    """Gradients of each estimator, at the model's weights and the histories in `batches`.

    reference: the name among them whose gradients the others are to have in the mean
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
            # The loss counts each training node by how many nodes its own epoch visits.
            share = len(drawn) / len(their.visits.backward)
            gradients[name] = [
                g * share for g in minibatch_gradient(model, their, nodes, objective, own)
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
    objective: Objective,
    seed: int,
    *,
    parameters: Sequence[Tensor] | None = None,
) -> tuple[Tensor, ...]:
    """The gradient of one minibatch's loss, weights and histories frozen; zero where none of its
    nodes is trained on.

    parameters: whose gradient; None: of all
    """
    parameters = trainable(model) if parameters is None else parameters
    with frozen(model, seed) as generator:
        batch = batches.batch(nodes, generator)
        if not batch.needs_gradient:  # none of the nodes is trained on
            return tuple(torch.zeros_like(parameter) for parameter in parameters)
        found = gradient(objective, batch, batch.run(model), parameters)
        batch.discard()
    return found


@dataclass
class _Found:
    """Moments of an estimator's gradient, and of its difference to the reference."""

    estimate: Moments = field(default_factory=Moments)
    difference: Moments = field(default_factory=Moments)

    def add(self, gradients: list[Tensor], exact: list[Tensor]) -> None:
        self.estimate.add(gradients)
        self.difference.add([g - r for g, r in zip(gradients, exact, strict=True)])


def _against(found: _Found, exact: _Found, names: list[str], trained: int) -> Gradients:
    def of(places: list[int]) -> Deviation:
        return paired_deviation(
            found.estimate.parts(places),
            exact.estimate.parts(places),
            found.difference.parts(places),
        )

    layers: dict[str, list[int]] = {}
    for place, name in enumerate(names):
        layers.setdefault(layer_of(name), []).append(place)
    return Gradients(
        of(list(range(len(names)))),
        {layer: of(places) for layer, places in layers.items()},
        {name: of([place]) for place, name in enumerate(names)},
        trained,
        known=any(bool(mean.any()) for mean in exact.estimate.mean),
    )


def layer_of(parameter: str) -> str:
    """The module that counts as a parameter's layer: the first that has a number, such as layers.1
    of layers.1.linears.0.weight; else the outermost."""
    parts = parameter.split(".")
    for place, part in enumerate(parts):
        if part.isdecimal():
            return ".".join(parts[: place + 1])
    return parts[0]
