"""Files of embeddings: Parquet, CSV or npy, written as they come."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

import pyarrow as pa
from torch import Tensor

from vrgcn.data.id_columns import IdColumns
from vrgcn.data.predictions import (
    TableWriter,
    Writer,
    array_header,
    arrow_writer,
    check_path,
)
from vrgcn.files.writing import new_file


@contextmanager
def embedding_file(path: Path, ids: IdColumns, *, count: int, width: int) -> Iterator[Writer]:
    """A writer for `count` rows of `width` numbers; the file appears under its name when all are
    written.

    Columns of .parquet and .csv: `id` (and `kind` before it, see `IdColumns`), and `e_0`, `e_1`,
    ... A .npy file holds the numbers alone: (count, width), float32.
    """
    check_path(path)
    with new_file(path, replace=False) as file:
        if path.suffix == ".npy":
            array_header(file, "<f4", (count, width))
            yield _Array(file)
        else:
            columns = _Columns(ids, width)
            with arrow_writer(path.suffix, file, columns.schema) as writer:
                yield TableWriter(writer, columns)


class _Array:
    def __init__(self, file: BinaryIO) -> None:
        self._file = file

    def write(self, nodes: Tensor, outputs: Tensor) -> None:
        self._file.write(outputs.float().contiguous().numpy().tobytes())


class _Columns:
    """Turns activations (chunk, width) into the columns of a table."""

    def __init__(self, ids: IdColumns, width: int) -> None:
        self._ids = ids
        numbers = [(f"e_{index}", pa.float32()) for index in range(width)]
        self.schema = pa.schema([*ids.fields, *numbers])

    def batch(self, nodes: Tensor, outputs: Tensor) -> pa.RecordBatch:
        numbers = [pa.array(column.contiguous().numpy()) for column in outputs.float().t()]
        return pa.record_batch([*self._ids.arrays(nodes), *numbers], schema=self.schema)
