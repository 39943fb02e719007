"""`vrgcn train`: load a graph, train, write the run."""

from __future__ import annotations

import signal
import sys
from contextlib import ExitStack, closing, nullcontext
from dataclasses import replace
from pathlib import Path

from vrgcn.cli.notes import print_note
from vrgcn.cli.options import TrainingOptions, TrainOptions
from vrgcn.cli.output import unbroken_output
from vrgcn.cli.resuming import described, nothing_left
from vrgcn.cli.run_folder import goes_on, run_folder
from vrgcn.cli.seeds import run_seeds
from vrgcn.costs.choice import choose_estimator
from vrgcn.costs.epoch_cost import epoch_costs
from vrgcn.costs.out_of_memory import memory_explained
from vrgcn.data import find_dataset
from vrgcn.data.opening import open_graph
from vrgcn.data.sources import has_parts
from vrgcn.diagnostics.diagnosis import REFERENCE
from vrgcn.engine.devices import find_device
from vrgcn.graph.graph import Graph
from vrgcn.graph.scaling import Scaling, scale_graph
from vrgcn.inference import MODEL
from vrgcn.models.models import GraphModel, build_model
from vrgcn.pages.costs import cost_line, exact_advice
from vrgcn.runs.interrupts import Interrupted
from vrgcn.runs.record import train_in
from vrgcn.runs.store_watch import StoreWatch
from vrgcn.training.objectives import Objective, build_objective
from vrgcn.training.progress import filling_bars
from vrgcn.training.state import Epoch
from vrgcn.training.tensorboard import TensorBoardLog


def run_train(options: TrainOptions) -> None:
    """Train as the options say, or go on training, keeping the best model so far on disk."""
    if has_parts(options.graph):
        from vrgcn.cli.train_parts import run_train_parts

        run_train_parts(options)
        return
    find_device(options.train.device)
    if nothing_left(options):
        print(
            f"{options.resume} has finished already; with more --epochs or a longer --time-limit "
            "it goes on"
        )
        return
    stored = options.graph is not None and options.graph.is_dir()
    watch = StoreWatch(options.graph, print_note) if stored and options.graph else None
    with nullcontext() if watch is None else closing(watch):
        _run(options, watch)


def _run(options: TrainOptions, watch: StoreWatch | None) -> None:
    graph, scaling, note = scaled_graph(options)
    objective = build_objective(graph, options.train)
    model = _build(options, graph, objective)
    with memory_explained(graph, options.train):
        chosen, choice = choose_estimator(model, graph, options.train)
    options = replace(options, train=chosen)
    with unbroken_output(), run_folder(options) as folder:
        print(f"{graph}\n{summary(model)}, features scaled: {scaling.kind}, writing to {folder}")
        print_note(note)
        print_note(_unlike_the_paper(options))
        if choice is not None:
            print(f"estimator {choice.estimator}: {choice.reason}")
        _print_cost(model, graph, options)

        def train_one(options: TrainOptions, folder: Path) -> None:
            _train(options, graph, objective, _build(options, graph, objective), watch, folder)

        try:
            if options.seeds is None:
                _train(options, graph, objective, model, watch, folder)
            else:
                run_seeds(options, folder, train_one)
        except Interrupted as stop:
            print(f"\n{stop}\n{what_is_kept(folder)}")
            sys.exit(128 + stop.signal)
        except KeyboardInterrupt:
            print(f"\nstopped early\n{what_is_kept(folder)}")
            raise


def _build(options: TrainOptions, graph: Graph, objective: Objective) -> GraphModel:
    with memory_explained(graph, options.train):
        return build_model(options.model, graph.num_features, objective.outputs, options.train.seed)


def what_is_kept(folder: Path) -> str:
    if goes_on(folder):
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
    with ExitStack() as stack:
        log = None
        if options.log == "tensorboard":
            log = stack.enter_context(TensorBoardLog(folder))

        def on_restore(curve: list[Epoch]) -> None:
            print(f"going on after epoch {len(curve)}")
            if log is not None:
                log.restore(curve)

        def on_step(done: int, total: int) -> None:
            if watch is not None:
                _watch_graph(watch)

        result = train_in(
            folder,
            model,
            graph,
            options.train,
            options=described(options),
            objective=objective,
            resume=options.resume is not None,
            verbose=True,
            check=None if watch is None else watch.check,
            on_epoch=None if log is None else log.epoch,
            on_step=on_step,
            on_restore=on_restore,
            on_note=print_note,
        )
    print(f"{result}\nwritten to {folder}")
    if result.stopped == "time":
        print_note(
            f"the time limit of {options.train.time_limit} ended the training in epoch "
            f"{len(result.curve)} of {options.train.epochs}; vrgcn train --resume {folder} "
            "--time-limit MORE goes on with it, time used so far counting"
        )


def _watch_graph(watch: StoreWatch) -> None:
    """Stop, and keep everything, before somebody who waits for it writes to the graph."""
    watch.glance()
    file = watch.wanted()
    if file is not None:
        print_note(
            f"another process wants to write to {file}, which training reads: the run stops. With "
            "the graph as it was it goes on"
        )
        signal.raise_signal(signal.SIGTERM)


def _print_cost(model: GraphModel, graph: Graph, options: TrainOptions) -> None:
    """What the run will touch and take, where neighbours have a part in it."""
    used = options.train.estimator
    costs = epoch_costs(model, graph, options.train, [used, REFERENCE])
    if used in costs:
        print(cost_line(used, costs[used]))
        print_note(exact_advice(used, costs, REFERENCE))


def _unlike_the_paper(options: TrainOptions) -> str | None:
    if options.dataset and find_dataset(options.dataset).inductive and not options.train.inductive:
        return f"the paper trains on {options.dataset} inductively; --inductive does that"
    return None


def scaled_graph(options: TrainingOptions) -> tuple[Graph, Scaling, str | None]:
    """The graph with its features scaled, the scaling, which is saved with the model, and a note
    on the graph, if there is one."""
    graph, kind, note = open_graph(
        options.dataset,
        options.graph,
        options.data_root,
        verify=options.verify,
        memory=options.train.memory,
        ratio=options.ratio,
        split_seed=options.split_seed,
        on_fill=filling_bars(),
    )
    if graph.labels is None or not len(graph.train):
        raise ValueError(
            "the graph has no labelled training nodes; draw some with --ratio 0.6 0.2 0.2, or "
            "import it again with a --label column and --split or --ratio"
        )
    if options.scaling != "auto":
        kind = options.scaling
    return *scale_graph(graph, kind), note


def summary(model: GraphModel) -> str:
    weights = sum(parameter.numel() for parameter in model.parameters())
    return f"{type(model).__name__} with {weights:,} weights"
