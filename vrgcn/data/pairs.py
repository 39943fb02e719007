"""Files of pairs: those to be scored, and the scores."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import torch
from torch import Tensor

from vrgcn.data.predictions import arrow_writer, check_path
from vrgcn.data.tables.reading import open_table
from vrgcn.files.writing import new_file
from vrgcn.graph.graph import Graph

ENDS = ("source", "target")


def read_pairs(path: Path, graph: Graph) -> Tensor:
    """(pairs, 2) nodes, from a table with their ids in the columns source and target, or in its
    first two columns."""
    table = open_table(path, "edges", None)
    columns = list(ENDS) if set(ENDS) <= {*table.columns} else table.columns[:2]
    if len(columns) < 2:
        raise ValueError(f"{path}: a pair needs two columns, source and target")
    batches = [batch for _, batch in table.batches(columns)]
    if not sum(map(len, batches)):
        raise ValueError(f"{path} has no pairs")
    ends = []
    for column in columns:
        ids = [value for batch in batches for value in batch.column(column).to_pylist()]
        places = graph.names.places(ids, f"{path}, column {column!r}", graph.num_nodes)
        ends.append(torch.from_numpy(places))
    return torch.stack(ends, dim=1)


class ScoredFile:
    """Writes pairs with numbers of each, under the nodes' own ids."""

    def __init__(self, writer: Any, graph: Graph, schema: pa.Schema) -> None:
        self._writer = writer
        self._names = graph.names
        self._schema = schema

    def write(self, pairs: Tensor, **columns: Tensor) -> None:
        """Add rows: (rows, 2) nodes, and a column of numbers (rows,) by name."""
        ids = [self._names.node_ids(pairs[:, end].numpy()) for end in (0, 1)]
        numbers = [pa.array(columns[name].numpy()) for name in self._schema.names[2:]]
        self._writer.write_batch(pa.record_batch([*ids, *numbers], schema=self._schema))


@contextmanager
def scored_file(path: Path, graph: Graph, *, ranked: bool = False) -> Iterator[ScoredFile]:
    """A writer of pairs; the file appears under its name when all are written.

    ranked: a column `rank` before `score`
    """
    check_path(path)
    kind = graph.names.node_ids(np.empty(0, dtype=np.int64)).type
    rank = [("rank", pa.int64())] if ranked else []
    schema = pa.schema([*((end, kind) for end in ENDS), *rank, ("score", pa.float32())])
    with new_file(path, replace=False) as file, arrow_writer(path.suffix, file, schema) as writer:
        yield ScoredFile(writer, graph, schema)
