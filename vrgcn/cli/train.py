"""`vrgcn train`: load a graph, train, write the run."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

from vrgcn.cli.config_file import flatten, write_config
from vrgcn.cli.notes import print_note
from vrgcn.cli.options import TrainingOptions, TrainOptions
from vrgcn.data import find_dataset
from vrgcn.data.opening import open_graph
from vrgcn.engine.devices import find_device
from vrgcn.graph.graph import Graph
from vrgcn.graph.scaling import Scaling, scale_graph
from vrgcn.inference import MODEL
from vrgcn.inference.saved import save_model
from vrgcn.models.models import GraphModel, build_model
from vrgcn.pages.progress import EpochProgress
from vrgcn.pages.wording import seconds_text
from vrgcn.training.fit import fit
from vrgcn.training.metrics import Metric
from vrgcn.training.objectives import Objective, build_objective
from vrgcn.training.runs import CONFIG, METRICS, RESULT
from vrgcn.training.state import Epoch
from vrgcn.training.trainer import TrainResult


def run_train(options: TrainOptions) -> None:
    """Train as the options say, keeping the best model so far on disk."""
    find_device(options.train.device)
    graph, scaling, note = scaled_graph(options)
    objective = build_objective(graph, options.train)
    model = build_model(options.model, graph.num_features, objective.outputs, options.train.seed)
    folder = _folder(options)
    try:
        _train(options, graph, objective, model, scaling, note, folder)
    except BaseException as error:
        if not (folder / MODEL).exists():  # nothing worth keeping, and in the way of another try
            shutil.rmtree(folder)
        elif isinstance(error, KeyboardInterrupt):
            print(f"\nstopped early; the best model so far is in {folder}")
        raise


def _train(
    options: TrainOptions,
    graph: Graph,
    objective: Objective,
    model: GraphModel,
    scaling: Scaling,
    note: str | None,
    folder: Path,
) -> None:
    write_config(folder / CONFIG, _found_again(flatten(options)))
    print(f"{graph}\n{_summary(model)}, features scaled: {scaling.kind}, writing to {folder}")
    print_note(note)
    print_note(_unlike_the_paper(options))
    with (
        (folder / METRICS).open("w", encoding="utf-8") as metrics,
        EpochProgress(options.train.epochs, objective.metric) as progress,
    ):

        def on_epoch(point: Epoch) -> None:
            metrics.write(json.dumps(point.as_dict()) + "\n")
            metrics.flush()  # what is known stays known if the run is cut short
            progress.epoch(point)

        result = fit(
            model,
            graph,
            options.train,
            objective=objective,
            on_epoch=on_epoch,
            on_kept=lambda _: save_model(model, folder / MODEL),
            on_step=progress.step,
        )
    save_model(model, folder / MODEL)
    scores = _scores(result, objective.metric)
    (folder / RESULT).write_text(json.dumps(scores, indent=2) + "\n", encoding="utf-8")
    _print_result(result, objective.metric, folder)


def _unlike_the_paper(options: TrainOptions) -> str | None:
    if options.dataset and find_dataset(options.dataset).inductive and not options.train.inductive:
        return f"the paper trains on {options.dataset} inductively; --inductive does that"
    return None


def _found_again(options: dict[str, Any]) -> dict[str, Any]:
    """The options that `--config` may repeat the run by, its paths holding from any folder."""
    options = {k: v for k, v in options.items() if k not in ("config", "name", "out")}
    paths = {name: options[name] for name in ("graph", "data_root") if options[name] is not None}
    return options | {name: path.resolve() for name, path in paths.items()}


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


def _folder(options: TrainOptions) -> Path:
    """A new folder for the run: never one that holds something already."""
    if options.out is not None:
        if options.out.exists() and (not options.out.is_dir() or any(options.out.iterdir())):
            raise FileExistsError(f"--out: {options.out} exists already; choose another folder")
        options.out.mkdir(parents=True, exist_ok=True)
        return options.out
    name = options.name
    if name is None:
        graph = options.dataset or (options.graph.name if options.graph else "")
        estimator = options.train.estimator.replace("/", "-")
        name = f"{graph}-{options.model.model}-{estimator}"
    folder, number = Path("runs") / name, 1
    while folder.exists():
        number += 1
        folder = Path("runs") / f"{name}-{number}"
    folder.mkdir(parents=True)
    return folder


def _summary(model: GraphModel) -> str:
    weights = sum(parameter.numel() for parameter in model.parameters())
    return f"{type(model).__name__} with {weights:,} weights"


def _scores(result: TrainResult, metric: Metric) -> dict[str, Any]:
    return {
        "metric": metric.title,
        "epoch": result.epoch,
        "val": result.val,
        "test": result.test,
        "seconds": result.seconds,
        "evaluation_seconds": result.evaluation_seconds,
        "diagnostics_seconds": result.diagnostics_seconds,
    }


def _print_result(result: TrainResult, metric: Metric, folder: Path) -> None:
    kept = f"kept epoch {result.epoch} of {len(result.curve)}"
    if result.val is not None:
        kept += f", validation {metric.title} {metric.text(result.val)}"
    test = "no test nodes"
    if result.test is not None:
        test = f"test {metric.title} {metric.text(result.test)}"
    print(
        f"{test} ({kept})\n"
        f"{seconds_text(result.seconds)} of training, "
        f"{seconds_text(result.evaluation_seconds)} of exact evaluation\n"
        f"written to {folder}"
    )
