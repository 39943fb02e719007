"""`vrgcn train` on a whole graph: loads it, trains, writes the run."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from torch import nn

from vrgcn.baselines.quick import quick_baseline
from vrgcn.cli.notes import print_note
from vrgcn.cli.run_folder import run_folder
from vrgcn.cli.seeds import run_seeds
from vrgcn.cli.train import TrainOptions
from vrgcn.data import find_dataset
from vrgcn.data.opening import Opened
from vrgcn.diagnostics.diagnosis import REFERENCE
from vrgcn.engine.devices import find_device
from vrgcn.files.folder import OpenFolder
from vrgcn.files.printable import printable
from vrgcn.graph.edge_means import averaged_columns, cannot_follow
from vrgcn.graph.graph import Graph
from vrgcn.inference import MODEL
from vrgcn.leaks import quick_audit
from vrgcn.pages.costs import cost_line, exact_advice
from vrgcn.runs.card_facts import facts_of
from vrgcn.runs.folder import chosen_estimator, resumable
from vrgcn.runs.interrupts import Interrupted
from vrgcn.runs.job import Job
from vrgcn.runs.resume import described, nothing_left
from vrgcn.runs.store_watch import StoreWatch
from vrgcn.targets.scored import scored_edges
from vrgcn.tasks import find_task
from vrgcn.tasks.metrics import Metric
from vrgcn.training.listener import Listener, Listeners
from vrgcn.training.progress import filling_bars
from vrgcn.training.state import Epoch
from vrgcn.training.tensorboard import TensorBoardLog
from vrgcn.training.tracking import TRACKERS, TrackerLog
from vrgcn.training.wording import seconds_text


def run_train_graph(options: TrainOptions) -> None:
    """Train as the options say, or resume; keep the best model so far on disk."""
    find_device(options.train.device)
    if nothing_left(options, options.resume):
        print(
            f"{printable(str(options.resume))} has finished already; with more --epochs or a "
            "longer --time-limit it goes on"
        )
        return
    if options.graph is None or not options.graph.is_dir():
        _run(options, options.open_graph(filling_bars()), None)
        return
    with OpenFolder(options.graph) as store:  # watch the same files that are read
        watch = StoreWatch(store, print_note)
        opened = options.open_graph(filling_bars(), store)
    _run(options, opened, watch)


def _run(options: TrainOptions, opened: Opened, watch: StoreWatch | None) -> None:
    graph = opened.graph
    options = options.settled(graph, print)
    job = options.prepare(graph, chosen_estimator(options.resume))
    with run_folder(options, job.config.estimator) as folder:
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
        if graph.visible is not None:
            print(f"no leaks: {'; '.join(graph.visible.rules)}")
        print_note(opened.note)
        print_note(_unlike_the_paper(options))
        if options.resume is None:
            print_leaks(graph)
            print_note(cannot_follow(averaged_columns(graph)))
        if job.choice is not None:
            print(f"estimator {job.choice.estimator}: {job.choice.reason}")
        _print_cost(job)

        def train_one(options: TrainOptions, folder: Path) -> None:
            model = options.build_model(graph, job.target)
            settings = described(options, opened.checksum)
            seeded = job.with_model(model, options.train.seed)
            _train(options, settings, seeded, watch, folder)

        try:
            if options.seeds is None:
                _train(options, described(options, opened.checksum), job, watch, folder)
                if options.baseline:
                    _print_baseline(job, options.model.embedding)
            else:
                run_seeds(options, folder, job.config.estimator, facts_of(graph), train_one)
        except Interrupted as stop:
            print(f"\n{printable(str(stop))}\n{what_is_kept(folder)}")
            sys.exit(128 + stop.signal)
        except KeyboardInterrupt:
            print(f"\nstopped early\n{what_is_kept(folder)}")
            raise


def what_is_kept(folder: Path) -> str:
    if resumable(folder):
        return f"vrgcn train --resume {printable(folder)} goes on with it"
    if (folder / MODEL).exists():
        return (
            f"the best model so far is in {printable(folder)}; there is no checkpoint to go on from"
        )
    return "nothing was kept"


def _train(
    options: TrainOptions,
    settings: dict[str, Any],
    job: Job,
    watch: StoreWatch | None,
    folder: Path,
) -> None:
    with ExitStack() as stack:
        listeners: list[Listener] = [Watching(watch)]
        if options.log == "tensorboard":
            listeners.append(stack.enter_context(TensorBoardLog(folder)))
        trackers = [stack.enter_context(log) for log in _trackers(options, settings, folder)]
        listeners += trackers
        result = job.run(
            folder,
            settings,
            Listeners(*listeners),
            resume=options.resume is not None,
            verbose=True,
            smooth=options.smooth,
            calibrate=options.calibrate,
            check=None if watch is None else watch.check,
        )
        for tracker in trackers:
            tracker.finish(result)
    print(f"{result}\nwritten to {printable(folder)}")
    if result.stopped == "time":
        print_note(
            f"the time limit of {options.train.time_limit} ended the training in epoch "
            f"{len(result.curve)} of {options.train.epochs}; vrgcn train --resume {folder} "
            "--time-limit MORE goes on with it, time used so far counting"
        )


def _trackers(
    options: TrainOptions, settings: dict[str, Any], folder: Path
) -> Iterator[TrackerLog]:
    """Yield the trackers that the options ask for."""
    for name in TRACKERS:
        home = getattr(options, name)
        if home is not None:
            yield TrackerLog(name, home, folder, settings, print_note)


class Watching(Listener):
    """Prints notes, and stops the run if a file of its graph was changed.

    watch: of the graph's files; None if the graph is not on disk
    """

    hears_notes = True

    def __init__(self, watch: StoreWatch | None) -> None:
        self.watch = watch

    def note(self, text: str) -> None:
        print_note(text)

    def restore(self, curve: list[Epoch]) -> None:
        print(f"going on after epoch {len(curve)}")

    def step(self, done: int, total: int) -> None:
        if self.watch is not None:
            self.watch.glance()


def _print_baseline(job: Job, width: int) -> None:
    """Print what simple rules score for comparison; for labels, a quick baseline. width: of
    embeddings"""
    metric = job.target.metric
    for title, scores in job.target.simple_scores(("val", "test"), width):
        print(f"for comparison, {title}: {_scores_text(metric, scores)}")
    if job.graph.labels is None or job.graph.visible is not None:  # it would see later edges
        return
    found = quick_baseline(job.graph, find_task(job.graph.task).find_metric(job.config.metric))
    if found is None:
        return
    scores = {"val": found.val} | ({} if found.test is None else {"test": found.test})
    print(
        f"for comparison, {found.words}: {_scores_text(metric, scores)} "
        f"({seconds_text(found.seconds)})"
    )


def _scores_text(metric: Metric, scores: Mapping[str, float]) -> str:
    return ", ".join(
        f"{'validation' if split == 'val' else split} {metric.title} {metric.text(score)}"
        for split, score in scores.items()
    )


def print_leaks(graph: Graph) -> None:
    """Print what a quick audit finds, a line each."""
    for finding in quick_audit(graph):
        print(f"warning: possible leak: {printable(str(finding))}")


def _print_cost(job: Job) -> None:
    """Print what the run will compute and how much memory it takes, if the model uses
    neighbours."""
    used = job.config.estimator
    costs = job.costs([used, REFERENCE])
    if used in costs:
        print(cost_line(used, costs[used]))
        if job.graph.labels is not None:  # of pairs, pilots compare these
            print_note(exact_advice(used, costs, REFERENCE))


def _unlike_the_paper(options: TrainOptions) -> str | None:
    if options.dataset and find_dataset(options.dataset).inductive and not options.train.inductive:
        return f"the paper trains on {options.dataset} inductively; --inductive does that"
    return None


def summary(model: nn.Module) -> str:
    weights = sum(parameter.numel() for parameter in model.parameters())
    return f"{type(model).__name__} with {weights:,} weights"
