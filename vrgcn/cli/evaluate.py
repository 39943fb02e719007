"""`vrgcn evaluate`: scores of a trained model, split by split and class by class."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import torch
from rich.console import Console
from rich.table import Table
from torch import Tensor

from vrgcn.checkpoint import SavedModel
from vrgcn.cli.options import EvaluateOptions
from vrgcn.cli.runs import open_run, open_run_graph
from vrgcn.figures import check_figure, draw_class_scores, draw_confusion
from vrgcn.graph import Graph
from vrgcn.inference import predict
from vrgcn.metrics import ClassScores, class_scores, confusion, score, score_name
from vrgcn.validation import SPLITS, UNLABELLED


def run_evaluate(options: EvaluateOptions) -> None:
    """Print the scores, draw the picture, and write both as evaluation.json beside it."""
    if options.threads is not None:
        torch.set_num_threads(options.threads)
    run = open_run(options.run, options.device)
    picture = options.out or run.folder / "confusion.png"
    check_figure(picture)
    graph = open_run_graph(run, options.dataset, options.graph, options.data_root)
    labels = model_labels(run.saved, graph)
    if not len(graph.split(options.split)):
        raise ValueError(f"--split: the graph has no {options.split} nodes")
    outputs = predict(run.saved.model, graph, propagation=run.saved.propagation)
    scores = {
        name: score(outputs[graph.split(name)], labels[graph.split(name)])
        for name in SPLITS
        if len(graph.split(name))
    }
    nodes = graph.split(options.split)
    classes = run.saved.classes or [str(i) for i in range(outputs.shape[1])]
    by_class = class_scores(outputs[nodes], labels[nodes])
    for name, value in scores.items():
        print(f"{name:<5}  {score_name(labels)} {value:.4f}  ({len(graph.split(name)):,} nodes)")
    Console().print(_table(classes, by_class, options.split))
    title = f"{run.folder.name}: {options.split} nodes"
    if run.saved.multilabel:
        draw_class_scores(by_class, classes, picture, title)
        matrix = None
    else:
        matrix = confusion(outputs[nodes], labels[nodes])
        draw_confusion(matrix, classes, picture, title)
    _write(picture.with_name("evaluation.json"), scores, options.split, classes, by_class, matrix)
    print(f"picture: {picture}\nnumbers: {picture.with_name('evaluation.json')}")


def model_labels(saved: SavedModel, graph: Graph) -> Tensor:
    """The graph's labels, counted as the model counts its classes."""
    if graph.labels is None:
        raise ValueError("the graph has no labels to compare with")
    if graph.multilabel != saved.multilabel:
        kinds = ("one class per node", "several classes per node")
        raise ValueError(
            f"the model was trained for {kinds[saved.multilabel]}, and the graph has "
            f"{kinds[graph.multilabel]}"
        )
    theirs, ours = graph.names.classes, saved.classes
    if theirs is None or ours is None or theirs == ours:
        if graph.num_classes != saved.model.arguments["classes"]:
            raise ValueError(
                f"the model knows {saved.model.arguments['classes']} classes, and the graph has "
                f"{graph.num_classes}"
            )
        return graph.labels
    unknown = [name for name in theirs if name not in set(ours)]
    if unknown:
        raise ValueError(f"the model does not know the class {unknown[0]!r} of the graph")
    place = torch.tensor([ours.index(name) for name in theirs])
    if graph.multilabel:
        labels = torch.zeros(graph.num_nodes, len(ours))
        labels[:, place] = graph.labels
        labels[(graph.labels == UNLABELLED).all(1)] = UNLABELLED
        return labels
    return torch.where(graph.labels >= 0, place[graph.labels.clamp(min=0)], UNLABELLED)


def _table(classes: list[str], scores: ClassScores, split: str) -> Table:
    table = Table(title=f"{split} nodes, class by class", title_justify="left")
    table.add_column("class")
    for heading in ("precision", "recall", "support", "predicted"):
        table.add_column(heading, justify="right")
    for place, name in enumerate(classes):
        table.add_row(
            name,
            _number(scores.precision[place]),
            _number(scores.recall[place]),
            f"{int(scores.support[place]):,}",
            f"{int(scores.predicted[place]):,}",
        )
    return table


def _number(value: Tensor) -> str:
    return "–" if math.isnan(value) else f"{float(value):.3f}"


def _write(
    path: Path,
    scores: dict[str, float],
    split: str,
    classes: list[str],
    by_class: ClassScores,
    matrix: Tensor | None,
) -> None:
    def known(values: Tensor) -> list[float | None]:
        return [None if math.isnan(value) else value for value in values.tolist()]

    numbers: dict[str, Any] = {
        "scores": scores,
        "split": split,
        "classes": classes,
        "precision": known(by_class.precision),
        "recall": known(by_class.recall),
        "support": by_class.support.tolist(),
        "predicted": by_class.predicted.tolist(),
        "confusion": None if matrix is None else matrix.tolist(),
    }
    path.write_text(json.dumps(numbers, indent=2) + "\n", encoding="utf-8")
