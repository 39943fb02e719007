"""Every estimator side by side: the same weights, the same minibatch, histories of one training.

diagnosis = diagnose(model, graph, TrainConfig(estimator="cvd", epochs=3))
diagnosis.estimators["cvd"].gradient.error      # of one pass, relative to the exact gradient
diagnosis.estimators["cvd"].layers[1].bias      # of P h in the second call of `propagate`
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from vrgcn.diagnostics.recorder import Recorder
from vrgcn.diagnostics.staleness import Staleness, measure_staleness
from vrgcn.diagnostics.trajectory import train_beside
from vrgcn.engine.estimators import ESTIMATORS, Estimator
from vrgcn.engine.minibatches import MiniBatches
from vrgcn.graph.graph import Graph
from vrgcn.graph.propagation import PropagationLike
from vrgcn.graph.sparse import first_rows, is_sparse, select_columns
from vrgcn.training.config import TrainConfig
from vrgcn.training.gradients import frozen, gradient, trainable
from vrgcn.training.moments import Deviation, Moments, deviation
from vrgcn.training.objectives import Objective, build_objective

REFERENCE = "exact"
_MOST_COLUMNS = 1024  # of wider activations, such as propagated sparse features, a random part


@dataclass(frozen=True)
class Measured:
    """One estimator against the mean of the exact algorithm, which has dropout where training has.

    layers: of each estimated call of `propagate` (from 0), its answer P h for the minibatch's nodes
    outputs: the model's outputs for them
    gradient: of all parameters together; parameters: of each by name
    passes: how many were made; two where nothing is random
    """

    layers: dict[int, Deviation]
    outputs: Deviation
    gradient: Deviation
    parameters: dict[str, Deviation]
    passes: int


@dataclass(frozen=True)
class Diagnosis:
    """config: of the training that made weights and histories
    nodes: (batch,) the minibatch that everything was measured on
    steps: of that training
    preprocessed: whether the first call is answered from P X, exactly, by every estimator
    estimators: what was measured of each; impossible: those that cannot be used here, and why
    staleness: for each estimator with histories, of each of its tables
    """

    config: TrainConfig
    nodes: Tensor
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

    estimators: which, by name; `exact` is always among them
    passes: of each estimator, with a new plan and new dropout masks each
    on_step, on_pass: called with how many (steps of an epoch, passes of all) are done and in all
    """
    config = config or TrainConfig(epochs=3)
    if passes < 2:
        raise ValueError(f"passes must be at least 2 to tell a variance, not {passes}")
    trajectory = train_beside(
        model,
        graph,
        config,
        estimators={REFERENCE: ESTIMATORS[REFERENCE], **estimators},
        propagation=propagation,
        on_step=on_step,
    )
    exact = trajectory.batches[REFERENCE]
    nodes = measured_nodes(exact, config.seed)
    measured = measure(
        trajectory.model,
        trajectory.batches,
        nodes,
        passes=passes,
        seed=config.seed,
        on_pass=on_pass,
        objective=build_objective(graph, config),
    )
    return Diagnosis(
        config,
        nodes,
        config.epochs * len(exact),
        exact.setup.preprocess,
        measured,
        trajectory.impossible,
        {
            name: measure_staleness(trajectory.model, exact, batches, nodes)
            for name, batches in trajectory.batches.items()
            if batches.estimator.history
        },
    )


def measured_nodes(batches: MiniBatches, seed: int) -> Tensor:
    """(batch,) a random minibatch of the visited nodes, with a training node among them."""
    generator = torch.Generator().manual_seed(seed)
    order = batches.nodes[torch.randperm(len(batches.nodes), generator=generator)]
    nodes = order[: batches.batch_size]
    train = batches.graph.train
    if not torch.isin(nodes, train).any():
        nodes = torch.cat([order[torch.isin(order, train)][:1], nodes[1:]])
    return nodes


def measure(
    model: nn.Module,
    batches: Mapping[str, MiniBatches],
    nodes: Tensor,
    *,
    passes: int = 100,
    seed: int = 0,
    on_pass: Callable[[int, int], None] | None = None,
    objective: Objective | None = None,
) -> dict[str, Measured]:
    """Every estimator's activations and gradients on one minibatch, at the model's weights and the
    histories in `batches`, which must have an entry "exact": the reference is its mean.

    nodes: (batch,) the minibatch
    objective: whose gradient; if None, that of the graph's labels
    """
    objective = objective or build_objective(batches[REFERENCE].graph)
    names = [name for name, parameter in model.named_parameters() if parameter.requires_grad]
    done = 0

    def count(number: int) -> None:
        nonlocal done
        done += number
        if on_pass is not None:
            on_pass(done, passes * len(batches))

    found = {
        name: _repeat(model, their, nodes, objective, passes, seed, count)
        for name, their in batches.items()
    }
    return {
        name: _against(moments, found[REFERENCE], names, _estimated(batches[name]))
        for name, moments in found.items()
    }


def _estimated(batches: MiniBatches) -> range:
    """The calls of `propagate` that are not answered from P X."""
    calls = [len(level) for level in batches.setup.training.levels]
    return range(calls[0] if batches.setup.preprocess else 0, sum(calls))


def _repeat(
    model: nn.Module,
    batches: MiniBatches,
    nodes: Tensor,
    objective: Objective,
    passes: int,
    seed: int,
    count: Callable[[int], None],
) -> Moments:
    """Moments of (P h of each estimated call, outputs, gradient of each parameter)."""
    moments = Moments()
    recorder = Recorder(model)
    parameters = trainable(model)
    with frozen(recorder, seed) as generator:
        while moments.count < passes:
            recorder.passes.clear()
            batch = batches.batch(nodes, generator)
            outputs = batch.run(recorder)
            answers = [recorder.passes[-1].answers[call] for call in _estimated(batches)]
            shown = [_columns(first_rows(answer, len(nodes)), seed) for answer in answers]
            centred = outputs - objective.centre
            moments.add([*shown, centred, *gradient(objective, batch, outputs, parameters)])
            batch.discard()
            if moments.count == 2 and _draws_nothing(batches) and _still(moments):
                count(passes - 1)
                return moments
            count(1)
    return moments


def _draws_nothing(batches: MiniBatches) -> bool:
    """Whether all plans of a minibatch are the same; dropout may still differ."""
    planner = batches.planner
    capped = planner.history and planner.history_cap is not None
    return not planner.sampler.random and not capped


def _still(moments: Moments) -> bool:
    return not any(variance.any() for variance in moments.variance)


def _columns(h: Tensor, seed: int) -> Tensor:
    """(nodes, at most _MOST_COLUMNS) of an activation, dense."""
    width = h.shape[1]
    if width > _MOST_COLUMNS:
        generator = torch.Generator().manual_seed(seed)
        chosen = torch.randperm(width, generator=generator)[:_MOST_COLUMNS].sort().values
        h = select_columns(h.detach(), chosen.to(h.device))
    return h.to_dense() if is_sparse(h) else h


def _against(moments: Moments, exact: Moments, names: list[str], calls: range) -> Measured:
    parts = [
        deviation(moments.part(place), exact.part(place)) for place in range(len(moments.mean))
    ]
    first = len(calls) + 1
    return Measured(
        dict(zip(calls, parts, strict=False)),
        parts[len(calls)],
        deviation(moments.rest(first), exact.rest(first)),
        dict(zip(names, parts[first:], strict=True)),
        moments.count,
    )
