"""Scores by name, and scores class by class. A task names the scores that are possible for it.

Outputs are those of a model, (nodes, classes), or (nodes, 1) for numbers. Labels are as a graph has
them: (nodes,) classes, (nodes, classes) of 0 and 1, or (nodes,) floating point.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field

import torch
import torch.nn.functional as F
from torch import Tensor

from vrgcn.tasks.spread import number_text


@dataclass(frozen=True)
class Metric:
    """The title of a score, and which score is better.

    title: the printed name
    error: True if it is an error in the labels' unit, and smaller is better; otherwise it is at
        most 1
    """

    title: str
    error: bool = field(default=False, kw_only=True)

    def better(self, score: float, other: float) -> bool:
        """Return True if a score is better than another; any score is better than NaN."""
        if math.isnan(other):
            return not math.isnan(score)
        return score < other if self.error else score > other

    def text(self, score: float) -> str:
        """Format a score."""
        if math.isnan(score):
            return "–"
        return number_text(score) if self.error else f"{score:.4f}"


@dataclass(frozen=True)
class LabelMetric(Metric):
    """A score that is computed from outputs and labels.

    compute: (outputs, labels) -> score; NaN if the labels of these nodes allow none
    needs: the condition on labels for a score to exist, for errors
    """

    compute: Callable[[Tensor, Tensor], float]
    needs: str = field(default="", kw_only=True)


def accuracy(outputs: Tensor, labels: Tensor) -> float:
    """Share of nodes whose largest output is that of their class."""
    return float((outputs.argmax(1) == labels).double().mean())


def micro_f1(outputs: Tensor, labels: Tensor) -> float:
    """F1 over all pairs of a node and a class; with one class per node this is the accuracy."""
    if labels.dim() == 1:
        return accuracy(outputs, labels)
    predicted, actual = outputs > 0, labels > 0
    hits = int((predicted & actual).sum())
    total = int(predicted.sum()) + int(actual.sum())
    return 2 * hits / total if total else 0.0


def macro_f1(outputs: Tensor, labels: Tensor) -> float:
    """Mean F1 over the classes that are present or predicted."""
    return class_scores(outputs, labels).macro_f1


def roc_auc(outputs: Tensor, labels: Tensor) -> float:
    """Probability that a node of a class has a larger output for it than a node of another class;
    ties count half. The mean over the classes that some nodes have and others do not.

    With one class per node, the outputs are compared after the softmax.
    """
    return _mean_over_classes(auc_of, *_compared(outputs, labels))


def average_precision(outputs: Tensor, labels: Tensor) -> float:
    """Mean over the nodes of a class of the precision among the nodes whose output for it is at
    least as large: of the second of two classes, else the mean over the classes that nodes have.

    With one class per node, the outputs are compared after the softmax.
    """
    scores, actual = _compared(outputs, labels)
    if labels.dim() == 1 and outputs.shape[1] == 2:
        scores, actual = scores[:, 1:], actual[:, 1:]
    return _mean_over_classes(precision_of, scores, actual)


def auc_of(true: Tensor, false: Tensor) -> float:
    """Probability that a true score is above a false one, where equal ones count half; NaN if
    there are none of either."""
    ordered = false.sort().values
    below = torch.searchsorted(ordered, true)
    below += torch.searchsorted(ordered, true, right=True)
    compared = 2 * len(true) * len(false)
    return float(below.double().sum() / compared) if compared else math.nan


def precision_of(true: Tensor, false: Tensor) -> float:
    """Mean over the true scores of the share of true ones among all at least as high; NaN if there
    are none."""
    up, down = true.sort().values, false.sort().values
    hits = len(true) - torch.searchsorted(up, true)
    others = len(false) - torch.searchsorted(down, true)
    return float((hits / (hits + others).double()).mean())


def _compared(outputs: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
    """Outputs that can be compared between nodes, and which nodes have each class."""
    scores = outputs.double()
    actual = _members(labels, outputs.shape[1])
    return scores.softmax(1) if labels.dim() == 1 else scores, actual


def _mean_over_classes(
    compare: Callable[[Tensor, Tensor], float], scores: Tensor, actual: Tensor
) -> float:
    """The mean over classes of the comparison of nodes of the class with others, NaN left out."""
    columns = zip(scores.T.contiguous(), actual.T, strict=True)
    found = [compare(column[here], column[~here]) for column, here in columns]
    return float(torch.tensor(found, dtype=torch.float64).nanmean())


def rmse(outputs: Tensor, labels: Tensor) -> float:
    """Root of the mean squared error, in the unit of the labels."""
    return math.sqrt(_errors(outputs, labels).square().mean())


def mae(outputs: Tensor, labels: Tensor) -> float:
    """Mean absolute error, in the unit of the labels."""
    return float(_errors(outputs, labels).abs().mean())


def r2(outputs: Tensor, labels: Tensor) -> float:
    """1 - (squared error) / (squared error of the labels' mean)."""
    spread = float((labels - labels.mean()).double().square().sum())
    error = float(_errors(outputs, labels).square().sum())
    return 1 - error / spread if spread else math.nan


def _errors(outputs: Tensor, labels: Tensor) -> Tensor:
    return outputs[:, 0].double() - labels.double()


METRICS: dict[str, LabelMetric] = {
    "accuracy": LabelMetric("accuracy", accuracy),
    "micro-f1": LabelMetric("micro-F1", micro_f1),
    "macro-f1": LabelMetric("macro-F1", macro_f1),
    "roc-auc": LabelMetric(
        "ROC-AUC", roc_auc, needs="a class that some of them have and others do not"
    ),
    "average-precision": LabelMetric(
        "average precision", average_precision, needs="a class that some of them have"
    ),
    "rmse": LabelMetric("RMSE", rmse, error=True),
    "mae": LabelMetric("MAE", mae, error=True),
    "r2": LabelMetric("R2", r2, needs="labels that are not all the same"),
}


def titled_metric(title: str) -> LabelMetric | None:
    """Return the metric with this title; None if there is none."""
    return next((metric for metric in METRICS.values() if metric.title == title), None)


@dataclass(frozen=True)
class ClassScores:
    """Scores of each class, (classes,): precision and recall (NaN if there is nothing to divide
    by), support (number of nodes that have it) and predicted (number of nodes it was predicted
    for)."""

    precision: Tensor
    recall: Tensor
    support: Tensor
    predicted: Tensor

    @property
    def f1(self) -> Tensor:
        """Harmonic mean of precision and recall; 0 for a class that was never predicted correctly,
        NaN for one that is neither present nor predicted."""
        hits = torch.nan_to_num(self.recall) * self.support
        return 2 * hits / (self.support + self.predicted)

    @property
    def macro_f1(self) -> float:
        """Mean F1 over the classes that are present or predicted."""
        return float(self.f1.nanmean())


def class_scores(outputs: Tensor, labels: Tensor) -> ClassScores:
    """Return scores class by class, for labels (nodes,) or (nodes, classes)."""
    classes = outputs.shape[1]
    predicted = _members(outputs.argmax(1) if labels.dim() == 1 else outputs, classes)
    actual = _members(labels, classes)
    hits = (predicted & actual).sum(0)
    given, support = predicted.sum(0), actual.sum(0)
    return ClassScores(hits / given, hits / support, support, given)


def _members(labels: Tensor, classes: int) -> Tensor:
    """Return the classes of each node, (nodes, classes) bool, from classes (nodes,) or from the
    entries above 0."""
    return F.one_hot(labels, classes) > 0 if labels.dim() == 1 else labels > 0


def confusion(outputs: Tensor, labels: Tensor) -> Tensor:
    """Return the confusion matrix (classes, classes): the number of nodes of the row's class that
    were predicted as the column's."""
    classes = outputs.shape[1]
    pairs = labels * classes + outputs.argmax(1)
    return torch.bincount(pairs, minlength=classes * classes).view(classes, classes)
