"""Scores of each class as rows of a table."""

from __future__ import annotations

import math

from torch import Tensor

from vrgcn.tasks.metrics import ClassScores

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
    return [*(_number(v[place]) for v in shares), *(f"{int(v[place]):,}" for v in counts)]


def _number(value: Tensor) -> str:
    return "–" if math.isnan(value) else f"{float(value):.3f}"
