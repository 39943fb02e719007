"""`vrgcn evaluate`: scores of a trained model, split by split and class by class."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table
from torch import Tensor

from vrgcn.cli.notes import print_note
from vrgcn.cli.options import EvaluateOptions
from vrgcn.engine.devices import find_device, use_threads
from vrgcn.graph.graph import Graph
from vrgcn.graph.validation import SPLITS
from vrgcn.inference.predict import predict
from vrgcn.inference.saved import model_labels
from vrgcn.pages.classes import CLASS_COLUMNS, class_row, main_classes
from vrgcn.pages.figures import check_figure, draw_class_scores, draw_confusion
from vrgcn.pages.terminal import text_table
from vrgcn.training.metrics import ClassScores, class_scores, confusion, score, score_name
from vrgcn.training.runs import open_run, open_run_graph


def run_evaluate(options: EvaluateOptions) -> None:
    """Print the scores, draw the picture, and write the numbers beside it."""
    use_threads(options.threads)
    run = open_run(options.run, find_device(options.device))
    opened = open_run_graph(run, options.dataset, options.graph, options.data_root)
    print_note(opened.note)
    graph = opened.graph
    labels = model_labels(run.saved, graph)
    split = _split(options.split, graph)
    picture = options.out or run.folder / f"confusion-{split}.png"
    check_figure(picture)
    numbers = picture.with_name(f"evaluation-{split}.json")
    outputs = predict(run.saved.model, graph, propagation=run.saved.propagation)
    scores = {
        name: score(outputs[graph.split(name)], labels[graph.split(name)])
        for name in SPLITS
        if len(graph.split(name))
    }
    nodes = graph.split(split)
    classes = run.saved.classes or [str(i) for i in range(outputs.shape[1])]
    by_class = class_scores(outputs[nodes], labels[nodes])
    for name, value in scores.items():
        count = len(graph.split(name))
        nodes_text = "1 node" if count == 1 else f"{count:,} nodes"
        print(f"{name:<5}  {score_name(labels)} {value:.4f}  ({nodes_text})")
    Console().print(_table(classes, by_class, split))
    title = f"{run.folder.name}: {split} nodes"
    if run.saved.multilabel:
        draw_class_scores(by_class, classes, picture, title)
        matrix = None
    else:
        matrix = confusion(outputs[nodes], labels[nodes])
        draw_confusion(matrix, classes, picture, title)
    _write(numbers, score_name(labels), scores, split, classes, by_class, matrix)
    print(f"picture: {picture}\nnumbers: {numbers}")


def _split(asked: str | None, graph: Graph) -> str:
    """The split to look at closely: the one asked for, or the first there is."""
    present = [name for name in ("test", "val", "train") if len(graph.split(name))]
    if asked is not None and asked not in present:
        raise ValueError(f"--split: the graph has no {asked} nodes")
    if not present:
        raise ValueError("the graph has no split to score the model on")
    return asked or present[0]


def _table(classes: list[str], scores: ClassScores, split: str) -> Table:
    """The largest classes, and how many more there are."""
    shown = main_classes(scores)
    table = text_table(
        f"{split} nodes, class by class (macro-F1 {scores.macro_f1:.4f})",
        ("class", *CLASS_COLUMNS),
        [(classes[place], *class_row(scores, place)) for place in shown],
    )
    if len(shown) < len(classes):
        table.caption = f"the {len(shown)} largest of {len(classes)} classes"
    return table


def _write(
    path: Path,
    metric: str,
    scores: dict[str, float],
    split: str,
    classes: list[str],
    by_class: ClassScores,
    matrix: Tensor | None,
) -> None:
    def known(values: Tensor) -> list[float | None]:
        return [None if math.isnan(value) else value for value in values.tolist()]

    numbers: dict[str, Any] = {
        "metric": metric,
        "scores": scores,
        "split": split,
        "macro_f1": by_class.macro_f1,
        "classes": classes,
        "precision": known(by_class.precision),
        "recall": known(by_class.recall),
        "f1": known(by_class.f1),
        "support": by_class.support.tolist(),
        "predicted": by_class.predicted.tolist(),
        "confusion": None if matrix is None else matrix.tolist(),
    }
    path.write_text(json.dumps(numbers, indent=2) + "\n", encoding="utf-8")
