"""A job: a model on a graph and everything that its training needs, each built once.

`prepare` inspects the model and chooses the estimator. `Job.train` makes the
steps. `fit`, `vrgcn train`, its seeds, searches, scikit-learn's estimators and the demo share it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

from torch import nn

from vrgcn.costs.choice import EstimatorChoice, candidate_costs, choice_by
from vrgcn.costs.epoch_cost import Cost, epoch_costs
from vrgcn.costs.out_of_memory import memory_explained
from vrgcn.engine.devices import find_device, use_threads
from vrgcn.engine.estimators import Estimator
from vrgcn.engine.setup import Setup
from vrgcn.files.mistakes import InputError
from vrgcn.files.scratch import table_folder
from vrgcn.files.setting_names import setting
from vrgcn.files.settings import AUTO
from vrgcn.files.writing import remove_folder
from vrgcn.graph.graph import Graph
from vrgcn.graph.propagation import PropagationLike
from vrgcn.inference.saved import SavedModel
from vrgcn.runs.building import build_network
from vrgcn.runs.card import facts_of
from vrgcn.runs.checkpoint import checkpoints_in
from vrgcn.runs.checkpointing import Checkpoints
from vrgcn.runs.folder import CHECKPOINTS, locked
from vrgcn.runs.interrupts import stop_requests
from vrgcn.runs.record import former_model, recorded
from vrgcn.runs.settings import Candidate, with_choice
from vrgcn.runs.stages import calibrate_run, check_calibrate, check_smooth, smooth_run
from vrgcn.targets.opening import find_target
from vrgcn.training.components import build_components, look_at
from vrgcn.training.config import TrainConfig
from vrgcn.training.listener import Listener, Listeners
from vrgcn.training.progress import EpochProgress, working
from vrgcn.training.result import TrainResult
from vrgcn.training.target import Target
from vrgcn.training.trainer import Trainer, note_training


class Begun(NamedTuple):
    """A training that was begun, and what shows its progress; None if nothing does.

    home: folders of checkpoints that the race had, which its winner replaces by its own
    """

    trainer: Trainer
    progress: EpochProgress | None
    home: Path | None = None


# Nodes of other widths, and of evaluations, take so much longer or shorter than those of training
# with hidden layers of the usual width (tolokers, blogcatalog_attributed, one thread).
_WIDTH, _WIDER = 128, 1.3
_FORWARD = 0.5


@dataclass(frozen=True, eq=False)
class Job:
    """A model on a graph, ready to train.

    config: settings of the training; its estimator is the one that `auto` stands for
    choice: the estimator that `auto` stands for and the reason; None if the user named one
    setup: the model on the graph; its P X is computed when training begins
    estimator, propagation: a composition and a matrix of the user's own; None: the config's
    known: costs that the choice was based on
    """

    model: nn.Module
    graph: Graph
    target: Target
    config: TrainConfig
    choice: EstimatorChoice | None
    setup: Setup
    estimator: Estimator | None = None
    propagation: PropagationLike | None = None
    known: Mapping[str, Cost] = field(default_factory=dict)

    def costs(self, estimators: Iterable[str]) -> dict[str, Cost]:
        """Return the costs of an epoch by each estimator that can train here."""
        names = list(estimators)
        found = epoch_costs(
            self.model,
            self.graph,
            self.config,
            [name for name in names if name not in self.known],
            propagation=self.propagation,
            target=self.target,
            setup=self.setup,
        )
        found |= self.known
        return {name: found[name] for name in names if name in found}

    def epoch_work(self) -> float:
        """Return the work of an epoch with its evaluation, in nodes of usual width that take as
        long. Raises if the job's estimator cannot train the model."""
        name = self.config.estimator
        cost = self.costs([name]).get(name)
        if cost is None:
            raise InputError(f"{setting('estimator', name)} cannot train this model")
        levels = self.setup.evaluation.widths
        hidden = levels[1:] or levels or (_WIDTH,)
        width = sum(hidden) / len(hidden) / _WIDTH
        evaluated = self.graph.num_nodes * len(levels) * _FORWARD / self.config.evaluate_every
        steps = cost.work - cost.computed
        return (
            (cost.computed + evaluated) * width**_WIDER
            + steps
            + self.target.scoring_work(cost.steps)
        )

    def with_model(self, model: nn.Module, seed: int) -> Job:
        """Return the same job for a model of the same shape with weights from another seed."""
        model.to(self.setup.device)
        note_training(model, self.graph, self.config, self.propagation)
        return replace(
            self,
            model=model,
            config=replace(self.config, seed=seed),
        )

    def run(
        self,
        folder: Path,
        options: Mapping[str, Any],
        listener: Listener | None = None,
        *,
        resume: bool = False,
        begun: Begun | None = None,
        verbose: bool = False,
        smooth: str = "never",
        calibrate: str = "never",
        check: Callable[[], None] | None = None,
    ) -> TrainResult:
        """Train, or resume training, and record everything in the folder of a run, which the caller
        has claimed.

        options: the settings that config.toml of the run has
        listener: called after the record is written
        begun: as `train` takes it
        smooth: whether to correct and smooth the trained model, as `Settings.smooth` says
        calibrate: whether to calibrate it, as `Settings.calibrate` says
        check: called after each epoch and before each checkpoint; if it raises, the run stops
        """

        check_smooth(smooth, self.graph)
        check_calibrate(calibrate, self.graph)
        resume = resume and begun is None

        def train(told: Listener) -> TrainResult:
            place = folder / CHECKPOINTS
            return self.train(told, checkpoints=place, resume=resume, begun=begun, verbose=verbose)

        def finish(
            result: TrainResult, note: Callable[[str], None]
        ) -> tuple[TrainResult, SavedModel]:
            with working("smoothing and calibrating", shown=verbose):
                result, saved = smooth_run(
                    self.model, self.graph, result, smooth, self.config.metric, note
                )
                return result, calibrate_run(saved, self.graph, calibrate, note)

        return recorded(
            folder,
            self.model,
            self.config,
            train,
            options=with_choice(options, self.config.estimator),
            facts=facts_of(self.graph),
            listener=listener or Listener(),
            finish=finish,
            check=check,
            former=former_model(folder, self.target.better, scored=self.config.select == "best"),
            resume=resume,
        )

    def train(
        self,
        listener: Listener | None = None,
        *,
        checkpoints: Path | None = None,
        resume: bool = False,
        begun: Begun | None = None,
        verbose: bool = False,
    ) -> TrainResult:
        """Train the model in place; it ends with the chosen weights, in evaluation mode.

        checkpoints: a folder for checkpoints. Ctrl-C and SIGTERM then end the step, write a
            checkpoint, and raise `Interrupted`
        resume: continue from the newest checkpoint there, or from the beginning if there is none
        begun: a training of this job to continue, whose epochs the listener has not heard of, and
            whose checkpoint replaces those there; None: one that begins
        verbose: show progress
        """
        with memory_explained(self.graph, self.config, self.model), ExitStack() as stack:
            directory = stack.enter_context(table_folder(self.config.memory, checkpoints or Path()))
            listener = listener or Listener()
            progress = self.progress() if verbose else None
            if begun is not None:
                progress = begun.progress
            told = listener
            if progress is not None:
                told = Listeners(listener, stack.enter_context(progress))
            trainer = (begun or self.begin(told, progress, directory)).trainer
            trainer.listener = told
            if begun is not None:
                trainer.announce(listener)
            if checkpoints is None:
                return trainer.run()
            stack.enter_context(locked(checkpoints))
            stop = stack.enter_context(stop_requests())
            kept = Checkpoints(trainer, checkpoints)
            if resume:
                kept.resume()
            elif begun is None:
                _refuse_used(checkpoints)
            if begun is not None:
                if kept.often:
                    kept.write()
                if begun.home is not None:
                    remove_folder(begun.home)
            return kept.run(stop)

    def progress(self, name: str = "") -> EpochProgress:
        """Return what shows the progress of the training. name: of it, where several take turns"""
        return EpochProgress(self.config.epochs, self.target.metric, name)

    def begin(
        self,
        listener: Listener,
        progress: EpochProgress | None = None,
        directory: Path | None = None,
    ) -> Begun:
        """Build everything that the training needs; no step is made.

        progress: shows evaluations
        directory: of tables that are kept in files; None: in memory
        """
        self.target.prepare(self.model)
        components = build_components(
            self.model,
            self.graph,
            self.config,
            self.target,
            self.setup,
            estimator=self.estimator,
            directory=directory,
            on_begin=None if progress is None else progress.begin_evaluation,
            on_chunk=None if progress is None else progress.evaluated,
        )
        trainer = Trainer(
            self.model,
            self.graph,
            self.config,
            propagation=self.propagation,
            target=self.target,
            components=components,
            listener=listener,
        )
        return Begun(trainer, progress)


def prepare(
    model: nn.Module,
    graph: Graph,
    config: TrainConfig,
    target: Target | None = None,
    *,
    estimator: Estimator | None = None,
    propagation: PropagationLike | None = None,
) -> Job:
    """Return the job of training a model on a graph whose features are scaled as the model needs.

    target: what the graph's labels or pairs stand for, if None
    estimator, propagation: the user's own instead of the config's, see `fit`
    """
    use_threads(config.threads)
    target = target or find_target(graph, config)
    with memory_explained(graph, config, model):
        model.to(find_device(config.device))
        note_training(model, graph, config, propagation)
        setup = look_at(model, graph, config, propagation)
        choice, settled, known = None, config, {}
        if estimator is None and config.estimator == AUTO:
            known = candidate_costs(model, graph, config, target=target, setup=setup)
            choice = choice_by(known)
            settled = replace(config, estimator=choice.estimator)
    return Job(model, graph, target, settled, choice, setup, estimator, propagation, known)


def job_of(candidate: Candidate, graph: Graph) -> Job:
    """Return the job of training a candidate."""
    target = find_target(graph, candidate.train)
    network = build_network(candidate.model, graph, target, candidate.train.seed)
    return prepare(network, graph, candidate.train, target)


def _refuse_used(folder: Path) -> None:
    """Raise if a folder has checkpoints of another run, because they would be taken for this
    one's."""
    there = checkpoints_in(folder)
    if there:
        raise FileExistsError(
            f"{folder} has checkpoints of a run already, the newest {there[0].name}: resume="
            f"{str(folder)!r} resumes it; delete it to begin again, or give another folder"
        )
