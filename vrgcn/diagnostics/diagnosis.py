"""Compares every estimator at the same weights, on the same minibatches, with histories of one
training.

diagnosis = diagnose(model, graph, TrainConfig(estimator="cvd", epochs=3))
diagnosis.estimators["cvd"].gradient.error      # of one pass, relative to the exact gradient
diagnosis.estimators["cvd"].layers[1].bias      # of P h in the second call of `propagate`
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from vrgcn.costs.choice import choose_estimator
from vrgcn.diagnostics.gradients import (
    Gradients,
    measure_gradients,
    random_minibatch,
    reached_nodes,
)
from vrgcn.diagnostics.staleness import Recorder, Staleness, measure_staleness
from vrgcn.diagnostics.trajectory import measured_target, train_beside, visiting
from vrgcn.engine.estimators import ESTIMATORS, Estimator
from vrgcn.engine.minibatches import MiniBatches
from vrgcn.files.mistakes import InputError
from vrgcn.graph.graph import Graph
from vrgcn.graph.propagation import PropagationLike
from vrgcn.graph.sparse import first_rows, select_columns
from vrgcn.targets.opening import find_target
from vrgcn.training.config import TrainConfig
from vrgcn.training.gradients import frozen
from vrgcn.training.moments import Deviation, Moments, deviation
from vrgcn.training.target import Target

REFERENCE = "exact"
_MOST_COLUMNS = 1024  # wider activations, such as propagated sparse features, are sampled


@dataclass(frozen=True)
class Measured:
    """One estimator against the mean of the exact algorithm, which has dropout if training has.

    layers: for each estimated call of `propagate` (from 0), its answer P h for the nodes of one
        minibatch
    outputs: the model's outputs for them
    gradients: of the loss, over minibatches
    """

    layers: dict[int, Deviation]
    outputs: Deviation
    gradients: Gradients

    @property
    def gradient(self) -> Deviation:
        """Deviation of the gradient of all parameters together."""
        return self.gradients.whole


@dataclass(frozen=True)
class Diagnosis:
    """The comparison of all estimators.

    config: of the training that made weights and histories
    nodes: (batch,) the minibatch on which everything except the gradients was measured
    passes: passes of each estimator on it, and the number of minibatches for the gradients
    steps: of that training
    preprocessed: True if every estimator answers the first call exactly, from P X
    estimators: the measurements of each; impossible: estimators that cannot be used here, and why
    staleness: for each estimator with histories, of each of its tables
    """

    config: TrainConfig
    nodes: Tensor
    passes: int
    steps: int
    preprocessed: bool
    estimators: dict[str, Measured]
    impossible: dict[str, str]
    staleness: dict[str, list[Staleness]]


def diagnose(
    model: nn.Module,
    graph: Graph,
    config: TrainConfig | None = None,
    *,
    estimators: Mapping[str, Estimator] = ESTIMATORS,
    propagation: PropagationLike | None = None,
    passes: int = 100,
    on_step: Callable[[int, int], None] | None = None,
    on_pass: Callable[[int, int], None] | None = None,
) -> Diagnosis:
    """Train a copy of the model as the config says (`epochs` of it), then compare the estimators.

    estimators: their names; `exact` is always included
    passes: passes of each estimator, each with a new plan and new dropout masks: on one minibatch
        for activations, and on as many minibatches for gradients
    on_step, on_pass: called with the number done and the total (steps of an epoch, passes of all)
    """
    estimators = {REFERENCE: ESTIMATORS[REFERENCE], **estimators}
    config, _ = choose_estimator(model, graph, config or TrainConfig(epochs=3), propagation)
    config = visiting(config, estimators)
    if passes < 2:
        raise InputError(f"passes must be at least 2 to tell a variance, not {passes}")
    trajectory = train_beside(
        model,
        graph,
        config,
        estimators=estimators,
        propagation=propagation,
        on_step=on_step,
    )
    exact = trajectory.batches[REFERENCE]
    nodes = random_minibatch(
        reached_nodes(trajectory.batches),
        config.batch_size,
        torch.Generator().manual_seed(config.seed),
    )
    target = measured_target(trajectory.model, graph, config)
    measured = measure(
        trajectory.model,
        trajectory.batches,
        nodes,
        passes=passes,
        seed=config.seed,
        on_pass=on_pass,
        target=target,
    )
    return Diagnosis(
        config,
        nodes,
        passes,
        trajectory.steps,
        exact.setup.preprocess,
        measured,
        trajectory.impossible,
        {
            name: measure_staleness(trajectory.model, exact, batches, nodes, target)
            for name, batches in trajectory.batches.items()
            if batches.estimator.keeps
        },
    )


def measure(
    model: nn.Module,
    batches: Mapping[str, MiniBatches],
    nodes: Tensor,
    *,
    passes: int = 100,
    seed: int = 0,
    on_pass: Callable[[int, int], None] | None = None,
    target: Target | None = None,
) -> dict[str, Measured]:
    """Measure every estimator's activations on one minibatch and gradients over minibatches, at the
    model's weights and with the histories in `batches`, which must have an entry "exact": the
    reference.

    nodes: (batch,) the one minibatch
    target: whose loss is measured; None: that of the graph's labels
    """
    target = target or find_target(batches[REFERENCE].graph)
    done = 0

    def count(number: int) -> None:
        nonlocal done
        done += number
        if on_pass is not None:
            on_pass(done, 2 * passes * len(batches))

    measured = {
        name: _repeat(model, their, nodes, target.centre, passes, seed, count)
        for name, their in batches.items()
    }
    gradients = measure_gradients(
        model, batches, REFERENCE, target, passes=passes, seed=seed, count=count
    )
    return {
        name: _against(moments, measured[REFERENCE], _estimated(batches[name]), gradients[name])
        for name, moments in measured.items()
    }


def _estimated(batches: MiniBatches) -> range:
    """Return the calls of `propagate` that are not answered from P X."""
    calls = [len(level) for level in batches.setup.training.levels]
    return range(calls[0] if batches.setup.preprocess else 0, sum(calls))


@torch.no_grad()
def _repeat(
    model: nn.Module,
    batches: MiniBatches,
    nodes: Tensor,
    centre: float,
    passes: int,
    seed: int,
    count: Callable[[int], None],
) -> Moments:
    """Return the moments of (P h of each estimated call, outputs); two passes suffice if nothing is
    random."""
    moments = Moments()
    recorder = Recorder(model)
    with frozen(recorder, seed) as generator:
        while moments.count < passes:
            recorder.passes.clear()
            batch = batches.outputs_of(nodes, generator)
            outputs = batch.run(recorder)
            answers = [recorder.passes[-1].answers[call] for call in _estimated(batches)]
            shown = [_columns(first_rows(answer, len(nodes)), seed) for answer in answers]
            moments.add([*shown, outputs - centre])
            batch.discard()
            if moments.count == 2 and _draws_nothing(batches) and _still(moments):
                count(passes - 1)
                return moments
            count(1)
    return moments


def _draws_nothing(batches: MiniBatches) -> bool:
    """Return True if all plans of a minibatch are the same; dropout may still differ."""
    planner = batches.planner
    capped = planner.history and planner.history_cap is not None
    return not planner.sampler.random and not capped


def _still(moments: Moments) -> bool:
    return not any(variance.any() for variance in moments.variance)


def _columns(h: Tensor, seed: int) -> Tensor:
    """Return at most _MOST_COLUMNS columns of an activation, (nodes, columns), dense."""
    width = h.shape[1]
    if width > _MOST_COLUMNS:
        generator = torch.Generator().manual_seed(seed)
        chosen = torch.randperm(width, generator=generator)[:_MOST_COLUMNS].sort().values
        h = select_columns(h.detach(), chosen.to(h.device))
    return h.to_dense()


def _against(moments: Moments, exact: Moments, calls: range, gradients: Gradients) -> Measured:
    *layers, outputs = (
        deviation(moments.part(index), exact.part(index)) for index in range(len(moments.mean))
    )
    return Measured(dict(zip(calls, layers, strict=True)), outputs, gradients)
