"""Kept columns in the folder of a graph: what `meta.json` says of them, and their files.

kept_0.npy  kept_1.npy ...    a value for each edge of a relation, in the order of its entries,
                              or for each node of a kind; graph/kept.py says of which type
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from vrgcn.files.mistakes import InputError
from vrgcn.graph.kept import COLUMN_KINDS, NODES, Column, ColumnKind, Kept, dtype_of

_EDGES = "edges"


@dataclass(frozen=True)
class KeptPlace:
    """A kept column as `meta.json` describes it.

    owner: a relation or a kind; "edges" or "nodes" in a graph without kinds
    """

    owner: str
    name: str
    kind: ColumnKind
    classes: tuple[str, ...] = ()


def kept_file(number: int) -> str:
    """Name of the array of a column."""
    return f"kept_{number}"


def kept_places(meta: Mapping[str, Any]) -> list[KeptPlace]:
    return [
        KeptPlace(**column | {"classes": tuple(column["classes"])})
        for column in meta.get("kept", ())
    ]


def described_kept(places: Sequence[KeptPlace]) -> dict[str, Any]:
    """The entry of `meta.json` about kept columns."""
    return {"kept": [asdict(place) | {"classes": list(place.classes)} for place in places]}


def places_of(kept: Kept) -> list[KeptPlace]:
    """The columns of a graph, in the order of their files."""
    return [
        KeptPlace(owner, name, column.kind, column.classes)
        for owner, columns in kept.items()
        for name, column in columns.items()
    ]


def kept_arrays(kept: Kept) -> dict[str, Tensor]:
    """The values of all columns by the names of their files."""
    columns = [column for columns in kept.values() for column in columns.values()]
    return {kept_file(number): column.values for number, column in enumerate(columns)}


def kept_from(arrays: Mapping[str, Tensor], meta: Mapping[str, Any]) -> Kept:
    """The kept columns of a graph from its arrays."""
    found: dict[str, dict[str, Column]] = {}
    for number, place in enumerate(kept_places(meta)):
        column = Column(place.kind, arrays[kept_file(number)], place.classes)
        found.setdefault(place.owner, {})[place.name] = column
    return found


def kept_shapes(meta: Mapping[str, Any]) -> dict[str, tuple[tuple[int, ...], tuple[str, ...]]]:
    """The arrays that a folder with this `meta.json` must have: shape, and type."""
    rows = _rows(meta)
    return {
        kept_file(number): (
            (rows[place.owner],),
            (str(dtype_of(place.kind)).removeprefix("torch."),),
        )
        for number, place in enumerate(kept_places(meta))
    }


def _rows(meta: Mapping[str, Any]) -> dict[str, int]:
    """How many values a column of each owner has."""
    if "kinds" not in meta:
        return {_EDGES: meta["edges"], NODES: meta["nodes"]}
    relations = {f"{r['source']}-{r['name']}-{r['target']}": r["edges"] for r in meta["relations"]}
    return relations | {kind["name"]: kind["nodes"] for kind in meta["kinds"]}


def check_kept(file: Path, meta: Mapping[str, Any]) -> None:
    """Refuse kept columns of the wrong form, or of relations and kinds that are not there."""
    kept = meta.get("kept", [])
    if not (isinstance(kept, list) and all(map(_is_kept, kept))):
        raise InputError(f"{file}: kept must be objects of an owner, a name, a kind and classes")
    rows = _rows(meta)
    names = [(place.owner, place.name) for place in kept_places(meta)]
    if len(set(names)) < len(names):
        raise InputError(f"{file}: two kept columns have the same name")
    for owner, name in names:
        if owner not in rows:
            raise InputError(f"{file}: kept column {name!r} is of {owner!r}, which is not there")


def check_kept_values(path: Path, meta: Mapping[str, Any], arrays: Mapping[str, Tensor]) -> None:
    """Refuse codes outside of their classes."""
    for number, place in enumerate(kept_places(meta)):
        values = arrays[kept_file(number)]
        if values.dtype != torch.int64 or not len(values):
            continue
        most = 3 if place.kind == "split" else len(place.classes)
        least, largest = (int(x) for x in torch.aminmax(values))
        if least < -1 or largest >= most:
            raise InputError(
                f"{path / kept_file(number)}.npy holds {least} to {largest}, not -1 to {most - 1}"
            )


def _is_kept(value: Any) -> bool:
    return (
        isinstance(value, dict)
        and value.keys() == set(KeptPlace.__dataclass_fields__)
        and all(isinstance(value[name], str) and value[name] for name in ("owner", "name"))
        and value["kind"] in COLUMN_KINDS
        and isinstance(value["classes"], list)
        and all(isinstance(text, str) for text in value["classes"])
    )
