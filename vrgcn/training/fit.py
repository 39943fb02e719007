"""`fit`: train a model on a graph as a config says."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from torch import nn

from vrgcn.engine.devices import find_device, use_threads
from vrgcn.engine.estimators import Estimator
from vrgcn.engine.minibatches import Batch
from vrgcn.graph.graph import Graph
from vrgcn.graph.propagation import PropagationLike
from vrgcn.training.config import TrainConfig
from vrgcn.training.objectives import Objective
from vrgcn.training.state import Epoch
from vrgcn.training.trainer import Callbacks, Trainer, TrainResult


def fit(
    model: nn.Module,
    graph: Graph,
    config: TrainConfig | None = None,
    *,
    estimator: Estimator | None = None,
    propagation: PropagationLike | None = None,
    objective: Objective | None = None,
    diagnostics: int | None = None,
    on_epoch: Callable[[Epoch], None] | None = None,
    on_kept: Callable[[Epoch], None] | None = None,
    on_step: Callable[[int, int], None] | None = None,
    on_batch: Callable[[Batch], None] | None = None,
) -> TrainResult:
    """Train the model in place; it ends with the chosen weights, in evaluation mode.

    estimator, propagation: a composition, matrix or rule of one's own in place of the config's name
    objective: loss and score of one's own in place of those that the graph's labels stand for
    diagnostics: epochs between measurements of staleness and noise, in place of the config's
    on_epoch, on_kept, on_step, on_batch: see trainer.Callbacks
    """
    config = config or TrainConfig()
    if diagnostics is not None:
        config = replace(config, diagnostics=diagnostics)
    use_threads(config.threads)
    device = find_device(config.device)
    trainer = Trainer(
        model.to(device),
        graph,
        config,
        estimator=estimator,
        propagation=propagation,
        objective=objective,
        callbacks=Callbacks(on_epoch, on_kept, on_step, on_batch),
    )
    return trainer.run()
