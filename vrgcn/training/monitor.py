"""A cheap measurement every few epochs of training: staleness, and the gradient's noise.

One random minibatch is run a few times at the weights that the epoch ended with, each time with a
new plan and new dropout masks, and never committed: training continues as if nothing had been.

    staleness        √(Σ ‖h - h̄‖² / Σ ‖h‖²) over the rows that the minibatch computes anew, of all
                     tables: how much what would be written differs from what the tables hold;
                     and the same of gradients, where they have a history
    gradient noise   tr Var g / ‖E g‖² of the minibatch's gradient g: the square of its relative
                     noise, from sampled neighbours and dropout together
"""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from vrgcn.engine.batch import Batch
from vrgcn.engine.minibatches import MiniBatches
from vrgcn.training.gradients import frozen, gradient, trainable
from vrgcn.training.moments import Moments, noise_scale
from vrgcn.training.target import Target

PASSES = 4  # the fewest that show a variance to about a half if few weights dominate it
BUDGET = 0.015  # passes of diagnostics per step of training; a pass costs about as much as a step


@dataclass(frozen=True)
class Reading:
    """The result of one measurement; None for values that could not be measured."""

    staleness: float | None = None
    gradient_staleness: float | None = None
    gradient_noise: float | None = None


class Monitor:
    """Measures staleness and gradient noise during training.

    every: epochs between measurements; 0 never; None as many as keep within BUDGET
    target: whose loss is measured
    """

    def __init__(
        self,
        model: nn.Module,
        batches: MiniBatches,
        every: int | None,
        seed: int,
        target: Target,
    ) -> None:
        self.model = model
        self.batches = batches
        self.every = math.ceil(PASSES / (BUDGET * len(batches))) if every is None else every
        self.seed = seed
        self.target = target

    def after_epoch(self, number: int) -> Reading:
        """Return the measurement after epoch `number` (from 1); empty if none is due."""
        if not self.every or number % self.every:
            return Reading()
        # The seed depends on the number alone, so a measurement does not depend on earlier ones.
        return read(self.model, self.batches, self.seed * 1_000_003 + number, self.target)


def read(model: nn.Module, batches: MiniBatches, seed: int, target: Target) -> Reading:
    """Measure on a random minibatch of the visited nodes; nothing is changed."""
    parameters, moments = trainable(model), Moments()
    staleness: dict[str, float] = {}
    visited = batches.visits.backward
    with frozen(model, seed) as generator:
        order = torch.randperm(len(visited), generator=generator)
        nodes = visited[order[: batches.batch_size]]
        for number in range(PASSES):
            batch = batches.batch(nodes, generator)
            with torch.set_grad_enabled(batch.needs_gradient):
                outputs = batch.run(model)
            if batch.needs_gradient:
                moments.add(gradient(target, batch, outputs, parameters))
            if not number:
                staleness = batch_staleness(batch)
            batch.discard()
            if not batch.needs_gradient:  # no training node in it, so no gradient to measure
                break
    noise = _finite(noise_scale(moments)) if moments.count else None
    return Reading(staleness.get("h"), staleness.get("g"), noise)


def batch_staleness(batch: Batch) -> dict[str, float]:
    """Return the staleness of the rows that a minibatch computed, of activations ("h") and of
    gradients ("g")."""
    change: defaultdict[str, float] = defaultdict(float)
    size: defaultdict[str, float] = defaultdict(float)
    for table in batch.changes():
        change[table.kind] += _squares(table.now - table.before)
        size[table.kind] += _squares(table.now)
    found = {kind: math.sqrt(change[kind] / size[kind]) for kind in size if size[kind]}
    return {kind: value for kind, value in found.items() if math.isfinite(value)}


def _squares(values: Tensor) -> float:
    return float(values.square().sum())


def _finite(value: float) -> float | None:
    """Return None for infinite values, because metrics are written as JSON, which has no
    infinity."""
    return value if math.isfinite(value) else None
