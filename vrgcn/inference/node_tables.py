"""Tables of a model with a row for each node: kept under the user's ids, and put in the order of
whatever graph the model is to predict."""

from __future__ import annotations

import copy
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import torch
from torch import Tensor, nn

from vrgcn.files.mistakes import InputError
from vrgcn.graph.graph import Graph
from vrgcn.graph.kinds import BETWEEN
from vrgcn.graph.scaling import find_trained_on, note_trained_on
from vrgcn.models.node_table import NodeTable, node_tables

_IDS, _TEXT, _ENDS = "nodes.ids", "nodes.text", "nodes.ends"
TENSORS = (_IDS, _TEXT, _ENDS)


def places_of(ids: pa.Array, graph: Graph) -> Tensor:
    """(ids,): the numbers that nodes have in a graph; -1 where it does not have them."""
    known, there = _alike(ids, _ids(graph.names.unique(), graph.num_nodes))
    places = pc.index_in(known, value_set=there).fill_null(-1)
    return torch.from_numpy(places.to_numpy().astype(np.int64))


def on_nodes(model: nn.Module, ours: pa.Array | None, graph: Graph) -> nn.Module:
    """The model with the rows of its tables in the order of the graph's nodes: itself where they
    are, else a copy. A node that the model has not seen has a row of zeros.

    ours: ids of the nodes that it was trained on; None: their numbers
    """
    tables = node_tables(model)
    if not tables:
        return model
    count = len(next(iter(tables.values())).rows)
    theirs = graph.names.unique()
    if ours is None and theirs is None and count == graph.num_nodes:
        return model
    known, wanted = _alike(_ids(ours, count), _ids(theirs, graph.num_nodes))
    if known.equals(wanted):
        return model
    moved = copy.deepcopy(model)
    for table in node_tables(moved).values():
        places = pc.index_in(_of_kind(wanted, table), value_set=_of_kind(known, table))
        new = torch.from_numpy(places.is_null().to_numpy(zero_copy_only=False))
        place = torch.from_numpy(places.fill_null(0).to_numpy().astype(np.int64))
        rows = table.rows.detach().index_select(0, place.to(table.rows.device))
        rows[new.to(rows.device)] = 0
        table.set(rows)
    trained_on = find_trained_on(moved)
    if trained_on is not None:
        note_trained_on(moved, replace(trained_on, nodes=theirs))
    return moved


def _of_kind(ids: pa.Array, table: NodeTable) -> pa.Array:
    """The ids of those nodes that a table has rows of."""
    if table.kind is None:
        return ids
    return ids.filter(pc.starts_with(ids, table.kind + BETWEEN))


def _ids(names: pa.Array | None, count: int) -> pa.Array:
    if names is None:
        return pa.array(np.arange(count))
    return names.cast(pa.string()) if pa.types.is_large_string(names.type) else names


def _alike(ids: pa.Array, others: pa.Array) -> tuple[pa.Array, pa.Array]:
    """Ids of one type, so that they can be compared."""
    ids, others = _ids(ids, 0), _ids(others, 0)
    if ids.type == others.type:
        return ids, others
    return ids.cast(pa.string()), others.cast(pa.string())


def id_tensors(names: pa.Array | None) -> dict[str, Tensor]:
    """Ids of nodes as tensors, for a file; none where they are the nodes' numbers."""
    if names is None:
        return {}
    if pa.types.is_integer(names.type):
        return {_IDS: torch.from_numpy(names.cast(pa.int64()).to_numpy().copy())}
    texts = [text.encode() for text in names.to_pylist()]
    ends = np.cumsum([len(text) for text in texts], dtype=np.int64)
    joined = np.frombuffer(b"".join(texts) or b"\0", dtype=np.uint8)
    return {
        _TEXT: torch.from_numpy(joined.copy()),
        _ENDS: torch.from_numpy(ends),
    }


def ids_of_tensors(where: str, tensors: dict[str, Tensor]) -> pa.Array | None:
    """The ids that a stage of a model file has; raise if they are none. where: the file"""
    for name, dtype in ((_IDS, torch.int64), (_TEXT, torch.uint8), (_ENDS, torch.int64)):
        if name in tensors and (tensors[name].dim(), tensors[name].dtype) != (1, dtype):
            raise InputError(f"{where}: {name} must be one-dimensional, of {dtype}")
    if _IDS in tensors:
        return pa.array(tensors[_IDS].numpy())
    if _TEXT not in tensors or _ENDS not in tensors:
        return None
    text, ends = bytes(tensors[_TEXT].numpy()), tensors[_ENDS].tolist()
    starts = [0, *ends[:-1]]
    ordered = all(0 <= a <= b <= len(text) for a, b in zip(starts, ends, strict=True))
    try:
        if not ordered:
            raise InputError("they overlap")
        parts = [text[a:b].decode() for a, b in zip(starts, ends, strict=True)]
    except ValueError as error:
        raise InputError(f"{where}: its node ids cannot be read: {error}") from None
    return pa.array(parts, pa.string())
