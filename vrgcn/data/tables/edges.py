"""Read the rows of an edge table as pairs of nodes, each written to a temporary file as a
number."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from vrgcn.data.tables.adjacency import EdgeFile
from vrgcn.data.tables.columns import EdgeColumns
from vrgcn.data.tables.edge_means import EdgeMeans
from vrgcn.data.tables.encoders.numbers import sure_decimal
from vrgcn.data.tables.ids import NodeIds, tidied, tidying_that_finds
from vrgcn.data.tables.kept import KeptRows
from vrgcn.data.tables.problems import Problems
from vrgcn.data.tables.proposal import SAMPLE
from vrgcn.data.tables.reading import Table
from vrgcn.data.tables.spec import ImportSpec, Tidying
from vrgcn.data.tables.values import cell_bytes, comma_advice, is_text, to_numbers, to_text
from vrgcn.files.mistakes import InputError
from vrgcn.files.setting_names import COLUMN, setting
from vrgcn.files.wording import counted

MOST_RELATIONS = 10_000  # each is a matrix of its own
LOOKUP_ROWS = 2_000_000
LOOKUP_BYTES = 512 << 20
TRIED = 100_000  # unknown ids that are tried in other spellings


@dataclass(frozen=True)
class End:
    """The nodes at one end of a relation.

    kind: their kind; "" if there is one kind
    owner: the file that their ids come from, for errors
    start: the number of the kind's first node among all nodes
    advice: what may be wrong where an edge names a node that is not there; "" if nothing is known
    """

    kind: str
    ids: NodeIds
    owner: str
    start: int = 0
    advice: str = ""


def read_edges(
    table: Table,
    columns: EdgeColumns,
    ends: tuple[End, End],
    pairs: Mapping[str, EdgeFile],
    means: EdgeMeans | None,
    kept: KeptRows | None,
    others: Sequence[End],
    spec: ImportSpec,
    on_rows: Callable[[str, int], None],
    *,
    gaps: bool = False,
) -> Problems:
    """Read all edges as pairs of nodes; return the problems of the table.

    ends: the nodes at the source and at the target
    pairs: where the edges go, by the name of their relation; "" if the table names none
    means: collects the columns that become features of the ends; None if there are none
    kept: collects the columns that are kept for each edge; None if there are none
    others: the nodes of all kinds, in which unknown ids are looked for
    gaps: an empty cell is no edge, and no mistake
    """
    names = (columns.source, columns.target)
    skip = spec.unknown_nodes == "skip"
    checks = [_Ends(table, end, skip, spec.tidy_ids, others) for end in ends]
    problems = checks[0].problems
    for check in checks:
        check.problems = problems
    checks[1].skipped_problems = checks[0].skipped_problems
    decimal = spec.decimal
    with ThreadPoolExecutor(len(names)) as pool:
        for start, batch in _large_batches(table, columns, [end.ids for end in ends]):
            texts = [_texts(batch.column(name)) for name in names]
            places = list(
                pool.map(lambda end, text: end.ids.places(tidied(text, spec.tidy_ids)), ends, texts)
            )
            for check, name, text, own in zip(checks, names, texts, places, strict=True):
                check.check(name, start, text, own, gaps)
            weight = None
            if columns.weight is not None:
                if start == 0 and decimal is None:
                    decimal = _seen_decimal(table, columns.weight, batch)
                weight = _weights(columns.weight, start, batch, decimal, problems)
            source, target = (_shifted(own, end) for own, end in zip(places, ends, strict=True))
            block = None if means is None else means.block(start, batch)
            single = None if kept is None else kept.block(start, batch)
            for name, rows in _by_relation(columns, start, batch, pairs, problems):
                own = None if weight is None else weight[rows]
                pairs[name].append(source[rows], target[rows], own)
                if means is not None and block is not None:
                    means.add(name, block[rows], places[0][rows], places[1][rows])
                if kept is not None and single is not None:
                    kept.add(name, [each[rows] for each in single], source[rows], target[rows])
            on_rows(table.name, start + len(batch))
    checks[0].note_skipped(pairs.values())
    return problems


def _shifted(places: NDArray[np.int64], end: End) -> NDArray[np.int64]:
    """Places within a kind as numbers among all nodes; unknown ones stay -1."""
    return places if end.start == 0 else np.where(places < 0, -1, places + end.start)


def _by_relation(
    columns: EdgeColumns,
    start: int,
    batch: pa.Table,
    pairs: Mapping[str, EdgeFile],
    problems: Problems,
) -> Iterator[tuple[str, NDArray[np.int64] | slice]]:
    """Yield the name of each relation in a batch and its rows."""
    if columns.relation is None:
        yield next(iter(pairs)), slice(None)
        return
    text = _texts(batch.column(columns.relation))
    codes = pc.index_in(text, value_set=pa.array(list(pairs), pa.string())).fill_null(-1).to_numpy()
    unknown = np.flatnonzero(codes < 0)
    cells = text.take(pa.array(unknown)).combine_chunks()
    empty = pc.equal(cells, "").to_numpy(zero_copy_only=False)
    advice = f"name the relation of each edge, or leave {setting('relation_column')} out"
    problems.add("is empty", columns.relation, start + unknown[empty], advice=advice)
    what = f"names a relation that the graph of {setting('like')} does not have"
    cells = cells.filter(pa.array(~empty))
    problems.add(what, columns.relation, start + unknown[~empty], cells)
    order = np.argsort(codes, kind="stable")
    present, first = np.unique(codes[order], return_index=True)
    names = list(pairs)
    for code, rows in zip(present, np.split(order, first[1:]), strict=True):
        if code >= 0:
            yield names[code], rows


def relation_names(table: Table, column: str, on_rows: Callable[[str, int], None]) -> list[str]:
    """Return the different texts of a column that names relations, sorted."""
    found = pa.array([], pa.string())
    for start, batch in table.batches([column]):
        found = pc.unique(pa.concat_arrays([found, pc.unique(to_text(batch.column(column)))]))
        if len(found) > MOST_RELATIONS:
            raise InputError(
                f"{table.name}: column {column!r} names more than {MOST_RELATIONS:,} relations; is "
                f"{setting('relation_column', column)} right?"
            )
        on_rows(table.name, start + len(batch))
    return sorted(name for name in found.to_pylist() if name)


class _Ends:
    """Notes the ends of edges that are no known node, as problems or as edges to be skipped."""

    def __init__(
        self, table: Table, end: End, skip: bool, tidy: Sequence[Tidying], others: Sequence[End]
    ) -> None:
        self.problems = Problems(table)
        self.skipped_problems = Problems(table)
        self._tidy = tidy
        self._table = table
        self._end = end
        self._others = [other for other in others if other.kind != end.kind]
        self._skip = skip
        self._advice: dict[str, str] = {}

    def check(
        self,
        column: str,
        start: int,
        text: pa.ChunkedArray,
        places: NDArray[np.int64],
        gaps: bool,
    ) -> None:
        unknown = np.flatnonzero(places < 0)
        if not len(unknown):
            return
        cells = text.take(pa.array(unknown)).combine_chunks()
        empty = pc.equal(tidied(cells, self._tidy), "").to_numpy(zero_copy_only=False)
        named = cells.filter(pa.array(~empty))
        home = self.skipped_problems if self._skip else self.problems
        advice = (
            "" if self._skip else f"leave such edges out with {setting('unknown_nodes', 'skip')}"
        )
        if not gaps:
            home.add("is empty", column, start + unknown[empty], advice=advice)
        if len(named) and column not in self._advice:
            self._advice[column] = self._how_to_find(named)
        what = f"names a node that {self._end.owner} does not have"
        home.add(what, column, start + unknown[~empty], named, self._advice.get(column, ""))

    def note_skipped(self, pairs: Iterable[EdgeFile]) -> None:
        """Add the lines that report skipped edges to the first pairs; refuse to skip all edges."""
        every = list(pairs)
        read, skipped = sum(each.rows for each in every), sum(each.skipped for each in every)
        if not self._skip or not skipped:
            return
        whole = read + skipped
        if not read:
            lines = "\n".join(self.skipped_problems.lines())
            raise InputError(
                f"{setting('unknown_nodes', 'skip')}: leaves none of the {whole:,} rows of "
                f"{self._table.name}; are the columns right?\n{lines}"
            )
        rows = counted(whole, "row")
        told = f"{self._table.name}: skipped {skipped:,} of {rows} ({skipped / whole:.1%})"
        every[0].notes += [told, *self.skipped_problems.lines()]

    def _how_to_find(self, named: pa.Array) -> str:
        tried = tidied(named[:TRIED], self._tidy)
        ways = tidying_that_finds(tried, self._end.ids)
        advice = []
        if ways:
            tidy = setting("tidy_ids", [*self._tidy, *ways])
            advice.append(f"in another spelling it has some: give {tidy}")
        for other in self._others:
            found = int((other.ids.places(tried) >= 0).sum())
            if found == len(tried):
                advice.append(
                    f"all of them are ids of {other.kind!r}: is {self._end.kind!r} the right kind, "
                    f"and are {setting('source', COLUMN)} and {setting('target', COLUMN)} right?"
                )
        advice += [self._end.advice] if self._end.advice else []
        if not self._skip:
            advice.append(
                f"leave such edges out with {setting('unknown_nodes', 'skip')}, or make nodes of "
                f"them with {setting('unknown_nodes', 'add')}"
            )
        return "; ".join(advice)


def _large_batches(
    table: Table, columns: EdgeColumns, ids: Sequence[NodeIds]
) -> Iterator[tuple[int, pa.Table]]:
    """Join the table's batches into larger ones: each look-up builds a table of all node ids
    anew."""
    parts: list[pa.RecordBatch] = []
    first = rows = size = 0
    known = max(map(len, ids)), max(each.text.nbytes for each in ids)
    most = (max(LOOKUP_ROWS, known[0]), max(LOOKUP_BYTES, 4 * known[1]))
    for start, batch in table.batches(columns.used):
        if rows >= most[0] or size >= most[1]:
            yield first, pa.Table.from_batches(parts)
            parts, first, rows, size = [], start, 0, 0
        parts.append(batch)
        rows += len(batch)
        size += sum(int(cell_bytes(cells).sum()) for cells in batch.columns)
    if parts:
        yield first, pa.Table.from_batches(parts)


def _texts(column: pa.ChunkedArray) -> pa.ChunkedArray:
    return pa.chunked_array([to_text(part) for part in column.chunks])


def _seen_decimal(table: Table, column: str, batch: pa.Table) -> str | None:
    """Return the decimal comma or point of the weights if the first rows leave no doubt about it.
    Report a comma in the table's notes."""
    cells = batch.column(column)[:SAMPLE].combine_chunks()
    decimal = sure_decimal(to_text(cells)) if is_text(cells.type) else None
    if decimal == ",":
        table.notes.append(f"decimal commas of column {column!r} read as points")
    return decimal


def _weights(
    column: str, start: int, batch: pa.Table, decimal: str | None, problems: Problems
) -> NDArray[np.float64]:
    cells = batch.column(column).combine_chunks()
    weights, text = to_numbers(cells, np.float64, decimal=decimal)
    what = "holds text where numbers should be"
    advice = comma_advice(cells, text).removeprefix("; ")
    problems.add(what, column, start + text, cells.take(text), advice)
    with np.errstate(over="ignore"):
        finite = np.isfinite(weights.astype(np.float32))
    wrong = ~finite & ~np.isnan(weights)
    empty = np.isnan(weights)
    empty[text] = False
    problems.add("is missing or NaN", column, start + np.flatnonzero(empty))
    rows = np.flatnonzero(wrong)
    problems.add("is infinite, or too large for 32 bits", column, start + rows, cells.take(rows))
    rows = _lost(weights, cells)
    advice = "multiply all weights by one number, or write 0"
    what = "is too close to 0 for 32 bits"
    problems.add(what, column, start + rows, cells.take(rows), advice)
    return weights


def _lost(weights: NDArray[np.float64], cells: pa.Array) -> NDArray[np.int64]:
    """Return the places of weights that are not 0 but would count as 0: products in 32 bits treat
    numbers below the smallest normal one as 0."""
    lost = (np.abs(weights) < np.finfo(np.float32).tiny) & (weights != 0)
    if is_text(cells.type):  # a number too small even for 64 bits was read as 0
        zero = np.flatnonzero(weights == 0)
        digits = pc.match_substring_regex(to_text(cells.take(zero)), "^[^eE]*[1-9]")
        lost[zero] = pc.fill_null(digits, False).to_numpy(zero_copy_only=False)
    return np.flatnonzero(lost)
