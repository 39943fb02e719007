"""`fit`: train a model on a graph as a config says."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

from torch import nn

from vrgcn.costs.choice import choose_estimator
from vrgcn.costs.out_of_memory import memory_explained
from vrgcn.engine.batch import Batch
from vrgcn.engine.devices import find_device, use_threads
from vrgcn.engine.estimators import Estimator
from vrgcn.files.scratch import table_folder
from vrgcn.graph.graph import Graph
from vrgcn.graph.propagation import PropagationLike
from vrgcn.runs.checkpoint import checkpoints_in
from vrgcn.runs.checkpointing import Checkpoints
from vrgcn.runs.interrupts import stop_requests
from vrgcn.runs.lock import locked
from vrgcn.training.callbacks import Callbacks
from vrgcn.training.config import TrainConfig
from vrgcn.training.objectives import Loss, Objective, find_objective
from vrgcn.training.progress import EpochProgress
from vrgcn.training.result import TrainResult
from vrgcn.training.state import Epoch
from vrgcn.training.trainer import Trainer, note_training


def fit(
    model: nn.Module,
    graph: Graph,
    config: TrainConfig | None = None,
    *,
    estimator: Estimator | None = None,
    propagation: PropagationLike | None = None,
    objective: Objective | Loss | None = None,
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

    estimator, propagation: a composition, matrix or rule of one's own in place of the config's name
    objective: loss and score of one's own in place of those that the graph's labels stand for; or
        a loss alone, a function of the outputs and labels of some nodes to the loss of each
    diagnostics: epochs between measurements of staleness and noise, in place of the config's
    checkpoints: a new folder to write checkpoints to, of this run alone. Ctrl-C and SIGTERM then
        end the step, write one, and raise `Interrupted`
    checkpoint_every: epochs (1) or minutes ("10m") between them, in place of the config's
    resume: a folder of checkpoints, from the newest of which to go on, to the bits that a run
        without a break ends in; from the beginning if it has none yet. More are written there
    verbose: show progress as `vrgcn train` does, on a terminal or in a notebook
    on_epoch, ..., on_note: see callbacks.Callbacks
    """
    config = config or TrainConfig()
    if diagnostics is not None:
        config = replace(config, diagnostics=diagnostics)
    if checkpoint_every is not None:
        config = replace(config, checkpoint_every=str(checkpoint_every))
    folder = _folder(checkpoints, resume)
    if folder is None and config.on_nan == "rollback":
        raise ValueError("on_nan='rollback' goes back to a checkpoint: give fit checkpoints=FOLDER")
    use_threads(config.threads)
    device = find_device(config.device)

    def run(stack: ExitStack) -> TrainResult:
        directory = stack.enter_context(table_folder(config.memory, folder or Path()))
        model.to(device)
        found = find_objective(objective, graph, config)
        settled = config
        note_training(model, graph, config, propagation)
        if estimator is None:
            settled, choice = choose_estimator(model, graph, config, propagation, found)
            if choice is not None and on_note is not None:
                on_note(f"estimator {choice.estimator}: {choice.reason}")
        trainer = Trainer(
            model,
            graph,
            settled,
            estimator=estimator,
            propagation=propagation,
            objective=found,
            callbacks=Callbacks(
                on_epoch, on_kept, on_step, on_batch, on_checkpoint, on_restore, on_note
            ),
            directory=directory,
        )
        if verbose:
            progress = EpochProgress(config.epochs, trainer.objective.metric)
            trainer.callbacks = stack.enter_context(progress).beside(trainer.callbacks)
            trainer.evaluation.on_begin = progress.begin_evaluation
            trainer.evaluation.on_chunk = progress.evaluated
        if folder is None:
            return trainer.run()
        stack.enter_context(locked(folder))
        stop = stack.enter_context(stop_requests())
        kept = Checkpoints(trainer, folder)
        if resume is not None:
            kept.resume()
        else:
            _refuse_used(folder)
        return kept.run(stop)

    with memory_explained(graph, config, model), ExitStack() as stack:
        return run(stack)


def _folder(checkpoints: str | Path | None, resume: str | Path | None) -> Path | None:
    if checkpoints is not None and resume is not None and Path(checkpoints) != Path(resume):
        raise ValueError("checkpoints of a run that is resumed go where it has them: give one path")
    folder = checkpoints if resume is None else resume
    return None if folder is None else Path(folder)


def _refuse_used(folder: Path) -> None:
    """Checkpoints of another run would be taken for this one's, or be removed by it."""
    there = checkpoints_in(folder)
    if there:
        raise FileExistsError(
            f"{folder} has checkpoints of a run already, the newest {there[0].name}: resume="
            f"{str(folder)!r} goes on with it; delete it to begin again, or give another folder"
        )
