"""Graphs from tables in memory: DataFrames of any library and NetworkX graphs.

They use the code of `vrgcn import`, so that columns become features by the same rules, errors have
the same words, and `like` computes the same features for other tables. Only the reading of files
differs: `ColumnTable` replaces it.
"""

from __future__ import annotations

import copy
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import fields, replace
from datetime import date, time, timedelta
from enum import Enum
from itertools import chain
from math import isnan
from numbers import Number
from pathlib import Path, PurePath
from typing import Any
from uuid import UUID

import numpy as np
import pyarrow as pa
import torch

from vrgcn.data.any_frame import AnyFrame, is_whole, read_frame
from vrgcn.data.databases.url import Place
from vrgcn.data.store import load_graph
from vrgcn.data.tables.importing import run_import
from vrgcn.data.tables.reading import BATCH_ROWS, Table, check_columns, tidy_names
from vrgcn.data.tables.spec import ImportSpec
from vrgcn.files.mistakes import InputError
from vrgcn.files.setting_names import setting
from vrgcn.graph.graph import Graph

# Options of an import that are about files.
_OF_FILES = ("nodes", "edges", "out", "delimiter", "headerless", "headerless_nodes")
_ODD = (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError)
# What may be written as a text if a column holds several types, or one that Arrow lacks.
_PLAIN = (str, bytes, Number, np.generic, date, time, timedelta, UUID, PurePath, Enum)


ROWS = "rows"  # the kind of rows with a time of their own
End = tuple[Any, Any, dict[str, Any]]  # an edge of NetworkX: source, target, attributes


class ObjectsError(InputError):
    """Raised for a column of Python objects, which are no values of a table."""


def graph_from_pandas(
    nodes: Any, edges: Any, *, out: str | Path | None, verbose: bool, **options: Any
) -> Graph:
    """See `Graph.from_pandas`."""
    links = read_frame("edges", edges)
    tables = {"edges": _frame_table("edges", links)}
    if nodes is not None:
        ends = _ends(links, [options.get("source"), options.get("target")])
        frame, id_column = _with_index(read_frame("nodes", nodes), options, ends)
        tables["nodes"] = _frame_table("nodes", frame)
        if id_column is not None:
            options["id"] = id_column
    return _imported(tables, out, verbose, options, _one_table(tables))


def graph_from_tables(
    nodes: Mapping[str, Any],
    edges: Mapping[tuple[str, str, str], Any],
    *,
    out: str | Path | None,
    verbose: bool,
    **options: Any,
) -> Graph:
    """See `Graph.from_tables`."""
    tables: dict[str, Table] = {}
    if options.get("rows") is not None:
        if any(options["rows"][1] is frame for frame in (*nodes.values(), *edges.values())):
            raise InputError(
                "rows= has a DataFrame that nodes= or edges= has too, so that a row would see "
                "itself, and its target; leave it out there: with known_after= targets of earlier "
                "rows are facts"
            )
        options |= _rows_of(*options["rows"], tables=tables)
    if isinstance(options.get("dated"), Mapping):
        options["dated"] = [f"{kind}.{column}" for kind, column in options["dated"].items()]
    ids = _listed(options.pop("id", None))
    links = {
        triple: read_frame(_title(triple), frame)
        for triple, frame in edges.items()
        if not any(frame is given for given in nodes.values())
    }
    for kind, given in nodes.items():
        named = [name.removeprefix(f"{kind}.") for name in ids if name.startswith(f"{kind}.")]
        frame, column = _with_index(
            read_frame(kind, given),
            {"id": named[0]} if named else {},
            _ends_of_kind(links, kind),
            kind,
        )
        tables[kind] = _frame_table(kind, frame)
        ids += [f"{kind}.{column}"] if column is not None and not named else []
    files = []
    for triple, frame in edges.items():
        title = _title(triple)
        same = next((kind for kind, given in nodes.items() if given is frame), None)
        if same is None:
            tables[title] = _frame_table(title, links[triple])
        files.append(f"{title}={same or title}")
    spec = {"nodes": tuple(f"{kind}={kind}" for kind in nodes) or None, "edges": tuple(files)}
    return _imported(tables, out, verbose, options, spec | {"id": tuple(ids) or None})


def _rows_of(
    entity: str | Sequence[str], frame: Any, at: str, *, tables: dict[str, Table]
) -> dict[str, Any]:
    """The settings of rows with a time of their own, whose table is added to `tables`."""
    tables[ROWS] = _frame_table(ROWS, read_frame(ROWS, frame))
    return {"rows": [f"{kind}={ROWS}" for kind in _listed(entity)], "at": at}


def graph_from_networkx(
    G: Any,
    *,
    features: Any,
    out: str | Path | None,
    verbose: bool,
    **options: Any,
) -> Graph:
    """See `Graph.from_networkx`."""
    from vrgcn.data.networkx_kinds import has_kinds, tables_of_kinds

    names = list(G.nodes)
    if not names:
        raise InputError("the graph has no nodes")
    if has_kinds(G):
        if features is not None:
            raise InputError("features= is of graphs with one kind of nodes; use drop= and column=")
        parts, spec = tables_of_kinds(G, options.pop("weight", None))
        return _imported(parts, out, verbose, options, spec)
    ids = dict(zip(names, distinct_ids(names), strict=True))
    held = dict(G.nodes(data=True))
    roles = [*_listed(options.get("label", "label")), options.get("split", "split")]
    attributes = list(dict.fromkeys(chain(*held.values())))
    if features in ("degree", "constant"):
        attributes = [key for key in attributes if str(key) in roles]
    elif features is not None:
        options["features"] = features
    ends = list(G.edges(data=True))
    weight = options.pop("weight", None)
    key = "weight" if weight is None else weight
    weighted = any(key in attributes for _, _, attributes in ends)
    if weight is not None and ends and not weighted:
        raise InputError(f"no edge of the graph has the attribute {key!r} (weight=)")
    tables = {
        "nodes": node_table("the nodes", held, attributes, ids),
        "edges": edge_table("the edges", ends, ids, key if weighted else None),
    }
    given = {"id": tables["nodes"].columns[0], "directed": G.is_directed(), **options}
    graph = _imported(tables, out, verbose, given, _one_table(tables))
    return _constant(graph) if features == "constant" else graph


def node_table(
    name: str, held: Mapping[Any, Mapping[Any, Any]], keys: Sequence[Any], ids: Mapping[Any, Any]
) -> ColumnTable:
    """The table of some nodes of NetworkX, by their ids, with their attributes `keys`.

    held: the attributes of each node
    """
    check_columns(name, ["", *map(str, keys)])  # attributes may be 1 and "1"
    id_column = "id"
    while id_column in map(str, keys):
        id_column = f"node {id_column}"
    columns = {id_column: table_column([ids[node] for node in held])}
    for key in keys:
        columns[str(key)] = table_column([own.get(key) for own in held.values()])
    return ColumnTable(name, columns, list(held))


def edge_table(
    name: str, ends: Sequence[End], ids: Mapping[Any, Any], weight: Any | None
) -> ColumnTable:
    """The table of some edges of NetworkX. weight: an attribute, 1 for edges without it; or None"""
    columns = {
        "source": table_column([ids[source] for source, _, _ in ends]),
        "target": table_column([ids[target] for _, target, _ in ends]),
    }
    if weight is not None:
        columns["weight"] = table_column([held.get(weight, 1.0) for _, _, held in ends])
    return ColumnTable(name, columns, [(source, target) for source, target, _ in ends])


class ColumnTable:
    """A table in memory, as the import reads tables.

    name: for errors; columns: their names and values, as long as each other; an error is raised
        where the column is read
    rows: what to call the rows in errors
    """

    def __init__(
        self, name: str, columns: Mapping[str, pa.Array | ObjectsError], rows: Sequence[Any]
    ) -> None:
        self.name = name
        self.notes: list[str] = []
        self.header_doubt = ""
        given = list(columns)
        self.columns = tidy_names(given, self.notes)
        if not self.columns:
            raise InputError(f"{name}: there are no columns")
        check_columns(name, self.columns)
        self._arrays = dict(zip(self.columns, columns.values(), strict=True))
        self._rows = rows

    def kind(self, column: str) -> pa.DataType:
        array = self._arrays[column]
        if isinstance(array, ObjectsError):
            raise InputError(
                f"{self.name}: column {column!r} {array}; make texts, numbers or dates of them, or "
                f"leave the column out with {setting('drop', column)}"
            )
        return array.type

    def batches(self, columns: Sequence[str]) -> Iterator[tuple[int, pa.RecordBatch]]:
        arrays = [self._arrays[column] for column in columns]
        whole = pa.record_batch(arrays, names=list(columns))
        for start in range(0, max(len(whole), 1), BATCH_ROWS):
            yield start, whole.slice(start, BATCH_ROWS)

    def where(self, rows: Sequence[int]) -> list[str]:
        return [f"row {self._rows[row]!r}" for row in rows]


def _title(triple: Any) -> str:
    return triple if isinstance(triple, str) else "-".join(triple)


def table_of(name: str, given: Any) -> ColumnTable:
    """A DataFrame as a table. name: for errors"""
    return _frame_table(name, read_frame(name, given))


def _frame_table(name: str, frame: AnyFrame) -> ColumnTable:
    check_columns(name, frame.names or [""])
    arrays = {
        column: table_column(values)
        for column, values in zip(frame.names, frame.values, strict=True)
    }
    if not len(frame):
        raise InputError(f"{name} has no rows")
    return ColumnTable(name, arrays, frame.rows)


def _ends(edges: AnyFrame, named: Sequence[Any] = (None, None)) -> list[Any]:
    """Return the columns of a table of edges that name nodes: the given ones, those called source
    and target, or else the first two."""
    names = edges.names
    usual = ("source", "target") if {"source", "target"} <= {*names} else names[:2]
    ends = [str(one or other) for one, other in zip(named, usual, strict=False)]
    return [edges.column(end) for end in ends if end in names]


def _ends_of_kind(edges: Mapping[Any, AnyFrame], kind: str) -> list[Any]:
    """Return the columns that name nodes of a kind, of all tables of edges."""
    found = []
    for triple, frame in edges.items():
        parts = triple.split("-") if isinstance(triple, str) else list(triple)
        places = [place for place in (0, -1) if parts[place] == kind]
        found += [_ends(frame)[place] for place in places if len(frame.names) > 1]
    return found


def _with_index(
    nodes: AnyFrame, options: Mapping[str, Any], ends: Sequence[Any], name_of: str = "nodes"
) -> tuple[AnyFrame, str | None]:
    """Return the table with its index as a column of ids, and that column's name; the table
    itself if a column has the ids.

    A table that only counts its rows has the ids in its first column, as files have, if edges do
    not name nodes by whole numbers.

    ends: columns of edges that name these nodes
    name_of: the name of the table in errors
    """
    named, index = options.get("id"), nodes.index
    if named is not None and named != getattr(index, "name", None):
        return nodes, None
    if named is None and "id" in nodes.names:
        return nodes, None
    if named is None and index is None and not all(map(is_whole, ends)):
        return nodes, None
    if index is not None and index.nlevels > 1:
        raise InputError(
            f"{name_of} has an index of several levels: {name_of}.reset_index(), and give id="
        )
    name = "id" if index is None or index.name is None else str(index.name)
    if name in nodes.names:
        raise InputError(
            f"{name_of} has a column and an index called {name!r}: rename one, or give id="
        )
    return nodes.with_index(name), name


def table_column(values: Any) -> pa.Array | ObjectsError:
    """A column of a `ColumnTable`."""
    try:
        return column_array(values)
    except ObjectsError as error:
        return error


def column_array(values: Any) -> pa.Array:
    """A column; values that Arrow has no type for, or several types, as texts. Raise for objects,
    whose texts say nothing."""
    if isinstance(values, pa.ChunkedArray):
        array = values.combine_chunks()
    else:
        try:
            array = pa.array(values, from_pandas=True)
        except _ODD:
            array = _texts(values)
    if isinstance(array, pa.ChunkedArray):
        array = array.combine_chunks()
    return _texts(values) if isinstance(array.type, pa.BaseExtensionType) else array


def _texts(values: Iterable[Any]) -> pa.Array:
    known = [None if _is_missing(value) else value for value in values]
    for place, value in enumerate(known):
        if value is not None and not _is_plain(value):
            name = type(value).__qualname__
            raise ObjectsError(f"holds Python objects, first a {name} in place {place:,}")
    return pa.array([None if value is None else str(value) for value in known], pa.string())


def _is_plain(value: Any) -> bool:
    """True for single values, and for periods and intervals of pandas."""
    return isinstance(value, _PLAIN) or type(value).__module__.partition(".")[0] == "pandas"


def _is_missing(value: Any) -> bool:
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return True
    return isinstance(value, float) and isnan(value)


def distinct_ids(names: Sequence[Any]) -> list[Any]:
    """Whole numbers and texts as they are; anything else as text."""
    if all(type(name) is int for name in names):
        return list(names)
    ids = [str(name) for name in names]
    if len(set(ids)) < len(ids):
        raise InputError(
            "two nodes of the graph are written the same, such as 1 and '1': rename them "
            "(networkx.relabel_nodes)"
        )
    return ids


def _one_table(tables: Mapping[str, Table]) -> dict[str, Any]:
    """The files of a spec of one table of nodes, or none, and one of edges."""
    return {name: Path(table.name) for name, table in tables.items()}


def _imported(
    tables: Mapping[str, Table],
    out: str | Path | None,
    verbose: bool,
    options: dict[str, Any],
    files: dict[str, Any],
) -> Graph:
    """The graph of the tables; in the folder `out`, or in memory alone.

    tables: by "nodes" and "edges", or by the names of kinds and relations
    files: the settings of an import that name them
    """
    if out is not None:
        return _written(tables, Path(out), verbose, options, files)
    with tempfile.TemporaryDirectory() as folder:
        graph = _written(tables, Path(folder) / "graph", verbose, options, files)
        return copy.deepcopy(graph)  # mapped arrays are about to be removed


def _written(
    tables: Mapping[str, Table],
    out: Path,
    verbose: bool,
    options: dict[str, Any],
    files: dict[str, Any],
) -> Graph:
    spec = ImportSpec(**_options(options) | files, out=out)

    def opened(path: Place, name: str, *_: Any) -> Table:
        return tables[str(path) if str(path) in tables else name]

    summary = run_import(spec, _ignored, _ignored, opened)
    if verbose:
        print(summary)
    return load_graph(out)


def _options(given: Mapping[str, Any]) -> dict[str, Any]:
    """Options of an import by name; one text where several may be given stands for a list of it."""
    kinds = {field.name: str(field.type) for field in fields(ImportSpec)}
    known = [name for name in kinds if name not in _OF_FILES]
    for name in given:
        if name not in known:
            raise TypeError(f"there is no option {name!r}; there are {', '.join(known)}")
    return {
        name: tuple(_listed(value))
        if kinds[name].startswith("tuple") and value is not None
        else value
        for name, value in given.items()
    }


def _listed(value: Any) -> list[Any]:
    return [value] if isinstance(value, str) else list(value or ())


def _constant(graph: Graph) -> Graph:
    """The graph with one feature, 1 for every node."""
    names = replace(graph.names, features=["constant"])
    return graph.replace(features=torch.ones(graph.num_nodes, 1), names=names)


def _ignored(*_: Any) -> None:
    pass
