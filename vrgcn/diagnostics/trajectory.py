"""One training run, and beside it the histories that every estimator would have by its end.

All estimators are to be compared at the same weights. So one of them trains, and at each step the
others run on the same nodes at the same weights, with plans and masks of their own, and write what
they computed into their own tables: h under dropout for `cv`, μ for `cvd`. Those that keep
gradients make the backward pass too, which is what their tables come from. How stale the tables are
is then what this learning rate makes of them, and no weights but those of the one run play a part.
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
from vrgcn.graph.graph import Graph
from vrgcn.graph.propagation import PropagationLike
from vrgcn.runs.fit import fit
from vrgcn.training.batches import build_minibatches, refreshed_nodes
from vrgcn.training.config import TrainConfig
from vrgcn.training.gradients import frozen, gradient, trainable
from vrgcn.training.objective import Objective, build_objective


@dataclass
class Trajectory:
    """model: at the end of the run
    batches: of each estimator, its histories as of then
    steps: of the run
    impossible: estimators that cannot train this model on this graph, and why
    """

    model: nn.Module
    batches: dict[str, MiniBatches]
    steps: int = 0
    impossible: dict[str, str] = field(default_factory=dict)


def visiting(config: TrainConfig, estimators: Mapping[str, Estimator]) -> TrainConfig:
    """The config with all nodes visited, if it leaves that open and some estimator keeps gradients:
    they pass through unlabelled nodes too, and all are compared on the same visits."""
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
    """Train a copy of the model as the config says, all `estimators` keeping histories beside it.

    The validation scores are of no interest here, so none are computed, and the last weights stay.
    Nor is the end of a schedule: how stale histories are is told of the rate that the config names,
    and along a cosine it would be that of a rate of next to nothing. There are no checkpoints to go
    back to: a loss of NaN is an error.
    """
    config = visiting(config, estimators)
    model = copy.deepcopy(model).to(find_device(config.device))
    first = build_minibatches(model, graph, config, propagation=propagation)
    trajectory = Trajectory(
        model, {name: first.sibling(estimator) for name, estimator in estimators.items()}
    )
    followers = _Followers(trajectory, config, build_objective(graph, config))
    followers.start()
    unscored = copy.copy(graph)
    unscored.val = unscored.test = graph.train[:0]
    fit(
        model,
        unscored,
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


class _Followers:
    """The estimators that write histories beside the training."""

    def __init__(self, trajectory: Trajectory, config: TrainConfig, objective: Objective) -> None:
        self.trajectory = trajectory
        self.model = trajectory.model
        self.config = config
        self.objective = objective
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
        """Refresh histories as training does before each epoch: here after the epoch before, for
        there is no other moment between them, and after the last, as the next would find them."""
        for name, nodes in self.refreshed.items():
            if nodes is not None and name in self.trajectory.batches:
                self.trajectory.batches[name].refresh(self.model, nodes)

    def follow(self, batch: Batch) -> None:
        """Do with each estimator what the one that trains is about to do, at the same weights."""
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
                        gradient(self.objective, theirs, outputs, trainable(self.model))
                    else:
                        theirs.renew(self.model)
                theirs.commit()
            except ValueError as error:  # sparse features under dropout have no history
                self.trajectory.impossible[name] = str(error)
                del self.trajectory.batches[name]
