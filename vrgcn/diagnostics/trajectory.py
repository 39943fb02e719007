"""One training run, and beside it the histories that every estimator would have by its end.

All estimators are to be compared at the same weights. So one of them trains, and at each step the
others run forward on the same nodes at the same weights, with plans and masks of their own, and
write what they computed into their own tables: h under dropout for `cv`, μ for `cvd`. How stale
the tables are is then what this learning rate makes of them, and no weights but those of the one
run play a part.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from torch import nn

from vrgcn.engine.devices import find_device
from vrgcn.engine.estimators import ESTIMATORS, Estimator
from vrgcn.engine.minibatches import Batch, MiniBatches
from vrgcn.graph.graph import Graph
from vrgcn.graph.propagation import PropagationLike
from vrgcn.training.config import TrainConfig
from vrgcn.training.fit import fit
from vrgcn.training.gradients import frozen
from vrgcn.training.trainer import build_minibatches, refreshed_nodes


@dataclass
class Trajectory:
    """model: at the end of the run
    batches: of each estimator, its histories as of then
    impossible: estimators that cannot train this model on this graph, and why
    """

    model: nn.Module
    batches: dict[str, MiniBatches]
    impossible: dict[str, str] = field(default_factory=dict)


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
    """
    model = copy.deepcopy(model).to(find_device(config.device))
    first = build_minibatches(model, graph, config, propagation=propagation)
    trajectory = Trajectory(
        model, {name: first.sibling(estimator) for name, estimator in estimators.items()}
    )
    followers = _Followers(trajectory, config)
    followers.start()
    unscored = copy.copy(graph)
    unscored.val = unscored.test = graph.train[:0]
    fit(
        model,
        unscored,
        replace(config, diagnostics=0, select="last", patience=None),
        propagation=propagation,
        on_batch=followers.follow,
        on_step=on_step,
        on_epoch=lambda _: followers.refresh(),
    )
    return trajectory


class _Followers:
    """The estimators that write histories beside the training."""

    def __init__(self, trajectory: Trajectory, config: TrainConfig) -> None:
        self.trajectory = trajectory
        self.model = trajectory.model
        self.config = config
        self.steps = 0
        self.refreshed = {
            name: refreshed_nodes(batches, config.refresh)
            for name, batches in trajectory.batches.items()
        }

    def start(self) -> None:
        if self.config.warm_start:
            for batches in self._keeping():
                batches.warm_start(self.model)
        self.refresh()

    def refresh(self) -> None:
        """What training does before each epoch: here after the one before, for there is no other
        moment between them, and after the last, as the next would find its histories."""
        for name, nodes in self.refreshed.items():
            if nodes is not None and name in self.trajectory.batches:
                self.trajectory.batches[name].refresh(self.model, nodes)

    def follow(self, batch: Batch) -> None:
        """Do with each estimator what the one that trains is about to do, at the same weights."""
        self.steps += 1
        seed = self.config.seed * 1_000_003 + self.steps
        for name, batches in list(self.trajectory.batches.items()):
            if not batches.estimator.history:
                continue
            try:
                with frozen(self.model, seed) as generator:
                    theirs = batches.batch(batch.nodes, generator)
                    theirs.renew(self.model)
                theirs.commit()
            except ValueError as error:  # sparse features under dropout have no history
                self.trajectory.impossible[name] = str(error)
                del self.trajectory.batches[name]

    def _keeping(self) -> list[MiniBatches]:
        return [b for b in self.trajectory.batches.values() if b.estimator.history]
