"""Prediction files: Parquet, CSV or npy, written as the predictions come."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import torch
from torch import Tensor

from vrgcn.data.id_columns import NamingColumns
from vrgcn.files.mistakes import InputError
from vrgcn.files.setting_names import setting
from vrgcn.files.writing import new_file
from vrgcn.tasks.regions import Region
from vrgcn.tasks.task import Task

SUFFIXES = (".parquet", ".csv", ".npy")


class Writer(Protocol):
    def write(self, nodes: Tensor, outputs: Tensor) -> None:
        """Add the predictions of some nodes: their numbers (chunk,), outputs (chunk, classes)."""


@contextmanager
def prediction_file(
    path: Path,
    ids: NamingColumns,
    task: Task,
    classes: list[str],
    *,
    count: int,
    top: int | None,
    region: Region | None = None,
    threshold: float | None = None,
) -> Iterator[Writer]:
    """A writer for `count` predictions; the file appears under its name when all are written.

    Columns of .parquet and .csv: `id` (and `kind` before it, see `IdColumns`), `label`, and
    `p_CLASS` for each class; with `top`, instead `label_1`, `p_1`, ... from the most probable down.
    A node of several classes has its labels joined by "|", or as a list in JSON where a class has
    "|" in its name. A .npy file holds the probabilities alone: (count, classes), float32.

    Columns of numbers are `id` and `prediction`, their .npy file holds (count,), float64.

    classes: their names; empty for numbers
    region: from outputs to prediction sets or intervals, see `tasks/regions.py`: `set`, or `low`
        and `high`, follow the other columns; None: there are none
    threshold: probability of the second of two classes from which on it is the label; None: the
        label is the more probable class
    """
    check_prediction(path, task, len(classes), top)
    with new_file(path, replace=False) as file:
        if path.suffix == ".npy":
            nothing = task.array(torch.zeros(0, task.outputs(len(classes)))).numpy()
            array_header(file, nothing.dtype.str, (count, *nothing.shape[1:]))
            yield _Array(file, task)
        else:
            rows = PredictionRows(ids, task, classes, top, region, threshold)
            with arrow_writer(path.suffix, file, rows.schema) as writer:
                yield TableWriter(writer, rows)


def check_prediction(path: Path, task: Task, classes: int, top: int | None) -> None:
    """Refuse predictions that could not be written, before the work that leads to them.

    classes: how many; 0 for numbers
    """
    check_path(path)
    task.check_top(top, classes)
    if top is not None and path.suffix == ".npy":
        raise InputError(
            f"{setting('top')}: a .npy file holds all probabilities; use .parquet or .csv"
        )


def check_path(path: Path) -> None:
    """Refuse a file that could not be written."""
    if path.suffix not in SUFFIXES:
        raise InputError(f"{setting('out')}: {path} must end in one of {', '.join(SUFFIXES)}")
    if path.is_symlink():
        raise FileExistsError(
            f"{setting('out')}: {path} is a link, to {os.readlink(path)}; name the file itself"
        )
    if path.exists():
        raise FileExistsError(f"{setting('out')}: {path} exists already; choose another name")


class _Array:
    def __init__(self, file: Any, task: Task) -> None:
        self._file = file
        self._task = task

    def write(self, nodes: Tensor, outputs: Tensor) -> None:
        self._file.write(self._task.array(outputs).contiguous().numpy().tobytes())


class RowsOfOutputs(Protocol):
    """Turns outputs into the rows of a table."""

    schema: pa.Schema

    def batch(self, nodes: Tensor, outputs: Tensor) -> pa.RecordBatch:
        """Rows of some nodes (chunk,), from their outputs (chunk, width)."""


class PredictionRows:
    """Rows of predictions under the nodes' own ids, see `prediction_file`."""

    def __init__(
        self,
        ids: NamingColumns,
        task: Task,
        classes: list[str],
        top: int | None,
        region: Region | None = None,
        threshold: float | None = None,
    ) -> None:
        self._ids = ids
        self._columns = [task.columns(classes, top, threshold)]
        if region is not None:
            self._columns.append(task.region_columns(classes, region))
        fields = [field for part in self._columns for field in part.fields]
        self.schema = pa.schema([*ids.fields, *fields])

    def batch(self, nodes: Tensor, outputs: Tensor) -> pa.RecordBatch:
        columns = [array for part in self._columns for array in part.arrays(outputs)]
        return pa.record_batch([*self._ids.arrays(nodes), *columns], schema=self.schema)


class TableWriter:
    def __init__(self, writer: Any, rows: RowsOfOutputs) -> None:
        self._writer = writer
        self._rows = rows

    def write(self, nodes: Tensor, outputs: Tensor) -> None:
        self._writer.write_batch(self._rows.batch(nodes, outputs))


def array_header(file: BinaryIO, kind: str, shape: tuple[int, ...]) -> None:
    """The beginning of a .npy file, whose rows are written after it."""
    header = {"descr": kind, "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(file, header)


def arrow_writer(suffix: str, file: BinaryIO, schema: pa.Schema) -> Any:
    if suffix == ".parquet":
        return pa.parquet.ParquetWriter(file, schema)
    return pa.csv.CSVWriter(file, schema)
