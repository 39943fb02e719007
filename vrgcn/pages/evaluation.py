"""Scores of a model on each split, and on each class: a page or pictures, and a file."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import torch
from rich.table import Table
from torch import Tensor

from vrgcn.files.mistakes import InputError
from vrgcn.files.setting_names import setting
from vrgcn.files.wording import counted, printable
from vrgcn.files.writing import FIGURES, PAGES, write_text
from vrgcn.graph.graph import Graph
from vrgcn.graph.validation import SPLITS
from vrgcn.pages.figures import (
    MOST_CLASSES,
    check_figure,
    class_scores_figure,
    confusion_figure,
    predicted_figure,
    reliability_axes,
    reliability_figure,
    save_figure,
)
from vrgcn.pages.page import Page
from vrgcn.pages.panels import Panel, show_panels
from vrgcn.pages.terminal import print_table, text_table
from vrgcn.pages.trust import Trust, trust_of
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
    files: the page or the pictures, and the file of numbers
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


class _Sheet:
    """What is shown of scores: lines and tables on the terminal, a page, and pictures."""

    def __init__(self, title: str) -> None:
        self.lines: list[str | Table] = []
        self.page = Page(title)
        self.pictures: list[Any] = []

    def write(self, path: Path) -> list[Path]:
        """Write the page; or the pictures if `path` is one, the others beside it."""
        if path.suffix in PAGES:
            self.page.write(path)
            return [path]
        others = [path.with_name(f"reliability-{path.stem}{path.suffix}")]
        written = [path, *others][: len(self.pictures)]
        for picture, file in zip(self.pictures, written, strict=True):
            save_figure(picture, file)
        return written


def evaluate_nodes(
    run: Run, graph: Graph, outputs: Tensor, labels: Tensor, *, split: str | None, out: Path | None
) -> Evaluation:
    """Score a model on a graph's nodes; write a page, or pictures, and the numbers beside it.

    outputs, labels: of all nodes of the graph
    split: the split to show in detail; None: test, else val, else train
    out: the page or the picture; None: a page in the run's folder
    """
    split = find_split(split, graph)
    path = find_page(out, run, split)
    # Beside a file that the user named, under its name: pages of several runs may share a folder.
    numbers = path.with_name(f"evaluation-{split if out is None else path.stem}.json")
    task = find_task(run.saved.task)
    metric = task.find_metric(run.config.get("metric"))
    evaluated = _Evaluated(run, graph, outputs, labels, split, metric)
    show = _show_classes if task.has_classes else _show_numbers
    scores = {"metric": metric.title, "scores": _known(evaluated.by_split(metric)), "split": split}
    sheet = _Sheet(evaluated.title)
    scores |= show(evaluated, sheet)
    _show_trust(evaluated, scores, sheet)
    write_text(numbers, json.dumps(scores, indent=2) + "\n")
    files = sheet.write(path)
    sheet.lines += [
        f"{'page' if file.suffix in PAGES else 'picture'}: {printable(file)}" for file in files
    ]
    sheet.lines.append(f"numbers: {printable(numbers)}")
    return Evaluation(scores, [*files, numbers], sheet.lines)


def find_page(out: Path | None, run: Run, split: str) -> Path:
    """Return the path of the page or picture; raise if it could not be drawn."""
    path = out or run.folder / f"evaluation-{split}.html"
    check_figure(path, (*PAGES, *FIGURES))
    return path


def _show_numbers(evaluated: _Evaluated, sheet: _Sheet) -> dict[str, Any]:
    """Show RMSE, MAE and R2 of every split, and draw one split; return the entries of the file."""
    metrics = {name: METRICS[name] for name in find_task(evaluated.run.saved.task).metrics}
    scores = {name: evaluated.by_split(metric) for name, metric in metrics.items()}
    _show_splits(evaluated.graph, {metrics[name]: own for name, own in scores.items()}, sheet)
    outputs, labels = evaluated.of_split()
    picture = predicted_figure(outputs[:, 0], labels, evaluated.title)
    sheet.pictures.append(picture)
    sheet.page.figure(picture, f"{evaluated.split} nodes: predicted and actual numbers")
    return {name: _known(by_split) for name, by_split in scores.items()}


def _show_classes(evaluated: _Evaluated, sheet: _Sheet) -> dict[str, Any]:
    """Show the score of every split and of each class in one of them, and draw it; return the
    entries of the file."""
    metric, saved = evaluated.metric, evaluated.run.saved
    outputs, labels = evaluated.of_split()
    classes = saved.classes or [str(i) for i in range(outputs.shape[1])]
    by_class = class_scores(outputs, labels)
    roc_auc = METRICS["roc-auc"].compute(outputs, labels)
    _show_splits(evaluated.graph, {metric: evaluated.by_split(metric)}, sheet)
    table = _table(classes, by_class, roc_auc, evaluated.split)
    sheet.lines.append(table)
    sheet.page.heading("Classes")
    rows = [[classes[place], *class_row(by_class, place)] for place in range(len(classes))]
    sheet.page.table(["class", *CLASS_COLUMNS], rows, caption=str(table.title))
    matrix: dict[str, Any] = {"confusion": None}
    if find_task(saved.task).several:
        sheet.pictures.append(class_scores_figure(by_class, classes, evaluated.title))
        sheet.page.figure(sheet.pictures[0], "precision and recall of each class")
    else:
        counts = confusion(outputs, labels)
        sheet.pictures.append(confusion_figure(counts, classes, evaluated.title))
        show_matrix(sheet.page, counts, by_class, classes, evaluated.split)
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


def show_matrix(
    page: Page, counts: Tensor, scores: ClassScores, classes: Sequence[str], split: str
) -> None:
    """Show a confusion matrix on a page; with many classes, that of the largest."""
    shown = main_classes(scores)
    caption = f"Confusion matrix: {split} nodes, a row for each true class"
    if len(shown) < len(classes):
        caption += f"; the {len(shown)} largest of {len(classes)} classes"
    chosen = torch.tensor(shown)
    totals = counts.sum(1)[chosen].tolist()
    cells = counts[chosen][:, chosen].tolist()
    page.matrix([classes[place] for place in shown], cells, totals, caption)


def _show_trust(evaluated: _Evaluated, found: dict[str, Any], sheet: _Sheet) -> None:
    """Show what the model's calibration does on the split, draw its reliability, and add both to
    the entries of the file.

    Validation nodes are left out: the calibration was fitted on them.
    """
    nodes = evaluated.graph.split(evaluated.split)
    saved = evaluated.run.saved
    trust = trust_of(saved, evaluated.graph, evaluated.outputs, evaluated.labels, nodes)
    if trust is None:
        if saved.calibration is not None:
            sheet.lines.append(
                "no calibration is shown: it was fitted on these nodes; choose the test nodes"
            )
        return
    found["trust"] = trust.as_dict()
    sheet.lines += trust.lines(evaluated.split)
    if trust.groups:
        rows = [group.row for group in trust.groups]
        title = f"coverage of {evaluated.split} nodes (promised: {trust.promised:.0%})"
        sheet.lines.append(text_table(title, ("nodes", "count", "coverage", "size"), rows))
    sheet.page.heading("Probabilities")
    show_trust(sheet.page, {"": trust}, evaluated.split)
    if trust.reliability is not None and trust.plain is not None:
        picture = reliability_figure(trust.reliability, trust.plain, evaluated.title)
        sheet.pictures.append(picture)


def show_trust(page: Page, scored: Mapping[str, Trust | None], split: str) -> None:
    """Show the reliability of each calibrated run, and the coverage of its sets or intervals.

    scored: by the names of runs, "" for the only one
    """
    trusted = {
        f"{label}: " if label else "": trust for label, trust in scored.items() if trust is not None
    }
    for label, trust in trusted.items():
        page.text(f"{label}{'; '.join(trust.lines(split))}")
    panels = [
        Panel(
            f"{label}reliability on the {split} nodes",
            partial(reliability_axes, held=trust.reliability, plain=trust.plain),
        )
        for label, trust in trusted.items()
        if trust.reliability is not None and trust.plain is not None
    ]
    if panels:
        show_panels(page, panels)
    for label, trust in trusted.items():
        if trust.groups:
            caption = f"{label}coverage of {split} nodes (promised: {trust.promised:.0%})"
            rows = [group.row for group in trust.groups]
            page.table(["nodes", "count", "coverage", "size"], rows, caption=caption)


def _matrix(counts: Tensor) -> dict[str, Any]:
    """Return the confusion matrix for the file. With many classes, whose matrix is millions of
    zeros, only its other entries."""
    if len(counts) <= MOST_CLASSES:
        return {"confusion": counts.tolist()}
    pairs = counts.nonzero()
    entries = torch.cat([pairs, counts[pairs[:, 0], pairs[:, 1]][:, None]], dim=1)
    return {"confusion": None, "confusion_pairs": entries.tolist()}


def _show_splits(graph: Graph, scores: dict[LabelMetric, dict[str, float]], sheet: _Sheet) -> None:
    """Show the scores of each split, and the number of its nodes."""
    rows = []
    for name in next(iter(scores.values())):
        texts = [metric.text(by_split[name]) for metric, by_split in scores.items()]
        count = len(graph.split(name))
        named = zip(scores, texts, strict=True)
        line = "  ".join(f"{metric.title} {text}" for metric, text in named)
        sheet.lines.append(f"{name:<5}  {line}  ({counted(count, 'node')})")
        rows.append([name, *texts, f"{count:,}"])
    titles = [metric.title for metric in scores]
    sheet.page.table(["split", *titles, "nodes"], rows)


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
