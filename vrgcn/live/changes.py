"""Changes of a graph as plain values, which can be written as JSON.

    {"change": "add_nodes", "rows": [{"id": 7, "age": 31}], "kind": "user"}
    {"change": "set_features", "rows": [{"id": 7, "age": 32}], "kind": "user"}
    {"change": "remove_nodes", "ids": [7], "kind": "user"}
    {"change": "add_edges", "rows": [{"source": 7, "target": 3, "weight": 1.0}], "relation": "..."}
    {"change": "remove_edges", "rows": [{"source": 7, "target": 3}], "relation": "..."}

`kind` and `relation` are None in a graph of one table.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date, datetime, time
from math import isnan
from typing import Any

import numpy as np

from vrgcn.data.any_frame import AnyFrame, is_frame, read_frame
from vrgcn.files.mistakes import InputError

Change = dict[str, Any]

ADD_NODES, SET_FEATURES, REMOVE_NODES = "add_nodes", "set_features", "remove_nodes"
ADD_EDGES, REMOVE_EDGES = "add_edges", "remove_edges"
_FIELDS = {
    ADD_NODES: ("rows", "kind"),
    SET_FEATURES: ("rows", "kind"),
    REMOVE_NODES: ("ids", "kind"),
    ADD_EDGES: ("rows", "relation"),
    REMOVE_EDGES: ("rows", "relation"),
}


class RefusedError(InputError):
    """Raised if the graph cannot take a change or answer a question.

    path: the part of what was given that is wrong, such as (2, "rows", 0, "target") of a list of
        changes; empty if it is no single part
    """

    def __init__(self, message: str, *path: str | int) -> None:
        super().__init__(message)
        self.path = path


@contextmanager
def within(*path: str | int) -> Iterator[None]:
    """Add a path to errors that are raised inside, so that they name the part of a change."""
    try:
        yield
    except RefusedError as error:
        error.path = (*path, *error.path)
        raise


@dataclass(frozen=True)
class Applied:
    """What some changes did.

    added: the ids of new nodes, in the order in which they were named
    rows: rows computed anew in the table of each level, and then of the outputs
    seconds: from the check to the answer being there for readers
    """

    added: list[Any]
    rows: tuple[int, ...]
    seconds: float


class Changes:
    """Changes to be applied together, in the order in which they are named."""

    def __init__(self) -> None:
        self.values: list[Change] = []

    def add_nodes(self, rows: Any, kind: str | None = None) -> None:
        """Add nodes. rows: a dict, a list of these, or a DataFrame, with the columns of the import;
        of a graph that was not imported, with "features", a list of numbers"""
        self.values.append({"change": ADD_NODES, "rows": node_rows(rows, ADD_NODES), "kind": kind})

    def set_features(self, rows: Any, kind: str | None = None) -> None:
        """Replace features of nodes: of those columns that a row has, beside the id."""
        given = node_rows(rows, SET_FEATURES)
        self.values.append({"change": SET_FEATURES, "rows": given, "kind": kind})

    def remove_nodes(self, ids: Any, kind: str | None = None) -> None:
        """Remove nodes with all of their edges. ids: one, or several"""
        self.values.append({"change": REMOVE_NODES, "ids": id_list(ids), "kind": kind})

    def add_edges(self, rows: Any, relation: str | None = None) -> None:
        """Add edges. rows: (source, target) or (source, target, weight), or several of these; or
        dicts or a DataFrame with columns `source`, `target` and `weight`, or those of the import"""
        given = edge_rows(rows, ADD_EDGES)
        self.values.append({"change": ADD_EDGES, "rows": given, "relation": relation})

    def remove_edges(self, rows: Any, relation: str | None = None) -> None:
        """Remove edges. rows: as in `add_edges`, without weights"""
        given = edge_rows(rows, REMOVE_EDGES)
        self.values.append({"change": REMOVE_EDGES, "rows": given, "relation": relation})

    def to_json(self) -> str:
        return json.dumps(self.values)

    @staticmethod
    def from_json(text: str) -> Changes:
        changes = Changes()
        changes.values = checked(json.loads(text))
        return changes


def checked(changes: Any) -> list[Change]:
    """Changes of the right form: a list of dicts, each with the fields of its kind of change."""
    if isinstance(changes, Changes):
        changes = changes.values
    if isinstance(changes, Mapping):
        changes = [changes]
    if not isinstance(changes, list | tuple):
        raise TypeError(f"changes must be a list of changes, not {type(changes).__name__}")
    return [_checked(change, f"change {index}") for index, change in enumerate(changes)]


def _checked(change: Any, where: str) -> Change:
    if not isinstance(change, Mapping):
        raise TypeError(f"{where} must be a dict, not {type(change).__name__}")
    name = change.get("change")
    if name not in _FIELDS:
        raise InputError(f"{where}: 'change' is {name!r}, and none of {', '.join(_FIELDS)}")
    for field in change:
        if field != "change" and field not in _FIELDS[name]:
            raise InputError(
                f"{where} ({name}): there is no field {field!r}; there are "
                f"{', '.join(_FIELDS[name])}"
            )
    needed, named = _FIELDS[name]
    rows = change.get(needed)
    if not isinstance(rows, list | tuple):
        raise InputError(f"{where} ({name}): {needed!r} must be a list, not {rows!r}")
    for number, row in enumerate(rows):
        if needed == "rows" and not isinstance(row, Mapping):
            raise InputError(f"{where} ({name}): row {number} must be a dict, not {row!r}")
    if not isinstance(change.get(named), str | None):
        raise InputError(f"{where} ({name}): {named!r} must be a text, not {change[named]!r}")
    return {"change": name, needed: list(rows), named: change.get(named)}


def node_rows(rows: Any, what: str) -> list[dict[str, Any]]:
    """Rows as plain values, from a dict, several dicts, a DataFrame, or a matrix of features."""
    if is_frame(rows):
        return _of_frame(read_frame(what, rows))
    if isinstance(rows, Mapping):
        return [_plain_row(rows)]
    if hasattr(rows, "tolist") and getattr(rows, "ndim", 0) == 2:
        return [{"features": row} for row in rows.tolist()]
    if _is_list(rows) and all(isinstance(row, Mapping) for row in rows):
        return [_plain_row(row) for row in rows]
    raise TypeError(
        f"{what}: rows must be a dict, a list of dicts, a DataFrame or a matrix of features, not "
        f"{type(rows).__name__}"
    )


def edge_rows(rows: Any, what: str) -> list[dict[str, Any]]:
    """Edges as plain rows."""
    if isinstance(rows, tuple) and 2 <= len(rows) <= 3 and not isinstance(rows[0], tuple | list):
        rows = [rows]
    if _is_list(rows) and rows and all(map(_is_edge, rows)):
        names = ("source", "target", "weight")
        return [dict(zip(names, map(_plain, row), strict=False)) for row in rows]
    return node_rows(rows, what)


def _is_list(rows: Any) -> bool:
    return isinstance(rows, Sequence) and not isinstance(rows, str)


def _is_edge(row: Any) -> bool:
    return isinstance(row, tuple | list) and len(row) in (2, 3)


def id_list(ids: Any) -> list[Any]:
    """Ids as plain values, of one id or of several."""
    if isinstance(ids, str | int | np.integer):
        return [_plain(ids)]
    if isinstance(ids, Iterable):
        return [_plain(node) for node in ids]
    raise TypeError(f"ids must be an id or a list of ids, not {ids!r}")


def _of_frame(frame: AnyFrame) -> list[dict[str, Any]]:
    if "id" not in frame.names and getattr(frame.index, "name", None) is not None:
        frame = frame.with_index(str(frame.index.name))
    columns = [frame.listed(name) for name in frame.names]
    return [
        dict(zip(frame.names, map(_plain, values), strict=True))
        for values in zip(*columns, strict=True)
    ]


def _plain_row(row: Mapping[Any, Any]) -> dict[str, Any]:
    return {str(key): _plain(value) for key, value in row.items()}


def _plain(value: Any) -> Any:
    """A value that JSON has: dates as texts, missing values as None."""
    if isinstance(value, np.generic):
        value = value.item()
    if _is_missing(value):
        return None
    if isinstance(value, str | int | float | bool):
        return value
    if isinstance(value, datetime | date | time):
        return value.isoformat()
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, list | tuple | set | frozenset):
        return [_plain(part) for part in value]
    return str(value)


def _is_missing(value: Any) -> bool:
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return True
    return isinstance(value, float) and isnan(value)
