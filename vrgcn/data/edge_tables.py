"""Tables of predicted edges: those to be scored, and the scores."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import torch
from torch import Tensor

from vrgcn.data.databases.opening import TableOpener
from vrgcn.data.databases.url import Place
from vrgcn.data.id_columns import IdColumns
from vrgcn.data.predictions import arrow_writer, check_path
from vrgcn.data.tables.reading import Table
from vrgcn.data.tables.values import to_text
from vrgcn.files.mistakes import InputError
from vrgcn.files.writing import new_file
from vrgcn.graph.graph import Graph
from vrgcn.graph.pairs import PairTarget
from vrgcn.graph.predicted_edges import PredictedEdges
from vrgcn.graph.validation import SPLIT_WORDS, SPLITS

_OTHERS = (("head", "relation", "tail"), ("subject", "predicate", "object"))
# Other columns of tables that we write.
_VALUE, _PROBABILITY = "value", "probability"
_TAKEN = ("rank", "score", _VALUE, _PROBABILITY)


def ends_of(kinds: tuple[str, str]) -> tuple[str, str]:
    """The names of the two columns of a pair: source and target, or their kinds if these differ
    from each other and from the columns that stand beside them."""
    return ("source", "target") if len({*kinds, *_TAKEN}) < 2 + len(_TAKEN) else kinds


def with_given_negatives(graph: Graph, files: Mapping[str, Path]) -> Graph:
    """The graph whose pairs are ranked against given negatives.

    files: by split, a table of pairs as `read_edges` reads them; where it has a column `split`, the
        rows of that split
    """
    pairs = graph.pairs
    if pairs is None:
        raise InputError(
            f"{', '.join(map(str, files.values()))}: negatives are given for the pairs of one "
            "relation, and the edges of all relations are predicted: leave them out"
        )
    given = {split: read_edges(path, graph, pairs, split) for split, path in files.items()}
    for split, negatives in given.items():
        known = pairs.known.has(negatives[:, 0], negatives[:, 1])
        if known.any():
            first = graph.names.node_ids(negatives[known][0].numpy()).to_pylist()
            raise InputError(
                f"{files[split]}: {int(known.sum()):,} of {len(known):,} negatives are known pairs "
                f"of {pairs.relation}, first: {first[0]!r} and {first[1]!r}; leave them out"
            )
    every = {**pairs.negatives, **given}
    return graph.replace(pairs=replace(pairs, negatives=every, given={**pairs.given, **given}))


def read_edges(
    path: Place, graph: Graph, edges: PredictedEdges, split: str | None = None
) -> Tensor:
    """Rows of edges, from a table with the ids of their ends, and of triples the name of their
    relation, in columns called source, (relation) and target, or as the kinds are, or head,
    relation and tail; or in its first columns.

    split: the rows of this split, where the table has a column `split`
    """
    with TableOpener() as opener:
        return _rows(opener(path, "edges", None), graph, edges, split)


def _rows(table: Table, graph: Graph, edges: PredictedEdges, split: str | None) -> Tensor:
    columns = _columns(table, edges)
    batches = list(_batches(table, columns, split))
    if not sum(map(len, batches)):
        word = f"{split} {edges.word}s" if split else f"{edges.word}s"
        raise InputError(f"{table.name} has no {word}")
    first, *middle, last = (
        [value for batch in batches for value in batch.column(name).to_pylist()] for name in columns
    )
    directions = [_directions(table.name, columns[1], texts, edges) for texts in middle]
    kinds = [edges.ends(d).kinds for d in (directions[0] if directions else [0] * len(first))]
    ends = [
        _nodes(graph, f"{table.name}, column {column!r}", ids, [pair[end] for pair in kinds])
        for end, column, ids in ((0, columns[0], first), (1, columns[-1], last))
    ]
    return torch.stack([ends[0], *map(torch.tensor, directions), ends[1]], dim=1)


def _columns(table: Table, edges: PredictedEdges) -> list[str]:
    """The names of the columns that have the ends, and the relation between them."""
    known = [ends_of(edges.ends().kinds), edges.columns]
    if len(edges.columns) == 3:
        known = [edges.columns, *_OTHERS]
    named = [names for names in known if {*names} <= {*table.columns}]
    columns = list(named[0]) if named else table.columns[: len(edges.columns)]
    if len(columns) < len(edges.columns):
        names, count = list(known[0]), ("two", "three")[len(known[0]) - 2]
        wanted = " and ".join(names) if len(names) == 2 else ", ".join(names)
        raise InputError(f"{table.name}: a {edges.word} needs {count} columns, {wanted}")
    return columns


def _batches(table: Table, columns: list[str], split: str | None) -> Iterator[pa.RecordBatch]:
    """The columns of a table's rows, batch by batch; of a split where the table has splits."""
    if split is None or "split" not in table.columns:
        yield from (batch for _, batch in table.batches(columns))
        return
    number = SPLITS.index(split)
    for _, batch in table.batches([*columns, "split"]):
        words = pc.utf8_lower(to_text(batch.column("split"))).to_pylist()
        yield batch.filter(pa.array([SPLIT_WORDS.get(word) == number for word in words]))


def _directions(path: str, column: str, texts: list[Any], edges: PredictedEdges) -> list[int]:
    known: dict[str, int] = {}
    for row, text in enumerate(map(str, texts)):
        if text in known:
            continue
        try:
            known[text] = edges.find(text)
        except InputError as error:
            raise InputError(f"{path}, column {column!r}, row {row + 1}: {error}") from None
    return [known[str(text)] for text in texts]


def _nodes(graph: Graph, where: str, ids: list[Any], kinds: list[str]) -> Tensor:
    """(ids,) nodes, each of its own kind."""
    nodes, of = np.empty(len(ids), dtype=np.int64), np.array(kinds)
    for kind in dict.fromkeys(kinds):
        own = np.flatnonzero(of == kind)
        nodes[own] = graph.names.places([ids[n] for n in own], where, graph.num_nodes, kind)
    return torch.from_numpy(nodes)


def edge_batch(
    graph: Graph,
    edges: PredictedEdges,
    rows: Tensor,
    columns: Mapping[str, pa.Array],
    direction: int = 0,
) -> pa.RecordBatch:
    """Edges under the nodes' own ids, and columns of any values beside them.

    rows: as `edges` has them, or (rows, 2) nodes at the ends of a direction
    """
    relations = [pa.array(edges.names).take(pa.array(part.numpy())) for part in rows.t()[1:-1]]
    kinds: Sequence[str | None] = (None, None) if relations else edges.ends(direction).kinds
    names = edges.columns if relations else ends_of(edges.ends(direction).kinds)
    ends = [_ids(graph, rows[:, end], kind) for end, kind in zip((0, -1), kinds, strict=True)]
    parts = zip(names, (ends[0], *relations, ends[1]), strict=True)
    return pa.RecordBatch.from_pydict({**dict(parts), **columns})


def _ids(graph: Graph, nodes: Tensor, kind: str | None) -> pa.Array:
    """The user's ids of nodes, as texts where they are of several kinds."""
    if kind is None and len(graph.kinds.names) == 1:
        kind = graph.kinds.names[0]
    return IdColumns(graph.names, kind).arrays(nodes.contiguous())[-1]


def value_columns(target: PairTarget, names: Sequence[str], values: Tensor) -> dict[str, pa.Array]:
    """The predicted values of some pairs, in a column that is called as the predicted one: numbers,
    or names of classes beside their probability.

    names: of the columns of ends; values: (rows,) numbers, or (rows, classes) scores
    """
    name = _VALUE if target.name in {*names, _PROBABILITY} else target.name
    if not target.classes:
        return {name: pa.array(values.float().numpy())}
    shares, places = values.softmax(1).max(1)
    classes = pa.array(target.classes, pa.string()).take(pa.array(places.numpy()))
    return {name: classes, _PROBABILITY: pa.array(shares.float().numpy())}


@contextmanager
def edge_file(path: Path, schema: pa.Schema) -> Iterator[Any]:
    """A writer of batches; the file appears under its name when all are written."""
    check_path(path)
    with new_file(path, replace=False) as file, arrow_writer(path.suffix, file, schema) as writer:
        yield writer
