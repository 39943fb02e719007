"""Prediction files: Parquet, CSV or npy, written as the predictions come."""

from __future__ import annotations

import json
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

from vrgcn.files.writing import new_file
from vrgcn.graph.names import Names

SUFFIXES = (".parquet", ".csv", ".npy")
SEPARATOR = "|"  # between the classes of a node that has several


class Writer(Protocol):
    def write(self, nodes: Tensor, outputs: Tensor) -> None:
        """Add the predictions of some nodes: their numbers (chunk,), outputs (chunk, classes)."""


@contextmanager
def prediction_file(
    path: Path,
    names: Names,
    classes: list[str] | None,
    *,
    multilabel: bool,
    count: int,
    top: int | None,
) -> Iterator[Writer]:
    """A writer for `count` predictions; the file appears under its name when all are written.

    Columns of .parquet and .csv: `id`, `label`, and `p_CLASS` for each class; with `top`, instead
    `label_1`, `p_1`, ... from the most probable down. A node of several classes has its labels
    joined by "|", or as a list in JSON where a class has "|" in its name. A .npy file holds the
    probabilities alone: (count, classes), float32.

    classes: None for numbers. Their columns are `id` and `prediction`, their .npy file holds
        (count,), float64.
    """
    check_path(path, None if classes is None else len(classes), top)
    with new_file(path, replace=False) as file:
        if path.suffix == ".npy":
            shape = (count,) if classes is None else (count, len(classes))
            kind = "<f8" if classes is None else "<f4"
            array_header(file, kind, shape)
            yield _NumberArray(file) if classes is None else _ProbabilityArray(file, multilabel)
        else:
            table = prediction_rows(names, classes, multilabel=multilabel, top=top)
            with arrow_writer(path.suffix, file, table.schema) as writer:
                yield TableWriter(writer, table)


def prediction_rows(
    names: Names, classes: list[str] | None, *, multilabel: bool, top: int | None
) -> Columns:
    """The columns of a table of predictions, see `prediction_file`."""
    return _Numbers(names) if classes is None else _Classes(names, classes, multilabel, top)


def check_path(path: Path, classes: int | None, top: int | None) -> None:
    """Refuse what could not be written, before the work that leads to it.

    classes: how many; None for numbers
    """
    if path.suffix not in SUFFIXES:
        raise ValueError(f"--out: {path} must end in one of {', '.join(SUFFIXES)}")
    if path.is_symlink():
        raise FileExistsError(
            f"--out: {path} is a link, to {os.readlink(path)}; name the file itself"
        )
    if path.exists():
        raise FileExistsError(f"--out: {path} exists already; choose another name")
    check_top(top, classes, "--top")
    if top is not None and path.suffix == ".npy":
        raise ValueError("--top: a .npy file holds all probabilities; use .parquet or .csv")


def check_top(top: int | None, classes: int | None, name: str = "top") -> None:
    """Refuse to choose the most probable where there are none, or not so many.

    classes: how many; None for numbers
    name: of the argument, for errors
    """
    if top is None:
        return
    if classes is None:
        raise ValueError(
            f"{name}: the model predicts numbers, which have no classes to choose from"
        )
    if not 1 <= top <= classes:
        raise ValueError(f"{name}: must be between 1 and the number of classes, {classes}")


def probabilities(outputs: Tensor, multilabel: bool) -> Tensor:
    """Softmax over the classes for one class per node, a sigmoid of each for several."""
    return torch.sigmoid(outputs) if multilabel else torch.softmax(outputs, 1)


class _NumberArray:
    def __init__(self, file: Any) -> None:
        self._file = file

    def write(self, nodes: Tensor, outputs: Tensor) -> None:
        self._file.write(outputs[:, 0].double().contiguous().numpy().tobytes())


class _ProbabilityArray:
    def __init__(self, file: Any, multilabel: bool) -> None:
        self._file = file
        self._multilabel = multilabel

    def write(self, nodes: Tensor, outputs: Tensor) -> None:
        rows = probabilities(outputs, self._multilabel).float().contiguous()
        self._file.write(rows.numpy().tobytes())


class Columns(Protocol):
    """What turns outputs into the columns of a table."""

    schema: pa.Schema

    def batch(self, nodes: Tensor, outputs: Tensor) -> pa.RecordBatch:
        """Those of some nodes (chunk,), from their outputs (chunk, width)."""


class TableWriter:
    def __init__(self, writer: Any, rows: Columns) -> None:
        self._writer = writer
        self._rows = rows

    def write(self, nodes: Tensor, outputs: Tensor) -> None:
        self._writer.write_batch(self._rows.batch(nodes, outputs))


class _Numbers:
    """Turns the outputs (chunk, 1) of a model of numbers into the columns of a table."""

    def __init__(self, names: Names) -> None:
        self._names = names
        self.schema = pa.schema([("id", id_kind(names)), ("prediction", pa.float64())])

    def batch(self, nodes: Tensor, outputs: Tensor) -> pa.RecordBatch:
        numbers = pa.array(outputs[:, 0].double().contiguous().numpy())
        columns = [self._names.node_ids(nodes.numpy()), numbers]
        return pa.record_batch(columns, schema=self.schema)


class _Classes:
    """Turns the outputs (chunk, classes) of a model of classes into the columns of a table."""

    def __init__(self, names: Names, classes: list[str], multilabel: bool, top: int | None) -> None:
        self._names = names
        self._classes = pa.array(classes, type=pa.string())
        self._multilabel = multilabel
        # Otherwise nobody could tell the class a|b from the classes a and b.
        self._joinable = not any(SEPARATOR in name for name in classes)
        self._top = top
        fields = [("id", id_kind(names))]
        if top is None:
            fields.append(("label", pa.string()))
            fields += [(f"p_{name}", pa.float32()) for name in classes]
        else:
            for rank in range(1, top + 1):
                fields += [(f"label_{rank}", pa.string()), (f"p_{rank}", pa.float32())]
        self.schema = pa.schema(fields)

    def batch(self, nodes: Tensor, outputs: Tensor) -> pa.RecordBatch:
        chance = probabilities(outputs, self._multilabel).float()
        columns = [self._names.node_ids(nodes.numpy())]
        if self._top is None:
            columns.append(self._labels(outputs))
            columns += [pa.array(column.contiguous().numpy()) for column in chance.t()]
        else:
            best, places = chance.topk(self._top, dim=1)
            for rank in range(self._top):
                columns.append(self._classes.take(pa.array(places[:, rank].contiguous().numpy())))
                columns.append(pa.array(best[:, rank].contiguous().numpy()))
        return pa.record_batch(columns, schema=self.schema)

    def _labels(self, outputs: Tensor) -> pa.Array:
        if not self._multilabel:
            return self._classes.take(pa.array(outputs.argmax(1).numpy()))
        chosen = outputs > 0
        values = self._classes.take(pa.array(chosen.nonzero()[:, 1].contiguous().numpy()))
        starts = torch.zeros(len(chosen) + 1, dtype=torch.int32)
        starts[1:] = chosen.sum(1).cumsum(0)
        lists = pa.ListArray.from_arrays(pa.array(starts.numpy()), values)
        if self._joinable:
            return pa.compute.binary_join(lists, SEPARATOR)
        texts = [json.dumps(row, ensure_ascii=False) for row in lists.to_pylist()]
        return pa.array(texts, pa.string())


def id_kind(names: Names) -> pa.DataType:
    return names.node_ids(np.empty(0, dtype=np.int64)).type


def array_header(file: BinaryIO, kind: str, shape: tuple[int, ...]) -> None:
    """The beginning of a .npy file, whose rows are written after it."""
    header = {"descr": kind, "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(file, header)


def arrow_writer(suffix: str, file: BinaryIO, schema: pa.Schema) -> Any:
    if suffix == ".parquet":
        return pa.parquet.ParquetWriter(file, schema)
    return pa.csv.CSVWriter(file, schema)
