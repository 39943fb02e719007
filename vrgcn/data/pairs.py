"""Files of pairs: those to be scored, and the scores."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

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
from vrgcn.graph.pairs import Pairs
from vrgcn.graph.split_words import SPLIT_WORDS
from vrgcn.graph.validation import SPLITS

ENDS = ("source", "target")
# Other columns of files that we write.
_VALUE, _PROBABILITY = "value", "probability"
_TAKEN = ("rank", "score", _VALUE, _PROBABILITY)


def ends_of(pairs: Pairs) -> tuple[str, str]:
    """The names of the two columns of a pair: source and target, or their kinds if these differ
    from each other and from the columns that stand beside them."""
    if len({*pairs.kinds, *_TAKEN}) < 2 + len(_TAKEN):
        return ENDS
    return pairs.kinds


def with_given_negatives(graph: Graph, files: Mapping[str, Path]) -> Graph:
    """The graph whose pairs are ranked against given negatives.

    files: by split, a table of pairs as `read_pairs` reads them; where it has a column `split`, the
        rows of that split
    """
    pairs = graph.pairs
    if pairs is None:
        raise InputError(
            f"{', '.join(map(str, files.values()))}: negatives are given for the pairs of one "
            "relation, and the edges of all relations are predicted: leave them out"
        )
    given = {split: read_pairs(path, graph, pairs, split) for split, path in files.items()}
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


def read_pairs(path: Place, graph: Graph, pairs: Pairs, split: str | None = None) -> Tensor:
    """(pairs, 2) nodes, from a table with their ids in columns called source and target or as their
    kinds are, or in its first two columns.

    split: the rows of this split, where the table has a column `split`
    """
    with TableOpener() as opener:
        return _pairs_of(opener(path, "edges", None), graph, pairs, split)


def _pairs_of(table: Table, graph: Graph, pairs: Pairs, split: str | None) -> Tensor:
    path = table.name
    named = [names for names in (ends_of(pairs), ENDS) if {*names} <= {*table.columns}]
    columns = list(named[0]) if named else table.columns[:2]
    if len(columns) < 2:
        raise InputError(f"{path}: a pair needs two columns, {' and '.join(ends_of(pairs))}")
    batches = list(_rows(table, columns, split))
    if not sum(map(len, batches)):
        raise InputError(f"{path} has no {f'{split} ' if split else ''}pairs")
    ends = []
    for column, kind in zip(columns, pairs.kinds, strict=True):
        ids = [value for batch in batches for value in batch.column(column).to_pylist()]
        places = graph.names.places(ids, f"{path}, column {column!r}", graph.num_nodes, kind)
        ends.append(torch.from_numpy(places))
    return torch.stack(ends, dim=1)


def _rows(table: Table, columns: list[str], split: str | None) -> Iterator[pa.RecordBatch]:
    """The columns of a table's rows, batch by batch; of a split where the table has splits."""
    if split is None or "split" not in table.columns:
        yield from (batch for _, batch in table.batches(columns))
        return
    number = SPLITS.index(split)
    for _, batch in table.batches([*columns, "split"]):
        words = pc.utf8_lower(to_text(batch.column("split"))).to_pylist()
        yield batch.filter(pa.array([SPLIT_WORDS.get(word) == number for word in words]))


class ScoredRows:
    """Tables of pairs with numbers of each, under the nodes' own ids.

    ranked: a column `rank` after the ends
    columns: names and types of what is written of each pair; None for its score
    """

    def __init__(
        self,
        graph: Graph,
        pairs: Pairs,
        *,
        ranked: bool = False,
        columns: Sequence[tuple[str, pa.DataType]] | None = None,
    ) -> None:
        self._ids = [IdColumns(graph.names, kind) for kind in pairs.kinds]
        named = zip(ends_of(pairs), self._ids, strict=True)
        ends = [(end, own.fields[0][1]) for end, own in named]
        rank = [("rank", pa.int64())] if ranked else []
        self.schema = pa.schema([*ends, *rank, *(columns or [("score", pa.float32())])])

    def batch(self, pairs: Tensor, columns: Mapping[str, pa.Array]) -> pa.RecordBatch:
        """Return rows of (rows, 2) nodes, and columns of any values by name."""
        ids = [own.arrays(pairs[:, end])[0] for end, own in enumerate(self._ids)]
        others = [columns[name] for name in self.schema.names[2:]]
        return pa.record_batch([*ids, *others], schema=self.schema)


class ScoredFile:
    """Writes the rows of scored pairs."""

    def __init__(self, writer: Any, rows: ScoredRows) -> None:
        self._writer = writer
        self._rows = rows

    def write(self, pairs: Tensor, **columns: Tensor) -> None:
        """Add rows: (rows, 2) nodes, and a column of numbers (rows,) by name."""
        self.write_columns(pairs, {name: pa.array(c.numpy()) for name, c in columns.items()})

    def write_columns(self, pairs: Tensor, columns: Mapping[str, pa.Array]) -> None:
        """Add rows: (rows, 2) nodes, and columns of any values by name."""
        self._writer.write_batch(self._rows.batch(pairs, columns))


@contextmanager
def scored_file(
    path: Path,
    graph: Graph,
    pairs: Pairs,
    *,
    ranked: bool = False,
    columns: Sequence[tuple[str, pa.DataType]] | None = None,
) -> Iterator[ScoredFile]:
    """A writer of pairs; the file appears under its name when all are written.

    ranked, columns: as in `ScoredRows`
    """
    check_path(path)
    rows = ScoredRows(graph, pairs, ranked=ranked, columns=columns)
    with (
        new_file(path, replace=False) as file,
        arrow_writer(path.suffix, file, rows.schema) as writer,
    ):
        yield ScoredFile(writer, rows)


def write_values(path: Path, graph: Graph, pairs: Pairs, asked: Tensor, found: Tensor) -> None:
    """Write the predicted values of some pairs: in a column that is called as the predicted one,
    numbers, or names of classes beside their probability.

    asked: (rows, 2) nodes; found: (rows,) numbers, or (rows, classes) scores
    """
    assert pairs.target is not None
    taken = {*ends_of(pairs), _PROBABILITY}
    name = _VALUE if pairs.target.name in taken else pairs.target.name
    if not pairs.target.classes:
        values = {name: pa.array(found.float().numpy())}
    else:
        shares, places = found.softmax(1).max(1)
        classes = pa.array(pairs.target.classes, pa.string())
        values = {
            name: classes.take(pa.array(places.numpy())),
            _PROBABILITY: pa.array(shares.float().numpy()),
        }
    columns = [(column, array.type) for column, array in values.items()]
    with scored_file(path, graph, pairs, columns=columns) as file:
        file.write_columns(asked, values)
