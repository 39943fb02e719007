"""Scores of a model on each split, and on each class: tables, a picture, a file."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from rich.table import Table
from torch import Tensor

from vrgcn.files.mistakes import InputError
from vrgcn.files.setting_names import setting
from vrgcn.files.wording import counted, printable
from vrgcn.files.writing import write_text
from vrgcn.graph.graph import Graph
from vrgcn.graph.validation import SPLITS
from vrgcn.pages.figures import (
    MOST_CLASSES,
    check_figure,
    draw_class_scores,
    draw_confusion,
    draw_predicted,
    draw_reliability,
)
from vrgcn.pages.terminal import print_table, text_table
from vrgcn.pages.trust import trust_of
from vrgcn.runs.run import Run
from vrgcn.tasks import find_task
from vrgcn.tasks.metrics import METRICS, ClassScores, LabelMetric, class_scores, confusion

CLASS_COLUMNS = ("precision", "recall", "F1", "support", "predicted")
_MOST_ROWS = 25


def main_classes(scores: ClassScores) -> list[int]:
    """Return all classes if they are few, else the largest of those present or predicted."""
    count = len(scores.support)
    if count <= _MOST_ROWS:
        return list(range(count))
    order = scores.support.argsort(descending=True, stable=True).tolist()
    return [c for c in order if scores.support[c] or scores.predicted[c]][:_MOST_ROWS]


def class_row(scores: ClassScores, place: int) -> list[str]:
    """Return a class's numbers as text, for `CLASS_COLUMNS`."""
    shares = (scores.precision, scores.recall, scores.f1)
    counts = (scores.support, scores.predicted)
    return [*(_score_text(v[place]) for v in shares), *(f"{int(v[place]):,}" for v in counts)]


def _score_text(value: Tensor) -> str:
    return "–" if math.isnan(value) else f"{float(value):.3f}"


@dataclass(frozen=True)
class Evaluation:
    """Scores of a model on a graph.

    scores: everything that the file of numbers has, by name
    files: the pictures, and the file of numbers
    shown: lines and tables for people
    """

    scores: Mapping[str, Any]
    files: Sequence[Path]
    shown: Sequence[str | Table]

    def print(self) -> None:
        """Print the lines and tables."""
        for each in self.shown:
            if isinstance(each, str):
                print(each)
            else:
                print_table(each)


@dataclass(frozen=True)
class _Evaluated:
    """A model's outputs on a graph.

    outputs, labels: of all nodes; split: the one to show in detail; metric: the run's own
    """

    run: Run
    graph: Graph
    outputs: Tensor
    labels: Tensor
    split: str
    metric: LabelMetric

    def by_split(self, metric: LabelMetric) -> dict[str, float]:
        """Return the score of each split that has nodes."""
        nodes = {name: self.graph.split(name) for name in SPLITS}
        return {
            name: metric.compute(self.outputs[ids], self.labels[ids])
            for name, ids in nodes.items()
            if len(ids)
        }

    def of_split(self) -> tuple[Tensor, Tensor]:
        """Return outputs and labels of the split to show in detail."""
        nodes = self.graph.split(self.split)
        return self.outputs[nodes], self.labels[nodes]

    @property
    def title(self) -> str:
        folder = self.run.folder.absolute()  # "." has no name
        return f"{folder.name}: {self.split} nodes"


def evaluate_nodes(
    run: Run, graph: Graph, outputs: Tensor, labels: Tensor, *, split: str | None, out: Path | None
) -> Evaluation:
    """Score a model on a graph's nodes, draw the picture, and write the numbers beside it.

    outputs, labels: of all nodes of the graph
    split: the split to show in detail; None: test, else val, else train
    out: the picture; None: in the run's folder
    """
    split = find_split(split, graph)
    picture = find_picture(out, run, split)
    # Beside a picture that the user named, under its name: pictures of several runs may share a
    # folder.
    name = split if out is None else picture.stem
    numbers = picture.with_name(f"evaluation-{name}.json")
    task = find_task(run.saved.task)
    metric = task.find_metric(run.config.get("metric"))
    evaluated = _Evaluated(run, graph, outputs, labels, split, metric)
    show = _show_classes if task.has_classes else _show_numbers
    scores = {"metric": metric.title, "scores": _known(evaluated.by_split(metric)), "split": split}
    shown: list[str | Table] = []
    scores |= show(evaluated, picture, shown)
    curve = picture.with_name(f"reliability-{name}{picture.suffix}")
    pictures = [picture, *_show_trust(evaluated, curve, scores, shown)]
    write_text(numbers, json.dumps(scores, indent=2) + "\n")
    shown += [f"picture: {printable(path)}" for path in pictures]
    shown.append(f"numbers: {printable(numbers)}")
    return Evaluation(scores, [*pictures, numbers], shown)


def find_picture(out: Path | None, run: Run, split: str) -> Path:
    """Return the path of the picture; raise if none could be drawn."""
    kind = "confusion" if find_task(run.saved.task).has_classes else "predicted"
    picture = out or run.folder / f"{kind}-{split}.png"
    check_figure(picture)
    return picture


def _show_numbers(evaluated: _Evaluated, picture: Path, shown: list[str | Table]) -> dict[str, Any]:
    """Show RMSE, MAE and R2 of every split, and draw one split; return the entries of the file."""
    metrics = {name: METRICS[name] for name in find_task(evaluated.run.saved.task).metrics}
    scores = {name: evaluated.by_split(metric) for name, metric in metrics.items()}
    by_metric = {metrics[name]: by_split for name, by_split in scores.items()}
    shown += _lines_of_splits(evaluated.graph, by_metric)
    outputs, labels = evaluated.of_split()
    draw_predicted(outputs[:, 0], labels, picture, evaluated.title)
    return {name: _known(by_split) for name, by_split in scores.items()}


def _show_classes(evaluated: _Evaluated, picture: Path, shown: list[str | Table]) -> dict[str, Any]:
    """Show the score of every split and of each class in one of them, and draw it; return the
    entries of the file."""
    metric, saved = evaluated.metric, evaluated.run.saved
    outputs, labels = evaluated.of_split()
    classes = saved.classes or [str(i) for i in range(outputs.shape[1])]
    by_class = class_scores(outputs, labels)
    roc_auc = METRICS["roc-auc"].compute(outputs, labels)
    shown += _lines_of_splits(evaluated.graph, {metric: evaluated.by_split(metric)})
    shown.append(_table(classes, by_class, roc_auc, evaluated.split))
    matrix: dict[str, Any] = {"confusion": None}
    if find_task(saved.task).several:
        draw_class_scores(by_class, classes, picture, evaluated.title)
    else:
        counts = confusion(outputs, labels)
        draw_confusion(counts, classes, picture, evaluated.title)
        matrix = _matrix(counts)
    return {
        "macro_f1": by_class.macro_f1,
        "roc_auc": _number(roc_auc),
        "average_precision": _number(METRICS["average-precision"].compute(outputs, labels)),
        "classes": classes,
        "precision": [_number(value) for value in by_class.precision.tolist()],
        "recall": [_number(value) for value in by_class.recall.tolist()],
        "f1": [_number(value) for value in by_class.f1.tolist()],
        "support": by_class.support.tolist(),
        "predicted": by_class.predicted.tolist(),
        **matrix,
    }


def _show_trust(
    evaluated: _Evaluated, picture: Path, found: dict[str, Any], shown: list[str | Table]
) -> list[Path]:
    """Show what the model's calibration does on the split, draw its reliability, and add both to
    the entries of the file; return the pictures.

    Validation nodes are left out: the calibration was fitted on them.
    """
    nodes = evaluated.graph.split(evaluated.split)
    saved = evaluated.run.saved
    trust = trust_of(saved, evaluated.graph, evaluated.outputs, evaluated.labels, nodes)
    if trust is None:
        if saved.calibration is not None:
            shown.append(
                "no calibration is shown: it was fitted on these nodes; choose the test nodes"
            )
        return []
    found["trust"] = trust.as_dict()
    shown += trust.lines(evaluated.split)
    if trust.groups:
        rows = [group.row for group in trust.groups]
        title = f"coverage of {evaluated.split} nodes (promised: {trust.promised:.0%})"
        shown.append(text_table(title, ("nodes", "count", "coverage", "size"), rows))
    if trust.reliability is None or trust.plain is None:
        return []
    draw_reliability(trust.reliability, trust.plain, picture, evaluated.title)
    return [picture]


def _matrix(counts: Tensor) -> dict[str, Any]:
    """Return the confusion matrix for the file. With many classes, whose matrix is millions of
    zeros, only its other entries."""
    if len(counts) <= MOST_CLASSES:
        return {"confusion": counts.tolist()}
    pairs = counts.nonzero()
    entries = torch.cat([pairs, counts[pairs[:, 0], pairs[:, 1]][:, None]], dim=1)
    return {"confusion": None, "confusion_pairs": entries.tolist()}


def _lines_of_splits(graph: Graph, scores: dict[LabelMetric, dict[str, float]]) -> list[str]:
    """Return a line for each split: the scores, and the number of nodes."""
    lines = []
    for name in next(iter(scores.values())):
        texts = [
            f"{metric.title} {metric.text(by_split[name])}" for metric, by_split in scores.items()
        ]
        count = counted(len(graph.split(name)), "node")
        lines.append(f"{name:<5}  {'  '.join(texts)}  ({count})")
    return lines


def find_split(asked: str | None, graph: Graph) -> str:
    """Return the split to show in detail: the requested one, or the first that has nodes."""
    present = [name for name in ("test", "val", "train") if len(graph.split(name))]
    if asked is not None and asked not in present:
        raise InputError(f"{setting('split')}: the graph has no {asked} nodes")
    if not present:
        raise InputError("the graph has no split to score the model on")
    return asked or present[0]


def _table(classes: list[str], scores: ClassScores, roc_auc: float, split: str) -> Table:
    """Return a table of the largest classes, and how many more there are."""
    shown = main_classes(scores)
    total = f"macro-F1 {scores.macro_f1:.4f}"
    if not math.isnan(roc_auc):
        total += f", ROC-AUC {roc_auc:.4f}"
    table = text_table(
        f"{split} nodes, class by class ({total})",
        ("class", *CLASS_COLUMNS),
        [(classes[place], *class_row(scores, place)) for place in shown],
    )
    if len(shown) < len(classes):
        table.caption = f"the {len(shown)} largest of {len(classes)} classes"
    return table


def _known(scores: dict[str, float]) -> dict[str, float | None]:
    return {name: _number(value) for name, value in scores.items()}


def _number(value: float) -> float | None:
    """Return None for NaN, which JSON does not have."""
    return None if math.isnan(value) else value
