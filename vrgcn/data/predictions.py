"""Prediction files: Parquet, CSV or npy, written as the predictions come."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import torch
from torch import Tensor

from vrgcn.graph.names import Names

SUFFIXES = (".parquet", ".csv", ".npy")
SEPARATOR = "|"  # between the classes of a node that has several


class Writer(Protocol):
    def write(self, nodes: Tensor, outputs: Tensor) -> None:
        """Add the predictions of some nodes: their numbers (chunk,), outputs (chunk, classes)."""


@contextmanager
def prediction_file(
    path: Path, names: Names, classes: list[str], *, multilabel: bool, count: int, top: int | None
) -> Iterator[Writer]:
    """A writer for `count` predictions; the file appears under its name when all are written.

    Columns of .parquet and .csv: `id`, `label`, and `p_CLASS` for each class; with `top`, instead
    `label_1`, `p_1`, ... from the most probable down. A node of several classes has its labels
    joined by "|". A .npy file holds the probabilities alone: (count, classes), float32.
    """
    check_path(path, len(classes), top)
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f".{path.name}.partial")
    try:
        if path.suffix == ".npy":
            with open(partial, "wb") as file:
                header = {"descr": "<f4", "fortran_order": False, "shape": (count, len(classes))}
                np.lib.format.write_array_header_1_0(file, header)
                yield _ArrayWriter(file, multilabel)
        else:
            table = _Rows(names, classes, multilabel, top)
            with _arrow_writer(path.suffix, partial, table.schema) as writer:
                yield _TableWriter(writer, table)
        os.replace(partial, path)
    finally:
        partial.unlink(missing_ok=True)


def check_path(path: Path, classes: int, top: int | None) -> None:
    """Refuse what could not be written, before the work that leads to it."""
    if path.suffix not in SUFFIXES:
        raise ValueError(f"--out: {path} must end in one of {', '.join(SUFFIXES)}")
    if path.exists():
        raise FileExistsError(f"--out: {path} exists already; choose another name")
    if top is not None and not 1 <= top <= classes:
        raise ValueError(f"--top: must be between 1 and the number of classes, {classes}")
    if top is not None and path.suffix == ".npy":
        raise ValueError("--top: a .npy file holds all probabilities; use .parquet or .csv")


def probabilities(outputs: Tensor, multilabel: bool) -> Tensor:
    """Softmax over the classes for one class per node, a sigmoid of each for several."""
    return torch.sigmoid(outputs) if multilabel else torch.softmax(outputs, 1)


class _ArrayWriter:
    def __init__(self, file: Any, multilabel: bool) -> None:
        self._file = file
        self._multilabel = multilabel

    def write(self, nodes: Tensor, outputs: Tensor) -> None:
        rows = probabilities(outputs, self._multilabel).float().contiguous()
        self._file.write(rows.numpy().tobytes())


class _TableWriter:
    def __init__(self, writer: Any, rows: _Rows) -> None:
        self._writer = writer
        self._rows = rows

    def write(self, nodes: Tensor, outputs: Tensor) -> None:
        self._writer.write_batch(self._rows.batch(nodes, outputs))


class _Rows:
    """Turns outputs into the columns of a table."""

    def __init__(self, names: Names, classes: list[str], multilabel: bool, top: int | None) -> None:
        self._names = names
        self._classes = pa.array(classes, type=pa.string())
        self._multilabel = multilabel
        self._top = top
        ids = names.node_ids(np.empty(0, dtype=np.int64)).type
        fields = [("id", ids)]
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
        return pa.compute.binary_join(lists, SEPARATOR)


def _arrow_writer(suffix: str, path: Path, schema: pa.Schema) -> Any:
    if suffix == ".parquet":
        return pa.parquet.ParquetWriter(path, schema)
    return pa.csv.CSVWriter(path, schema)
