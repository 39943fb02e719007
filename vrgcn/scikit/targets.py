"""Targets y: classes, several classes per node, or numbers, some of which may be unknown."""

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

from vrgcn.files.mistakes import InputError
from vrgcn.graph.graph import Graph
from vrgcn.tasks import find_task


@dataclass(frozen=True)
class RowLabels:
    """The labels of rows.

    values: (rows,) classes or numbers, or (rows, classes) of 0 and 1; arbitrary where unknown
    known: (rows,) True if the label is known
    """

    values: NDArray[Any]
    known: NDArray[np.bool_]

    @property
    def several(self) -> bool:
        return self.values.ndim == 2


def target_of_graph(graph: Graph) -> RowLabels:
    """Return the labels of a graph, with classes as their names."""
    if graph.labels is None:
        raise InputError("the graph has no labels: give y")
    values, known = graph.labels.numpy(), graph.labelled.numpy()
    task = find_task(graph.task)
    if task.has_classes and not task.several and graph.names.classes is not None:
        values = np.array(graph.names.classes)[values]  # -1 picks the last name: unknown anyway
    return RowLabels(values, known)


def read_classes(y: Any, unlabeled: Any) -> RowLabels:
    """Convert y to classes.

    y: (rows,) of any classes, or (rows, classes) of 0 and 1. None, NaN and values equal to
        `unlabeled` are unknown; for several classes, a whole row of them.
    """
    values = as_column(y)
    if values.dtype.kind == "U" and unlabeled != "nan" and (values == "nan").any():
        raise InputError(
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
        told = np.array(told.tolist())  # numbers with None among them become numbers
    if told.dtype.kind in "fc":
        assert_all_finite(told, input_name="y")
    if len(told):
        check_classification_targets(told)
    if values.ndim == 2 and not np.isin(told, (0, 1)).all():
        raise InputError("y of several classes per row must be 0 or 1 (a row of NaN where unknown)")
    if len(told) and unlabeled is not None and not known.all() and values.ndim == 1:
        _check_not_a_class(told, values, unlabeled)
    filled = np.zeros(values.shape, told.dtype)
    filled[known] = told
    return RowLabels(filled, known)


def _check_alike(told: NDArray[Any]) -> None:
    """Raise if classes mix texts and numbers: NumPy would turn all into texts, and predictions
    would differ from the given classes."""
    texts = [isinstance(value, str) for value in told.flat]
    if any(texts) and not all(texts):
        text, other = told.flat[texts.index(True)], told.flat[texts.index(False)]
        raise InputError(
            f"y mixes texts, such as {text!r}, and {other!r}: give classes of one kind"
        )


def _check_not_a_class(told: NDArray[Any], values: NDArray[Any], unlabeled: Any) -> None:
    """Raise if there is one class beside -1, which is then most likely a class too."""
    if _equal(values, unlabeled).any() and (told == told[0]).all():
        raise InputError(
            f"y has only one class, {told[0]!s}, beside {unlabeled!r}, which stands for unknown: "
            f"if {unlabeled!r} is a class, give unlabeled=None"
        )


def read_numbers(y: Any) -> RowLabels:
    """Convert y to numbers. y: (rows,) numbers, NaN or None if unknown"""
    values = as_column(y)
    if values.ndim != 1:
        raise InputError(f"y must be one number per row, (rows,), not {values.shape}")
    missing = _missing(values)
    numbers = np.full(values.shape, np.nan)
    numbers[~missing] = values[~missing].astype(np.float64)
    assert_all_finite(numbers[~missing], input_name="y")
    return RowLabels(numbers, ~missing)


def as_column(y: Any) -> NDArray[Any]:
    """Return y as an array, (rows, 1) as (rows,) with scikit-learn's warning."""
    if hasattr(y, "tocsr"):
        y = y.toarray()
    values = np.asarray(y)
    if values.dtype.kind == "U" and not hasattr(y, "dtype"):
        # NumPy would turn NaN and -1 in a list of texts into texts, which would become classes.
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
    pandas = sys.modules.get("pandas")  # its NA equals nothing and is not false either
    if pandas is not None:
        return np.asarray(pandas.isna(values))
    flat = [value is None or (isinstance(value, float) and isnan(value)) for value in values.flat]
    return np.array(flat, np.bool_).reshape(values.shape)


def _equal(values: NDArray[Any], one: Any) -> NDArray[np.bool_]:
    """Return a mask of the values that equal `one`. Among texts the text of `one` counts, because
    NumPy turns a -1 among texts into "-1"; values that cannot be compared count as different."""
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
