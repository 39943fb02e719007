"""One training run, or several that differ in their seed, from its settings to its folder: what
`vrgcn train` and `vrgcn.train` do."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

from torch import nn

from vrgcn.costs.choice import EXACT
from vrgcn.costs.epoch_cost import cost_line, exact_advice
from vrgcn.data import find_dataset
from vrgcn.data.opening import Opened
from vrgcn.data.store import save_graph
from vrgcn.engine.devices import find_device
from vrgcn.files.folder import OpenFolder
from vrgcn.files.mistakes import InputError
from vrgcn.files.setting_names import Placeholder, setting
from vrgcn.files.wording import print_note, printable, seconds_text
from vrgcn.files.writing import make_folder, remove_folder
from vrgcn.graph.edge_means import averaged_columns, cannot_follow
from vrgcn.graph.graph import Graph
from vrgcn.graph.visible import rules_of
from vrgcn.inference import MODEL
from vrgcn.leaks import quick_audit
from vrgcn.runs.card import facts_of
from vrgcn.runs.config_file import write_settings
from vrgcn.runs.fitted import fit_run
from vrgcn.runs.folder import (
    CONFIG,
    GRAPH,
    RACE,
    chosen_estimator,
    remove_card,
    resumable,
)
from vrgcn.runs.interrupts import Interrupted
from vrgcn.runs.job import Begun, Job
from vrgcn.runs.last_word import Rival, best_baseline, scores_text, verdict
from vrgcn.runs.racing import run_race
from vrgcn.runs.resume import nothing_left
from vrgcn.runs.run_settings import RunSettings, TrainSettings
from vrgcn.runs.seeds import run_seeds
from vrgcn.runs.settings import Candidate
from vrgcn.runs.store_watch import StoreWatch
from vrgcn.targets.scored import scored_edges, validated
from vrgcn.tasks import find_task
from vrgcn.training.clock import Clock
from vrgcn.training.listener import Callbacks, Listener, Listeners
from vrgcn.training.progress import filling_bars, working
from vrgcn.training.result import TrainResult
from vrgcn.training.state import Epoch
from vrgcn.training.tensorboard import TensorBoardLog
from vrgcn.training.tracking import TRACKERS, TrackerLog


def run_training(
    settings: TrainSettings,
    graph: Graph | None = None,
    *,
    verbose: bool = False,
    on_epoch: Callable[[Epoch], None] | None = None,
    begun: float | None = None,
) -> Path:
    """Train as the settings say, or resume; return the folder of the run, or of all seeds.

    graph: is written to the folder of the run; None: the settings name one
    verbose: print what happens, and show progress
    on_epoch: called with each point of the curve; it may raise StopTraining
    begun: when the process began, by the clock of runs; None: now
    """
    begun = Clock.now() if begun is None else begun
    find_device(settings.train.device)
    if settings.resume is not None and nothing_left(settings, settings.resume):
        if verbose:
            print(finished_text(settings.resume, "epochs"))
        return settings.resume
    with ExitStack() as stack:
        folder = None
        if graph is not None:
            folder = stack.enter_context(own_folder(settings))
            settings = replace(settings, dataset=None, graph=graph_in(folder, graph))
        opened, watch = _opened(settings, verbose)
        if settings.model.is_baseline:
            folder = folder or stack.enter_context(settings.folder())
            fit_run(settings, opened, folder, verbose=verbose)
            return folder
        with working("preparing the model", shown=verbose):
            found = settings.candidates(opened.graph)
            usual = settings.settled(opened.graph, found[0])
            job = usual.prepare(opened.graph, chosen_estimator(settings.resume))
        if folder is None:
            named = settings if len(found) > 1 else usual
            folder = stack.enter_context(named.folder(job.config.estimator))
        training = Training(usual, opened, watch, job, verbose, on_epoch)
        if verbose:
            stack.enter_context(end_told(folder))
            training.begin(folder)
        ready = Clock.now()
        if len(found) > 1:
            training = training.raced(settings, found, folder)
        times = [begun, ready, *training.run(folder)]
    if verbose:
        parts = [seconds_text(after - before) for before, after in pairwise(times)]
        print(
            f"{seconds_text(times[-1] - begun)} in all: {parts[0]} until training began, "
            f"{parts[1]} of training with evaluation and all candidates, {parts[2]} of baselines"
        )
    return folder


def finished_text(folder: Path, length: str) -> str:
    """Say that a run has finished, and how it goes on. length: the setting that extends it"""
    return (
        f"{printable(folder)} has finished already; with more {setting(length)} or a longer "
        f"{setting('time_limit')} it goes on"
    )


@contextmanager
def own_folder(settings: RunSettings) -> Iterator[Path]:
    """Yield the folder of a run that keeps its graph, locked for this process."""
    if settings.out is None and settings.resume is None and settings.name is None:
        name = setting("out", Placeholder("FOLDER"))
        raise InputError(f"{name}: name the folder of the run, which keeps the graph")
    with settings.folder() as folder:
        yield folder


def graph_in(folder: Path, graph: Graph) -> Path:
    """Write a graph to the folder of its run, unless it is there; return where it is."""
    if not (folder / GRAPH).is_dir():
        save_graph(graph, folder / GRAPH)
    return folder / GRAPH


def _opened(settings: TrainSettings, verbose: bool) -> tuple[Opened, StoreWatch | None]:
    """Open the graph, and watch its files if it is on disk."""
    on_fill = filling_bars() if verbose else None
    if settings.graph is None or not settings.graph.is_dir():
        return settings.open_graph(on_fill), None
    with OpenFolder(settings.graph) as store:  # watch the same files that are read
        watch = StoreWatch(store, print_note if verbose else lambda note: None)
        return settings.open_graph(on_fill, store), watch


@dataclass(frozen=True)
class Training:
    """A graph, and the runs that train on it.

    watch: of the graph's files; None if the graph is not on disk
    begun: the training of the job that a race began; None: nothing is trained yet
    """

    settings: TrainSettings
    opened: Opened
    watch: StoreWatch | None
    job: Job
    verbose: bool
    on_epoch: Callable[[Epoch], None] | None
    begun: Begun | None = None

    def begin(self, folder: Path) -> None:
        """Print what will be trained, on which graph, and what is known before."""
        graph, job = self.job.graph, self.job
        scaling = "none" if graph.scaling is None else graph.scaling.kind
        print(
            f"{graph}\n{summary(job.model)}, features scaled: {scaling}, "
            f"writing to {printable(folder)}"
        )
        edges = scored_edges(graph)
        if edges is not None:
            for said in edges.said:
                print(f"pairs: {said}")
            print(f"no leaks: {'; '.join(edges.predicted.rules)}")
        rules = job.target.rules(job.model, graph)
        if rules:
            print(f"in training: {'; '.join(rules)}")
        told = rules_of(graph)
        if told:
            print(f"no leaks: {'; '.join(told)}")
        print_note(self.opened.note)
        print_note(self._unlike_the_paper())
        if self.settings.resume is None:
            with working("looking for leaks"):
                findings = quick_audit(graph)
            for finding in findings:
                print(f"warning: possible leak: {printable(str(finding))}")
            print_note(cannot_follow(averaged_columns(graph)))
        if job.choice is not None:
            print(f"estimator {job.choice.estimator}: {job.choice.reason}")
        self._print_cost()

    def raced(self, asked: TrainSettings, found: Sequence[Candidate], folder: Path) -> Training:
        """Return the training of the candidate that wins a race.

        asked: the settings that the candidates stand for, with which a stopped race is resumed
        """
        remove_card(folder)
        make_folder(folder / RACE)
        for home in (folder, folder / RACE):
            write_settings(home / CONFIG, asked.described(self.opened.checksum))
        check = None if self.watch is None else self.watch.check
        listener = Listeners(Watching(self.watch, self.verbose), Callbacks(on_checkpoint=check))
        raced = run_race(
            found, asked.train, self.job, folder=folder, listener=listener, verbose=self.verbose
        )
        if raced.begun is None:
            remove_folder(folder / RACE)
        if self.verbose and raced.candidate.name != found[0].name:
            print(f"{summary(raced.job.model)}{_by(raced.job)}")
        settings = asked.settled(self.job.graph, raced.candidate)
        return replace(self, settings=settings, job=raced.job, begun=raced.begun)

    def run(self, folder: Path) -> tuple[float, float]:
        """Train one run in the folder, or one for each seed in a folder of its own; return when
        training and what follows it ended."""
        if self.settings.seeds is not None:
            say = print if self.verbose else lambda text: None
            facts, estimator = facts_of(self.job.graph), self.job.config.estimator
            run_seeds(self.settings, folder, estimator, facts, self._train_seed, say)
            return Clock.now(), Clock.now()
        result = self._train(self.settings, self.job, folder, self.begun)
        trained = Clock.now()
        if self.verbose and self.settings.baseline:
            self._print_last_word(result)
        return trained, Clock.now()

    def _train_seed(self, settings: TrainSettings, folder: Path) -> None:
        first = settings.train.seed == self.job.config.seed
        if first and (settings.resume is None or self.begun is not None):
            self._train(settings, self.job, folder, self.begun)
            return
        model = settings.build_model(self.job.graph, self.job.target)
        self._train(settings, self.job.with_model(model, settings.train.seed), folder)

    def _train(
        self, settings: TrainSettings, job: Job, folder: Path, begun: Begun | None = None
    ) -> TrainResult:
        values = settings.described(self.opened.checksum)
        with ExitStack() as stack:
            listeners: list[Listener] = [Watching(self.watch, self.verbose)]
            if settings.log == "tensorboard":
                listeners.append(stack.enter_context(TensorBoardLog(folder)))
            trackers = [stack.enter_context(log) for log in _trackers(settings, values, folder)]
            result = job.run(
                folder,
                values,
                Listeners(*listeners, *trackers, Callbacks(self.on_epoch)),
                resume=settings.resume is not None,
                begun=begun,
                verbose=self.verbose,
                smooth=settings.smooth,
                calibrate=settings.calibrate,
                check=None if self.watch is None else self.watch.check,
            )
            for tracker in trackers:
                tracker.finish(result)
        if not self.verbose:
            return result
        print(f"{result}\nwritten to {printable(folder)}")
        if result.stopped == "time":
            more = setting("resume", True, typed=folder, command="train")
            print_note(
                f"the time limit of {settings.train.time_limit} ended the training in epoch "
                f"{len(result.curve)} of {settings.train.epochs}; {more} "
                f"{setting('time_limit', Placeholder('MORE'))} resumes it, time used so far "
                "counting"
            )
        return result

    def _print_cost(self) -> None:
        """Print what the run will compute and how much memory it takes, if the model uses
        neighbours."""
        used = self.job.config.estimator
        costs = self.job.costs([used, EXACT])
        if used in costs:
            print(cost_line(used, costs[used]))
            if self.job.graph.labels is not None:  # of pairs, a race compares these
                print_note(exact_advice(used, costs, EXACT))

    def _print_last_word(self, result: TrainResult) -> None:
        """Print what simple rules, or the best of a few quick baselines, score for comparison, and
        whether they are better."""
        job, metric, start = self.job, self.job.target.metric, Clock.now()
        edges = scored_edges(job.graph)
        rivals = []
        if edges is not None:
            width = self.settings.model.embedding
            for title, scores in job.target.simple_scores(("val", "test"), width):
                print(f"for comparison, {title}: {scores_text(metric, scores)}")
                rivals.append(Rival(None, title, scores))
        elif job.graph.labels is not None and job.graph.visible is None:  # else it sees later edges
            scored_by = find_task(job.graph.task).find_metric(job.config.metric)
            work = len(result.curve) * job.epoch_work()
            with working("fitting baselines"):
                found = best_baseline(job.graph, scored_by, work, job.config.seed)
            if found is not None:
                took = seconds_text(Clock.now() - start)
                print(
                    f"for comparison, {found.words}: {scores_text(metric, found.scores)} ({took})"
                )
                rivals.append(found)
        print_note(verdict(rivals, metric, result.val, validated(job.graph)))

    def _unlike_the_paper(self) -> str | None:
        name = self.settings.dataset
        if not name or not find_dataset(name).inductive or self.settings.train.inductive:
            return None
        return f"the paper trains on {name} inductively; {setting('inductive', True)} does that"


class Watching(Listener):
    """Stops the run if a file of its graph was changed; prints notes if they are wanted.

    watch: of the graph's files; None if the graph is not on disk
    """

    def __init__(self, watch: StoreWatch | None, verbose: bool) -> None:
        self.watch = watch
        self.hears_notes = verbose

    def note(self, text: str) -> None:
        if self.hears_notes:
            print_note(text)

    def restore(self, curve: list[Epoch]) -> None:
        if self.hears_notes:
            print(f"resuming after epoch {len(curve)}")

    def step(self, done: int, total: int) -> None:
        if self.watch is not None:
            self.watch.glance()


@contextmanager
def end_told(folder: Path, command: str = "train") -> Iterator[None]:
    """Print what is kept of a run that is stopped."""
    try:
        yield
    except Interrupted as stop:
        print(f"\n{printable(str(stop))}\n{_what_is_kept(folder, command)}")
        raise
    except KeyboardInterrupt:
        print(f"\nstopped early\n{_what_is_kept(folder, command)}")
        raise


def _what_is_kept(folder: Path, command: str) -> str:
    if resumable(folder):
        return f"{setting('resume', True, typed=printable(folder), command=command)} resumes it"
    if (folder / MODEL).exists():
        return f"the best model so far is in {printable(folder)}; no checkpoint to resume from"
    return "nothing was kept"


def _by(job: Job) -> str:
    return "" if job.choice is None else f", estimator {job.choice.estimator}: {job.choice.reason}"


def summary(model: nn.Module) -> str:
    """Describe a model in a few words."""
    weights = sum(parameter.numel() for parameter in model.parameters())
    return f"{type(model).__name__} with {weights:,} weights"


def _trackers(
    settings: TrainSettings, values: Mapping[str, Any], folder: Path
) -> Iterator[TrackerLog]:
    """Yield the trackers that the settings ask for."""
    for name in TRACKERS:
        home = getattr(settings, name)
        if home is not None:
            yield TrackerLog(name, home, folder, values, print_note)
