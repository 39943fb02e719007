"""`fit`: trains a model on a graph as a config says."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from torch import nn

from vrgcn.engine.batch import Batch
from vrgcn.engine.estimators import Estimator
from vrgcn.files.mistakes import InputError
from vrgcn.graph.graph import Graph
from vrgcn.graph.propagation import PropagationLike
from vrgcn.runs.job import prepare
from vrgcn.targets.opening import find_target, open_target
from vrgcn.targets.scored import scored_edges
from vrgcn.targets.spec import TargetSpec
from vrgcn.training.config import TrainConfig, given_config
from vrgcn.training.listener import Callbacks
from vrgcn.training.objective import Objective
from vrgcn.training.own_loss import Loss
from vrgcn.training.result import TrainResult
from vrgcn.training.state import Epoch


def fit(
    model: nn.Module,
    graph: Graph,
    config: TrainConfig | None = None,
    *,
    estimator: Estimator | None = None,
    propagation: PropagationLike | None = None,
    objective: Objective | Loss | None = None,
    predict: str | None = None,
    diagnostics: int | None = None,
    checkpoints: str | Path | None = None,
    checkpoint_every: str | int | None = None,
    resume: str | Path | None = None,
    verbose: bool = False,
    on_epoch: Callable[[Epoch], None] | None = None,
    on_kept: Callable[[Epoch], None] | None = None,
    on_step: Callable[[int, int], None] | None = None,
    on_batch: Callable[[Batch], None] | None = None,
    on_checkpoint: Callable[[], None] | None = None,
    on_restore: Callable[[list[Epoch]], None] | None = None,
    on_note: Callable[[str], None] | None = None,
) -> TrainResult:
    """Train the model in place; it ends with the chosen weights, in evaluation mode.

    estimator, propagation: a composition, matrix or rule of the user's own instead of the config's
        name
    objective: a loss and score of the user's own instead of those of the graph's labels; or only a
        loss, a function from the outputs and labels of some nodes to the loss of each
    predict: what to predict, as in `vrgcn train --predict`: None for the graph's labels, or its
        pairs where `split_pairs` made it; a relation or a column of one, whose edges are then split
        as `split_pairs` does by default, with the seed of the config
    diagnostics: epochs between measurements of staleness and noise, instead of the config's
    checkpoints: a new folder for the checkpoints of this run. Ctrl-C and SIGTERM then end the step,
        write a checkpoint, and raise `Interrupted`
    checkpoint_every: epochs (1) or minutes ("10m") between checkpoints, instead of the config's
    resume: a folder of checkpoints. Training continues from the newest one, to the same bits as
        without the interruption, or starts from the beginning if there is none. New checkpoints are
        written there
    verbose: show progress as `vrgcn train` does, on a terminal or in a notebook
    on_epoch, ..., on_note: see listener.Callbacks
    """
    config = given_config(config)
    if not isinstance(estimator, Estimator | None):
        raise TypeError(
            f"estimator takes an Estimator, not {estimator!r}; one by name: "
            "TrainConfig(estimator='cvd')"
        )
    if diagnostics is not None:
        config = replace(config, diagnostics=diagnostics)
    if checkpoint_every is not None:
        config = replace(config, checkpoint_every=str(checkpoint_every))
    folder = _folder(checkpoints, resume)
    if folder is None and config.on_nan == "rollback":
        raise InputError("on_nan='rollback' goes back to a checkpoint: give fit checkpoints=FOLDER")
    graph = _predicting(graph, predict, config.seed)
    target = find_target(graph, config, objective)
    job = prepare(model, graph, config, target, estimator=estimator, propagation=propagation)
    if job.choice is not None and on_note is not None:
        on_note(f"estimator {job.choice.estimator}: {job.choice.reason}")
    return job.train(
        Callbacks(on_epoch, on_kept, on_step, on_batch, on_checkpoint, on_restore, on_note),
        checkpoints=folder,
        resume=resume is not None,
        verbose=verbose,
    )


def _predicting(graph: Graph, predict: str | None, seed: int) -> Graph:
    """Return the graph with what is to be predicted: its labels, or pairs."""
    if predict is None:
        return graph
    if scored_edges(graph) is not None:
        raise InputError(
            f"predict={predict!r}: the graph has pairs already, from split_pairs: leave predict out"
        )
    return open_target(TargetSpec(predict=predict, split_seed=seed), graph)


def _folder(checkpoints: str | Path | None, resume: str | Path | None) -> Path | None:
    if checkpoints is not None and resume is not None and Path(checkpoints) != Path(resume):
        raise InputError("checkpoints of a run that is resumed go where it has them: give one path")
    folder = checkpoints if resume is None else resume
    return None if folder is None else Path(folder)
