"""Files of triples: those to be scored, and the scores."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import torch
from torch import Tensor

from vrgcn.data.databases.opening import TableOpener
from vrgcn.data.databases.url import Place
from vrgcn.data.predictions import arrow_writer, check_path
from vrgcn.data.tables.reading import Table
from vrgcn.files.mistakes import InputError
from vrgcn.files.writing import new_file
from vrgcn.graph.graph import Graph
from vrgcn.graph.triples import Triples

COLUMNS = ("source", "relation", "target")
_OTHERS = (("head", "relation", "tail"), ("subject", "predicate", "object"))


def read_triples(path: Place, graph: Graph, triples: Triples) -> Tensor:
    """(triples, 3) source, direction and target, from a table with their ids and the relation's
    name in columns called source, relation and target (or head, relation and tail), or in its first
    three columns."""
    with TableOpener() as opener:
        return _triples_of(opener(path, "edges", None), graph, triples)


def _triples_of(table: Table, graph: Graph, triples: Triples) -> Tensor:
    path = table.name
    named = [names for names in (COLUMNS, *_OTHERS) if {*names} <= {*table.columns}]
    columns = list(named[0]) if named else table.columns[:3]
    if len(columns) < 3:
        raise InputError(f"{path}: a triple needs three columns, {', '.join(COLUMNS)}")
    batches = [batch for _, batch in table.batches(columns)]
    if not sum(map(len, batches)):
        raise InputError(f"{path} has no triples")
    texts = [
        [value for batch in batches for value in batch.column(name).to_pylist()] for name in columns
    ]
    directions = _directions(path, columns[1], texts[1], triples)
    ends = []
    for column, ids, back in ((columns[0], texts[0], True), (columns[2], texts[2], False)):
        kinds = [triples.targets[triples.reverse(d) if back else d] for d in directions]
        ends.append(_places(graph, f"{path}, column {column!r}", ids, kinds))
    return torch.stack([ends[0], torch.tensor(directions), ends[1]], dim=1)


def _directions(path: str, column: str, texts: list[Any], triples: Triples) -> list[int]:
    known: dict[str, int] = {}
    for row, text in enumerate(map(str, texts)):
        if text in known:
            continue
        try:
            known[text] = triples.find(text)
        except ValueError as error:
            raise InputError(f"{path}, column {column!r}, row {row + 1}: {error}") from None
    return [known[str(text)] for text in texts]


def _places(graph: Graph, where: str, ids: list[Any], kinds: list[str]) -> Tensor:
    """(ids,) nodes, each of its own kind."""
    found = np.empty(len(ids), dtype=np.int64)
    of = np.array(kinds)
    for kind in dict.fromkeys(kinds):
        own = np.flatnonzero(of == kind)
        found[own] = graph.names.places([ids[n] for n in own], where, graph.num_nodes, kind)
    return torch.from_numpy(found)


class ScoredTriples:
    """Writes triples with a score of each, under the nodes' own ids."""

    def __init__(self, writer: Any, graph: Graph, triples: Triples, schema: pa.Schema) -> None:
        self._writer, self._graph, self._triples = writer, graph, triples
        self._schema = schema

    def write(self, triples: Tensor, score: Tensor) -> None:
        """Add rows: (rows, 3) source, direction and target, and (rows,) scores."""
        ids = [
            _ids(self._graph, triples[:, column].contiguous()).cast(self._schema.types[column])
            for column in (0, 2)
        ]
        names = pa.array(self._triples.directions).take(pa.array(triples[:, 1].numpy()))
        columns = [ids[0], names, ids[1], pa.array(score.numpy())]
        self._writer.write_batch(pa.record_batch(columns, schema=self._schema))


def _ids(graph: Graph, nodes: Tensor) -> pa.Array:
    """The user's ids of nodes, as texts where they are of several kinds."""
    kinds = graph.kinds
    number = kinds.of(nodes)
    if len(kinds.names) == 1:
        return graph.names.ids_of(kinds.names[0]).take(pa.array(nodes.numpy()))
    texts = np.empty(len(nodes), dtype=object)
    for place, kind in enumerate(kinds.names):
        own = (number == place).nonzero()[:, 0]
        ids = graph.names.ids_of(kind).take(pa.array(kinds.within(kind, nodes[own]).numpy()))
        texts[own.numpy()] = ids.cast(pa.string()).to_pylist()
    return pa.array(texts.tolist(), pa.string())


@contextmanager
def scored_triples(path: Path, graph: Graph, triples: Triples) -> Iterator[ScoredTriples]:
    """A writer of triples; the file appears under its name when all are written."""
    check_path(path)
    kind = _ids(graph, torch.empty(0, dtype=torch.int64)).type
    schema = pa.schema(
        [("source", kind), ("relation", pa.string()), ("target", kind), ("score", pa.float32())]
    )
    with new_file(path, replace=False) as file, arrow_writer(path.suffix, file, schema) as writer:
        yield ScoredTriples(writer, graph, triples, schema)
