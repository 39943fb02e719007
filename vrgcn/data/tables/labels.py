"""Labels of nodes that are classes, one or several per node, from one column or one per class.

The module `numbers` reads labels that are numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import isfinite
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from vrgcn.data.store import write_array
from vrgcn.data.tables.growing import GrowingArray
from vrgcn.data.tables.numbers import Numbers, OneNumber
from vrgcn.data.tables.problems import Problems
from vrgcn.data.tables.reading import Table
from vrgcn.data.tables.spec import ImportSpec, asked_task
from vrgcn.data.tables.values import is_list, is_missing, to_numbers, to_text
from vrgcn.files.mistakes import InputError
from vrgcn.files.setting_names import setting
from vrgcn.tasks import TASKS, find_task, task_of_classes
from vrgcn.tasks.task import UNLABELLED

MOST_CLASSES = 65_536  # if a node may have several, which are written as a dense table
_CHUNK = 1 << 22


@dataclass(frozen=True)
class ClassLabels:
    """The classes of the nodes as pairs of a node and one of its classes.

    classes: names of the classes
    known: (nodes,) True if a node's classes are known, including that it has none
    nodes, codes: (pairs,) node and class of each pair, ascending by node; unless `several`, each
        node at most once
    several: a node may have several classes
    """

    classes: list[str]
    known: NDArray[np.bool_]
    nodes: NDArray[np.int64]
    codes: NDArray[np.int64]
    several: bool

    @property
    def task(self) -> str:
        return task_of_classes(several=self.several)

    def strata(self) -> NDArray[np.int64]:
        """Return the group of each known node, (known nodes,); a ratio splits each group on its
        own."""
        return np.zeros(int(self.known.sum()), np.int64) if self.several else self.codes

    def counts(self) -> NDArray[np.int64]:
        """Return the number of nodes in each class, (classes,)."""
        return np.bincount(self.codes, minlength=len(self.classes))

    def one_class(self) -> NDArray[np.int64]:
        """Return the class of each node, (nodes,), -1 where unknown."""
        labels = np.full(len(self.known), UNLABELLED, np.int64)
        labels[self.nodes] = self.codes
        return labels

    def with_more(self, count: int) -> ClassLabels:
        """Return the labels extended by `count` nodes whose classes are unknown."""
        return replace(self, known=np.append(self.known, np.zeros(count, bool)))

    def within(self, start: int, count: int) -> ClassLabels:
        """Return the labels as those of `count` nodes, of which these begin at `start`; the classes
        of the others are unknown."""
        known = np.zeros(count, bool)
        known[start : start + len(self.known)] = self.known
        return replace(self, known=known, nodes=self.nodes + start)

    def known_of_some(self) -> ClassLabels:
        """Return the same labels; if there are no classes, with no node known: there is nothing to
        learn."""
        return self if self.classes else replace(self, known=np.zeros_like(self.known))

    def under(self, classes: list[str]) -> tuple[ClassLabels, dict[str, int]]:
        """Return the labels in terms of the classes of another graph, and the number of labels of
        each class that it lacks. Nodes with such a class count as unknown."""
        place = {name: code for code, name in enumerate(classes)}
        codes = np.array([place.get(name, -1) for name in self.classes], np.int64)
        strange = {
            name: int(count)
            for name, code, count in zip(self.classes, codes, self.counts(), strict=True)
            if code < 0
        }
        right = codes[self.codes] >= 0
        known = self.known.copy()
        known[self.nodes[~right]] = False
        right &= known[self.nodes]
        nodes, codes = self.nodes[right], codes[self.codes[right]]
        order = np.lexsort((codes, nodes))
        return ClassLabels(classes, known, nodes[order], codes[order], self.several), strange

    def write(self, folder: Path) -> None:
        """Write the labels as the graph's `labels.npy`."""
        if not self.several:
            write_array(folder, "labels", self.one_class())
            return
        width = len(self.classes)
        step = max(1, _CHUNK // max(width, 1))
        with GrowingArray(folder / "labels.npy", np.float32, (width,)) as file:
            for start in range(0, len(self.known), step):
                known = self.known[start : start + step]
                rows = np.zeros((len(known), width), np.float32)
                first, end = np.searchsorted(self.nodes, [start, start + len(known)])
                rows[self.nodes[first:end] - start, self.codes[first:end]] = 1
                rows[~known] = UNLABELLED
                file.append(rows)


class LabelReader(Protocol):
    def add(self, start: int, batch: pa.RecordBatch) -> None:
        """Read the labels of a batch whose first row is `start`."""

    def finish(self) -> ClassLabels | Numbers: ...


def label_reader(
    table: Table, columns: list[str], spec: ImportSpec, problems: Problems
) -> LabelReader:
    """Return the reader that fits the label columns and the settings."""
    asked = asked_task(spec)
    if asked is not None and not asked.several:
        _check_one_each(table, columns, asked.name)
    if asked is not None and not asked.has_classes:
        return OneNumber(columns[0], spec.missing, spec.decimal, problems)
    if len(columns) > 1 and spec.label_delimiter is not None:
        raise InputError(
            f"{setting('label_delimiter')}: {table.name} has {len(columns)} label columns; give one"
        )
    if spec.label_delimiter is not None and is_list(table.kind(columns[0])):
        raise InputError(
            f"{setting('label_delimiter')}: column {columns[0]!r} of {table.name} holds lists, "
            "whose classes need no delimiter; leave it out"
        )
    if column_per_class(table, columns, spec):
        return ColumnPerClass(columns, spec.missing, problems)
    if find_task(label_task(table, columns, spec)).several:
        return ClassesInACell(table.name, columns[0], spec.label_delimiter, spec.missing)
    return OneClassColumn(columns[0], spec.missing)


def label_task(table: Table, columns: Sequence[str], spec: ImportSpec) -> str:
    """The task that `label_reader` will read the label columns for."""
    asked = asked_task(spec)
    if asked is not None and (not asked.has_classes or asked.name not in TASKS):
        return asked.name
    cell = spec.label_delimiter is not None or is_list(table.kind(columns[0]))
    return task_of_classes(several=cell or column_per_class(table, columns, spec))


def column_per_class(table: Table, columns: Sequence[str], spec: ImportSpec) -> bool:
    """True if `label_reader` will read a column of 0 and 1 for each class."""
    cell = spec.label_delimiter is not None or is_list(table.kind(columns[0]))
    asked = asked_task(spec)
    return len(columns) > 1 or (asked is not None and asked.several and not cell)


def _check_one_each(table: Table, columns: list[str], task: str) -> None:
    if len(columns) > 1:
        raise InputError(
            f"{setting('task', task)}: takes one label column, and {table.name} has "
            f"{len(columns)}: "
            f"{', '.join(map(repr, columns[:5]))}{', ...' if len(columns) > 5 else ''}"
        )
    if is_list(table.kind(columns[0])):
        raise InputError(
            f"{setting('task', task)}: takes one label per node, and column {columns[0]!r} of "
            f"{table.name} holds lists"
        )


class OneClassColumn:
    """Reads a column with the class of each node."""

    def __init__(self, column: str, missing: Sequence[str]) -> None:
        self._column = column
        self._missing = missing
        self._parts: list[pa.DictionaryArray] = []

    def add(self, start: int, batch: pa.RecordBatch) -> None:
        text = to_text(batch.column(self._column))
        # A cell of spaces alone looks empty and counts as unknown.
        blank = is_missing(pc.utf8_trim_whitespace(text), ())
        unknown = pa.array(is_missing(text, self._missing) | blank)
        self._parts.append(pc.if_else(unknown, None, text).dictionary_encode())

    def finish(self) -> ClassLabels:
        classes, codes = _sorted_codes(self._parts)
        known = codes >= 0
        return ClassLabels(classes, known, np.flatnonzero(known), codes[known], several=False)


class ClassesInACell:
    """Reads a column with the classes of each node: a delimited text, or a list.

    An empty cell means unknown. A cell of delimiters alone, or an empty list, means that the node
    has no class.
    """

    def __init__(
        self, table: str, column: str, delimiter: str | None, missing: Sequence[str]
    ) -> None:
        self._table = table
        self._column = column
        self._delimiter = delimiter
        self._missing = missing
        self._known: list[NDArray[np.bool_]] = []
        self._nodes: list[NDArray[np.int64]] = []
        self._parts: list[pa.DictionaryArray] = []

    def add(self, start: int, batch: pa.RecordBatch) -> None:
        column = batch.column(self._column)
        if is_list(column.type):
            known = column.is_valid().to_numpy(zero_copy_only=False)
        else:
            text = to_text(column)
            known = ~is_missing(text, self._missing)
            column = pc.split_pattern(text, self._delimiter)
        cells = column.filter(pa.array(known))
        lengths = pc.list_value_length(cells).to_numpy().astype(np.int64)
        names = pc.utf8_trim_whitespace(to_text(cells.flatten()))
        some = pc.not_equal(names, "")
        nodes = np.repeat(start + np.flatnonzero(known), lengths)
        self._known.append(known)
        self._nodes.append(nodes[some.to_numpy(zero_copy_only=False)])
        self._parts.append(names.filter(some).dictionary_encode())

    def finish(self) -> ClassLabels:
        classes, codes = _sorted_codes(self._parts)
        if len(classes) > MOST_CLASSES:
            given = setting("label_delimiter", self._delimiter, typed=repr(self._delimiter))
            raise InputError(
                f"{self._table}: column {self._column!r} holds {len(classes):,} classes, more than "
                f"{MOST_CLASSES:,}; is {given} right?"
            )
        known, nodes = np.concatenate(self._known), np.concatenate(self._nodes)
        pairs = np.unique(nodes * max(len(classes), 1) + codes)  # a class named twice counts once
        nodes, codes = np.divmod(pairs, max(len(classes), 1))
        return ClassLabels(classes, known, nodes, codes, several=True)


class ColumnPerClass:
    """Reads columns of 0 and 1, one per class. A node with all of them empty is unknown."""

    def __init__(self, columns: list[str], missing: Sequence[str], problems: Problems) -> None:
        self._columns = columns
        self._missing = missing
        self._problems = problems
        self._known: list[NDArray[np.bool_]] = []
        self._nodes: list[NDArray[np.int64]] = []
        self._codes: list[NDArray[np.int64]] = []

    def add(self, start: int, batch: pa.RecordBatch) -> None:
        values = np.empty((len(batch), len(self._columns)), np.float32)
        wrong = np.zeros(values.shape, bool)
        for place, name in enumerate(self._columns):
            values[:, place], text = to_numbers(batch.column(name), missing=self._missing)
            wrong[text, place] = True
        empty = np.isnan(values) & ~wrong
        wrong |= ~empty & (values != 0) & (values != 1)
        unknown = np.asarray(empty.all(1))
        partly = empty & ~unknown[:, None]
        for place, name in enumerate(self._columns):
            rows = np.flatnonzero(wrong[:, place])
            cells = batch.column(name).take(pa.array(rows))
            what = "is a label that is neither 0 nor 1"
            self._problems.add(what, name, start + rows, cells)
            rows = np.flatnonzero(partly[:, place])
            what = "is empty where other label columns are not"
            self._problems.add(what, name, start + rows, advice="empty all of them, or none")
        nodes, codes = np.nonzero(values == 1)
        self._known.append(~unknown)
        self._nodes.append(start + nodes)
        self._codes.append(codes)

    def finish(self) -> ClassLabels:
        nodes, codes = np.concatenate(self._nodes), np.concatenate(self._codes)
        return ClassLabels(self._columns, np.concatenate(self._known), nodes, codes, several=True)


def _sorted_codes(parts: list[pa.DictionaryArray]) -> tuple[list[str], NDArray[np.int64]]:
    """Return the names in natural order, and the place of each value's name; -1 for a missing
    value."""
    column = pa.chunked_array(parts).unify_dictionaries()
    names: list[str] = column.chunk(0).dictionary.to_pylist()
    order = sorted(range(len(names)), key=_natural_key(names))
    place = np.full(len(names) + 1, -1, np.int64)  # the last entry stands for a missing value
    place[order] = np.arange(len(names))
    codes = [chunk.indices.fill_null(len(names)).to_numpy() for chunk in column.chunks]
    return [names[i] for i in order], place[np.concatenate(codes)]


def _natural_key(names: list[str]) -> Callable[[int], Any]:
    """Return a sort key that orders names as numbers if all are numbers, or else as texts."""
    try:
        values = [float(name) for name in names]
    except ValueError:
        return lambda i: names[i]
    if not all(map(isfinite, values)):
        return lambda i: names[i]
    return lambda i: (values[i], names[i])
