"""Targets y: classes, several classes per node, or numbers, each with some unknown."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from math import isnan
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import assert_all_finite, check_array
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import column_or_1d

from vrgcn.graph.graph import Graph
from vrgcn.tasks import find_task


@dataclass(frozen=True)
class Target:
    """values: (rows,) classes or numbers, or (rows, classes) of 0 and 1; anything where unknown
    known: (rows,) whether a row's is
    """

    values: NDArray[Any]
    known: NDArray[np.bool_]

    @property
    def several(self) -> bool:
        return self.values.ndim == 2


def target_of_graph(graph: Graph) -> Target:
    """The labels that a graph has, classes under their names."""
    if graph.labels is None:
        raise ValueError("the graph has no labels: give y")
    values, known = graph.labels.numpy(), graph.labelled.numpy()
    task = find_task(graph.task)
    if task.has_classes and not task.several and graph.names.classes is not None:
        values = np.array(graph.names.classes)[values]  # of -1 the last: not known anyway
    return Target(values, known)


def read_classes(y: Any, unlabeled: Any) -> Target:
    """y: (rows,) of any classes, or (rows, classes) of 0 and 1. None and NaN are unknown, and what
    equals `unlabeled`; of several classes a whole row of it."""
    values = as_column(y)
    if values.dtype.kind == "U" and unlabeled != "nan" and (values == "nan").any():
        raise ValueError(
            'y has the text "nan", which NumPy makes of NaN among texts: where a label is unknown '
            "give None, in an array of dtype=object; if it is a class, give y.astype(object)"
        )
    known = ~_missing(values)
    if unlabeled is not None:
        known &= ~_equal(values, unlabeled)
    if values.ndim == 2:
        known = np.any(known, axis=1)
    told = values[known]
    if told.dtype == object and len(told):
        _check_alike(told)
        told = np.array(told.tolist())  # of numbers with None among them, numbers
    if told.dtype.kind in "fc":
        assert_all_finite(told, input_name="y")
    if len(told):
        check_classification_targets(told)
    if values.ndim == 2 and not np.isin(told, (0, 1)).all():
        raise ValueError("y of several classes per row must be 0 or 1 (a row of NaN where unknown)")
    if len(told) and unlabeled is not None and not known.all() and values.ndim == 1:
        _check_not_a_class(told, values, unlabeled)
    filled = np.zeros(values.shape, told.dtype)
    filled[known] = told
    return Target(filled, known)


def _check_alike(told: NDArray[Any]) -> None:
    """Classes come back as they were given: of texts and numbers, NumPy would make texts."""
    texts = [isinstance(value, str) for value in told.flat]
    if any(texts) and not all(texts):
        text, other = told.flat[texts.index(True)], told.flat[texts.index(False)]
        raise ValueError(
            f"y mixes texts, such as {text!r}, and {other!r}: give classes of one kind"
        )


def _check_not_a_class(told: NDArray[Any], values: NDArray[Any], unlabeled: Any) -> None:
    """One class beside -1 is most likely a class beside a class."""
    if _equal(values, unlabeled).any() and (told == told[0]).all():
        raise ValueError(
            f"y has only one class, {told[0]!s}, beside {unlabeled!r}, which stands for unknown: "
            f"if {unlabeled!r} is a class, give unlabeled=None"
        )


def read_numbers(y: Any) -> Target:
    """y: (rows,) numbers, NaN or None where unknown."""
    values = as_column(y)
    if values.ndim != 1:
        raise ValueError(f"y must be one number per row, (rows,), not {values.shape}")
    missing = _missing(values)
    numbers = np.full(values.shape, np.nan)
    numbers[~missing] = values[~missing].astype(np.float64)
    assert_all_finite(numbers[~missing], input_name="y")
    return Target(numbers, ~missing)


def as_column(y: Any) -> NDArray[Any]:
    """y as an array, (rows, 1) as (rows,) with scikit-learn's warning."""
    if hasattr(y, "tocsr"):
        y = y.toarray()
    values = np.asarray(y)
    if values.dtype.kind == "U" and not hasattr(y, "dtype"):
        # Of a list, NumPy would write NaN and -1 among texts as texts, and these were classes.
        values = np.asarray(y, dtype=object)
    if values.ndim == 2 and values.shape[1] > 1:
        return check_array(values, dtype=None, ensure_all_finite="allow-nan", input_name="y")
    column: NDArray[Any] = column_or_1d(values, warn=True)
    return column.copy()


def _missing(values: NDArray[Any]) -> NDArray[np.bool_]:
    if values.dtype.kind == "f":
        return np.isnan(values)
    if values.dtype != object:
        return np.zeros(values.shape, np.bool_)
    pandas = sys.modules.get("pandas")  # whose NA equals nothing and is not false either
    if pandas is not None:
        return np.asarray(pandas.isna(values))
    flat = [value is None or (isinstance(value, float) and isnan(value)) for value in values.flat]
    return np.array(flat, np.bool_).reshape(values.shape)


def _equal(values: NDArray[Any], one: Any) -> NDArray[np.bool_]:
    """Mask of the values that equal `one`. Among texts the text of `one` counts, for NumPy makes
    "-1" of a -1 that is set among texts; values that cannot be compared differ."""
    if values.dtype.kind == "U" and isinstance(one, int | float | np.number):
        return np.asarray(values == str(one))
    numbers = values.dtype.kind in "biuf"
    if values.dtype != object and numbers != isinstance(one, int | float | np.number):
        return np.zeros(values.shape, np.bool_)
    if values.dtype == object:
        flat = [
            value is not None and type(value) is not bool and _same(value, one)
            for value in values.flat
        ]
        return np.array(flat, np.bool_).reshape(values.shape)
    return np.asarray(values == one)


def _same(value: Any, one: Any) -> bool:
    try:
        return bool(value == one)
    except TypeError:  # pandas' NA
        return False
