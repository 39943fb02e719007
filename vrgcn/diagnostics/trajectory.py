"""One training run, and beside it the histories that every estimator would have by its end.

All estimators must be compared at the same weights. So one of them trains, and at each step the
others run on the same nodes at the same weights, with plans and masks of their own, and write their
results into their own tables: h under dropout for `cv`, μ for `cvd`. Estimators that keep gradients
also make the backward pass, which fills their tables. The staleness of the tables then follows from
this learning rate, and only the weights of the one run play a part.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from torch import nn

from vrgcn.engine.batch import Batch
from vrgcn.engine.devices import find_device
from vrgcn.engine.estimators import ESTIMATORS, Estimator
from vrgcn.engine.minibatches import MiniBatches
from vrgcn.files.mistakes import InputError
from vrgcn.graph.graph import Graph
from vrgcn.graph.propagation import PropagationLike
from vrgcn.runs.fit import fit
from vrgcn.targets.opening import find_target
from vrgcn.training.components import build_minibatches, refreshed_nodes
from vrgcn.training.config import TrainConfig
from vrgcn.training.gradients import frozen, gradient, trainable
from vrgcn.training.target import Target


@dataclass
class Trajectory:
    """The end of a training run with all estimators beside it.

    model: at the end of the run
    batches: of each estimator, with its histories at that time
    steps: of the run
    impossible: estimators that cannot train this model on this graph, and why
    """

    model: nn.Module
    batches: dict[str, MiniBatches]
    steps: int = 0
    impossible: dict[str, str] = field(default_factory=dict)


def visiting(config: TrainConfig, estimators: Mapping[str, Estimator]) -> TrainConfig:
    """Return the config with all nodes visited, if it leaves that open and some estimator keeps
    gradients: they pass through unlabelled nodes too, and all are compared on the same visits."""
    if config.visit == "auto" and any(one.gradient_history for one in estimators.values()):
        return replace(config, visit="all")
    return config


def train_beside(
    model: nn.Module,
    graph: Graph,
    config: TrainConfig,
    *,
    estimators: Mapping[str, Estimator] = ESTIMATORS,
    propagation: PropagationLike | None = None,
    on_step: Callable[[int, int], None] | None = None,
) -> Trajectory:
    """Train a copy of the model as the config says, while all `estimators` keep histories beside
    it.

    Validation scores are not needed here, so none are computed, and the last weights stay. The
    schedule is ignored too: staleness is measured at the rate that the config names, and at the end
    of a cosine the rate would be almost zero. There are no checkpoints to go back to: a NaN loss is
    an error.
    """
    config = visiting(config, estimators)
    model = copy.deepcopy(model).to(find_device(config.device))
    target = measured_target(model, graph, config)
    first = build_minibatches(model, graph, config, target, propagation=propagation)
    trajectory = Trajectory(model, {})
    for name, estimator in estimators.items():
        try:
            trajectory.batches[name] = first.sibling(estimator)
        except InputError as error:  # minibatches of pairs allow no histories of gradients
            trajectory.impossible[name] = str(error)
    followers = _Followers(trajectory, config, target)
    followers.start()
    fit(
        model,
        graph.replace(val=graph.train[:0], test=graph.train[:0]),
        replace(
            config,
            diagnostics=0,
            select="last",
            patience=None,
            schedule="none",
            on_nan="stop",
        ),
        propagation=propagation,
        on_batch=followers.follow,
        on_step=on_step,
        on_epoch=lambda _: followers.refresh(),
    )
    return trajectory


def measured_target(model: nn.Module, graph: Graph, config: TrainConfig) -> Target:
    """Return the target of a graph, whose gradients at a model can be measured."""
    target = find_target(graph, config)
    target.prepare(model)
    return target


class _Followers:
    """The estimators that write histories beside the training."""

    def __init__(self, trajectory: Trajectory, config: TrainConfig, target: Target) -> None:
        self.trajectory = trajectory
        self.model = trajectory.model
        self.config = config
        self.target = target
        self.refreshed = {
            name: refreshed_nodes(batches, config.refresh)
            for name, batches in trajectory.batches.items()
        }

    def start(self) -> None:
        if self.config.warm_start:
            for batches in self.trajectory.batches.values():
                if batches.estimator.history:
                    batches.warm_start(self.model)
        self.refresh()

    def refresh(self) -> None:
        """Refresh histories as training does before each epoch. Here it happens after the previous
        epoch, because there is no other moment between them, and after the last, as the next epoch
        would find them."""
        for name, nodes in self.refreshed.items():
            if nodes is not None and name in self.trajectory.batches:
                self.trajectory.batches[name].refresh(self.model, nodes)

    def follow(self, batch: Batch) -> None:
        """Run each estimator on the step that the training one is about to make, at the same
        weights."""
        self.trajectory.steps += 1
        seed = self.config.seed * 1_000_003 + self.trajectory.steps
        for name, batches in list(self.trajectory.batches.items()):
            if not batches.estimator.keeps:
                continue
            try:
                with frozen(self.model, seed) as generator:
                    theirs = batches.batch(batch.nodes, generator)
                    if batches.estimator.gradient_history and batch.backward:
                        outputs = theirs.run(self.model)
                        gradient(self.target, theirs, outputs, trainable(self.model))
                    else:
                        theirs.renew(self.model)
                theirs.commit()
            except InputError as error:  # sparse features under dropout have no history
                self.trajectory.impossible[name] = str(error)
                del self.trajectory.batches[name]
