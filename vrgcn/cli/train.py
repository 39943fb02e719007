"""`vrgcn train`: load a graph, train, write the run."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch

from vrgcn.checkpoint import SavedModel, save_model
from vrgcn.cli.config_file import flatten, write_config
from vrgcn.cli.graphs import graph_note, open_graph
from vrgcn.cli.options import ModelOptions, TrainOptions
from vrgcn.cli.progress import EpochProgress, seconds_text
from vrgcn.graph import Graph
from vrgcn.metrics import score_name
from vrgcn.models import MODELS, GraphModel
from vrgcn.scaling import Scaling
from vrgcn.training import Epoch, TrainResult, fit


def run_train(options: TrainOptions) -> None:
    """Train as the options say; the run's folder is made before training starts."""
    graph, scaling = _scaled_graph(options)
    model = build_model(options.model, graph, options.train.seed)
    folder = _folder(options)
    write_config(folder / "config.toml", _found_again(flatten(options)))
    print(f"{graph}\n{_summary(model)}, features scaled: {scaling.kind}, writing to {folder}")
    note = graph_note(options.dataset, options.data_root)
    if note is not None:
        print(f"note: {note}")
    name = score_name(graph.labels) if graph.labels is not None else "score"
    with (
        (folder / "metrics.jsonl").open("w", encoding="utf-8") as metrics,
        EpochProgress(options.train.epochs, name) as progress,
    ):

        def on_epoch(point: Epoch) -> None:
            metrics.write(json.dumps(point.as_dict()) + "\n")
            metrics.flush()  # what is known stays known if the run is cut short
            progress.epoch(point)

        result = fit(model, graph, options.train, on_epoch=on_epoch, on_step=progress.step)
    scores = _scores(result, name)
    propagation = options.train.propagation or model.propagation
    saved = SavedModel(
        model,
        propagation,
        scaling,
        graph.multilabel,
        graph.names.classes,
        graph.names.features,
    )
    save_model(saved, folder / "model.safetensors")
    (folder / "result.json").write_text(json.dumps(scores, indent=2) + "\n", encoding="utf-8")
    _report(result, name, folder)


def _found_again(options: dict[str, Any]) -> dict[str, Any]:
    """The options with paths that hold from any folder: `vrgcn predict` looks for the graph."""
    paths = {name: options[name] for name in ("graph", "data_root") if options[name] is not None}
    return options | {name: path.resolve() for name, path in paths.items()}


def build_model(options: ModelOptions, graph: Graph, seed: int) -> GraphModel:
    """The model with weights from the seed, whatever was drawn before."""
    arguments = asdict(options)
    kind = MODELS[arguments.pop("model")]
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return kind(graph.num_features, classes=graph.num_classes, **arguments)


def _scaled_graph(options: TrainOptions) -> tuple[Graph, Scaling]:
    """The graph with its features scaled, and the scaling, which is saved with the model."""
    graph, kind = open_graph(options.dataset, options.graph, options.data_root)
    if options.scaling != "auto":
        kind = options.scaling
    scaling = Scaling.fit(kind, graph.features, graph.train)
    return graph.with_features(scaling.apply(graph.features)), scaling


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
        name = f"{graph}-{options.model.model}-{options.train.estimator}"
    folder, number = Path("runs") / name, 1
    while folder.exists():
        number += 1
        folder = Path("runs") / f"{name}-{number}"
    folder.mkdir(parents=True)
    return folder


def _summary(model: GraphModel) -> str:
    weights = sum(parameter.numel() for parameter in model.parameters())
    return f"{type(model).__name__} with {weights:,} weights"


def _scores(result: TrainResult, name: str) -> dict[str, Any]:
    return {
        "metric": name,
        "epoch": result.epoch,
        "val": result.val,
        "test": result.test,
        "seconds": result.seconds,
        "evaluation_seconds": result.evaluation_seconds,
    }


def _report(result: TrainResult, name: str, folder: Path) -> None:
    kept = f"kept epoch {result.epoch} of {len(result.curve)}"
    if result.val is not None:
        kept += f", validation {name} {result.val:.4f}"
    test = "no test nodes" if result.test is None else f"test {name} {result.test:.4f}"
    print(
        f"{test} ({kept})\n"
        f"{seconds_text(result.seconds)} of training, "
        f"{seconds_text(result.evaluation_seconds)} of exact evaluation\n"
        f"written to {folder}"
    )
