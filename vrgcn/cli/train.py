"""`vrgcn train`: load a graph, train, write the run."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import torch

from vrgcn.cli.config_file import write_config
from vrgcn.cli.metrics_file import MetricsFile
from vrgcn.cli.notes import print_note
from vrgcn.cli.options import TrainingOptions, TrainOptions
from vrgcn.cli.output import unbroken_output
from vrgcn.cli.run_folder import check_folder, found_again, nothing_left, run_folder
from vrgcn.data import find_dataset
from vrgcn.data.opening import open_graph
from vrgcn.data.sources import has_parts
from vrgcn.diagnostics.diagnosis import REFERENCE
from vrgcn.engine.devices import find_device
from vrgcn.files.writing import FULL, write_text
from vrgcn.graph.graph import Graph
from vrgcn.graph.scaling import Scaling, scale_graph
from vrgcn.inference import MODEL
from vrgcn.inference.saved import save_model
from vrgcn.models.models import GraphModel, build_model
from vrgcn.pages.costs import cost_line, exact_advice
from vrgcn.training.checkpoint import checkpoints_in
from vrgcn.training.cost import epoch_costs
from vrgcn.training.fit import fit
from vrgcn.training.interrupts import Interrupted
from vrgcn.training.memory import memory_explained
from vrgcn.training.objectives import Objective, build_objective
from vrgcn.training.result import TrainResult
from vrgcn.training.runs import CHECKPOINTS, CONFIG, METRICS, RESULT
from vrgcn.training.state import Epoch
from vrgcn.training.store_watch import StoreWatch


def run_train(options: TrainOptions) -> None:
    """Train as the options say, or go on training, keeping the best model so far on disk."""
    if has_parts(options.graph):
        from vrgcn.cli.train_parts import run_train_parts

        run_train_parts(options)
        return
    find_device(options.train.device)
    check_folder(options)
    if nothing_left(options):
        print(
            f"{options.resume} has finished already; with more --epochs or a longer --time-limit "
            "it goes on"
        )
        return
    stored = options.graph is not None and options.graph.is_dir()
    watch = StoreWatch(options.graph, print_note) if stored and options.graph else None
    graph, scaling, note = scaled_graph(options)
    objective = build_objective(graph, options.train)
    seed = options.train.seed
    with memory_explained(graph, options.train):
        model = build_model(options.model, graph.num_features, objective.outputs, seed)
    with unbroken_output(), run_folder(options) as folder:
        print(f"{graph}\n{summary(model)}, features scaled: {scaling.kind}, writing to {folder}")
        print_note(note)
        print_note(_unlike_the_paper(options))
        _print_cost(model, graph, options)
        try:
            _train(options, graph, objective, model, watch, folder)
        except Interrupted as stop:
            print(f"\n{stop}\n{what_is_kept(folder)}")
            sys.exit(128 + stop.signal)
        except KeyboardInterrupt:
            print(f"\nstopped early\n{what_is_kept(folder)}")
            raise


def what_is_kept(folder: Path) -> str:
    if checkpoints_in(folder / CHECKPOINTS):
        return f"vrgcn train --resume {folder} goes on with it"
    if (folder / MODEL).exists():
        return f"the best model so far is in {folder}; there is no checkpoint to go on from"
    return "nothing was kept"


def _train(
    options: TrainOptions,
    graph: Graph,
    objective: Objective,
    model: GraphModel,
    watch: StoreWatch | None,
    folder: Path,
) -> None:
    files = RunFiles(options, model, folder, watch)
    result = fit(
        model,
        graph,
        options.train,
        objective=objective,
        checkpoints=folder / CHECKPOINTS,
        resume=None if options.resume is None else folder / CHECKPOINTS,
        on_epoch=files.on_epoch,
        on_kept=files.on_kept,
        verbose=True,
        on_checkpoint=files.check,
        on_restore=files.on_restore,
        on_note=print_note,
    )
    files.finish(result)
    if result.stopped == "time":
        print_note(
            f"the time limit of {options.train.time_limit} ended the training in epoch "
            f"{len(result.curve)} of {options.train.epochs}; vrgcn train --resume {folder} "
            "--time-limit MORE goes on with it, time used so far counting"
        )


class RunFiles:
    """Keeps the files of a run's folder up to date, the checkpoints aside.

    watch: of the graph that is read; None where nobody watches it
    """

    def __init__(
        self, options: TrainOptions, model: GraphModel, folder: Path, watch: StoreWatch | None
    ) -> None:
        self.options, self.model, self.folder, self.watch = options, model, folder, watch
        self.metrics = MetricsFile(folder / METRICS, partial(_written, options))
        if not checkpoints_in(folder / CHECKPOINTS):
            _begin(options, folder)

    def check(self) -> None:
        if self.watch is not None:
            self.watch.check()

    def on_restore(self, curve: list[Epoch]) -> None:
        print(f"going on after epoch {len(curve)}")
        _begin(self.options, self.folder)
        self.metrics.restore(curve)

    def on_epoch(self, point: Epoch) -> None:
        self.check()
        self.metrics.add(point)

    def on_kept(self, point: Epoch) -> None:
        _written(self.options, lambda: save_model(self.model, self.folder / MODEL))

    def finish(self, result: TrainResult) -> None:
        self.metrics.finish()
        save_model(self.model, self.folder / MODEL)
        write_text(self.folder / RESULT, json.dumps(_scores(result), indent=2) + "\n")
        print(f"{result}\nwritten to {self.folder}")


def _print_cost(model: GraphModel, graph: Graph, options: TrainOptions) -> None:
    """What the run will touch and take, where neighbours have a part in it."""
    used = options.train.estimator
    costs = epoch_costs(model, graph, options.train, [used, REFERENCE])
    if used in costs:
        print(cost_line(used, costs[used]))
        print_note(exact_advice(used, costs, REFERENCE))


def _begin(options: TrainOptions, folder: Path) -> None:
    """From here on the run is one that has not finished, by these options."""
    (folder / RESULT).unlink(missing_ok=True)
    write_config(folder / CONFIG, found_again(options))


def _written(options: TrainOptions, write: Callable[[], None]) -> bool:
    """Whether there was room on the disk; where there is none, training goes on if it shall."""
    try:
        write()
    except OSError as error:
        if error.errno not in FULL or options.train.on_full_disk == "stop":
            raise
        print_note(f"{error}; training goes on, and writes it again later")
        return False
    return True


def _unlike_the_paper(options: TrainOptions) -> str | None:
    if options.dataset and find_dataset(options.dataset).inductive and not options.train.inductive:
        return f"the paper trains on {options.dataset} inductively; --inductive does that"
    return None


def scaled_graph(options: TrainingOptions) -> tuple[Graph, Scaling, str | None]:
    """The graph with its features scaled, the scaling, which is saved with the model, and a note
    on the graph, if there is one."""
    graph, kind, note = open_graph(
        options.dataset, options.graph, options.data_root, verify=options.verify
    )
    if graph.labels is None or not len(graph.train):
        raise ValueError(
            "the graph has no labelled training nodes; import it again with a --label column and "
            "--split or --ratio"
        )
    if options.scaling != "auto":
        kind = options.scaling
    return *scale_graph(graph, kind), note


def summary(model: GraphModel) -> str:
    weights = sum(parameter.numel() for parameter in model.parameters())
    return f"{type(model).__name__} with {weights:,} weights"


def _scores(result: TrainResult) -> dict[str, Any]:
    return {
        "metric": result.metric.title,
        "epoch": result.epoch,
        "val": result.val,
        "test": result.test,
        "seconds": result.seconds,
        "evaluation_seconds": result.evaluation_seconds,
        "diagnostics_seconds": result.diagnostics_seconds,
        "checkpoint_seconds": result.checkpoint_seconds,
        "threads": torch.get_num_threads(),
        "stopped": result.stopped,
    }
