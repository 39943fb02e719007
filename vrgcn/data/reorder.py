"""A graph on disk in another order of its nodes, written in pieces."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
import torch
from torch import Tensor

from vrgcn.data.store import load_graph, write_array, write_meta
from vrgcn.data.store_arrays import block_places, relation_places
from vrgcn.data.store_format import KeptPlace
from vrgcn.data.tables.adjacency import EdgeFile, write_adjacency
from vrgcn.data.tables.growing import GrowingArray
from vrgcn.data.tables.kept import matrix_in, write_columns
from vrgcn.files.mistakes import InputError
from vrgcn.files.writing import new_folder
from vrgcn.graph.graph import Graph
from vrgcn.graph.kept import NODES, aligned
from vrgcn.graph.names import Names
from vrgcn.graph.ordering import BLOCK, locality_order
from vrgcn.graph.partition import Method
from vrgcn.graph.propagation import is_symmetric, row_runs
from vrgcn.graph.sparse import is_dense, select_rows
from vrgcn.graph.validation import SPLITS

_ROWS = 65_536  # rows of features that are copied at a time
_EDGES = 1 << 21  # at a time: every piece is counted into vectors of all nodes


class Closeness(NamedTuple):
    """The share of the edges whose ends are at most `block` places apart, in both orders."""

    before: float
    after: float


def reorder_graph(
    source: str | Path,
    path: str | Path,
    method: Method = "auto",
    *,
    block: int = BLOCK,
    on_piece: Callable[[str, float], None] | None = None,
) -> Closeness:
    """Write the graph of folder `source` to the new folder `path`, in a `locality_order`.

    Nodes keep their names; where they have none, their numbers become their names, so that
    predictions of both graphs are of the same nodes.

    on_piece: told what is being done, and the share of it that is, 0 to 1
    """
    tell = on_piece or (lambda what, done: None)
    graph = load_graph(source, memory="disk")
    if graph.kinds.named:
        raise InputError(
            f"{source} has several kinds of nodes, whose order is that of the kinds: it cannot be "
            "reordered yet"
        )
    if not is_dense(graph.features):
        raise InputError(
            f"{source} has sparse features, which only fit where they are in memory: there an "
            "order by parts gains nothing"
        )
    with new_folder(path) as folder:
        tell("dividing the graph", 0.0)
        order = locality_order(graph, method, block=block, on_piece=tell)
        place = torch.empty_like(order)
        place[order] = torch.arange(len(order))
        close = _write_edges(graph, place, block, folder, lambda done: tell("edges", done))
        for name in SPLITS:
            write_array(folder, name, place[graph.split(name)].sort().values.numpy())
        if graph.labels is not None:
            write_array(folder, "labels", graph.labels.index_select(0, order).numpy())
        features_at = block_places(graph.features)
        [name], dtype = features_at[0].files(0), graph.features.numpy().dtype
        with GrowingArray(folder / f"{name}.npy", dtype, (graph.num_features,)) as features:
            for nodes in order.split(_ROWS):
                features.append(select_rows(graph.features, nodes).numpy())
                tell("features", features.rows / graph.num_nodes)
        kept = _write_kept(graph, order, place, folder)
        write_meta(
            folder,
            graph.kinds,
            _names(graph, order),
            relation_places(graph),
            features_at,
            num_classes=graph.num_classes,
            task=graph.task,
            kept=kept,
        )
    return close


def _write_kept(graph: Graph, order: Tensor, place: Tensor, folder: Path) -> list[KeptPlace]:
    """Write the columns that are kept for each node and edge."""
    A = graph.adjacency
    places: list[KeptPlace] = []
    for owner, columns in graph.kept.items():
        if owner == NODES:
            own = {name: column.take(order) for name, column in columns.items()}
        else:
            ends = place[A.indices], place[A.row_of_entry]
            own = aligned(matrix_in(folder, 0), *ends, columns, undirected=False)
        places += write_columns(owner, own, folder, len(places))
    return places


def _write_edges(
    graph: Graph, place: Tensor, block: int, folder: Path, tell: Callable[[float], None]
) -> Closeness:
    """place: (nodes,) where each node goes"""
    A = graph.adjacency
    directed = not is_symmetric(A)
    before = after = 0
    pairs = EdgeFile("edges", folder, graph.num_nodes, A.values is not None)
    for source, target, weight, done in _edges(graph):
        before += int(((source - target).abs() <= block).sum())
        # One direction of an undirected edge is enough; it is then written as two.
        kept = slice(None) if directed else source <= target
        new_source, new_target = place[source[kept]], place[target[kept]]
        close = int(((new_source - new_target).abs() <= block).sum())
        after += close if directed else 2 * close - int((new_source == new_target).sum())
        weights = None if weight is None else weight[kept].double().numpy()
        pairs.append(new_source.numpy(), new_target.numpy(), weights)
        tell(0.5 * done)
    write_adjacency(pairs, directed)
    tell(1.0)
    edges = max(graph.num_edges, 1)
    return Closeness(before / edges, after / edges)


def _edges(graph: Graph) -> Iterator[tuple[Tensor, Tensor, Tensor | None, float]]:
    """Sources, targets and weights in pieces, each with the share of the rows that is done."""
    for rows, part in row_runs(graph.adjacency, entries=_EDGES):
        target = rows[0] + part.row_of_entry
        yield part.indices, target, part.values, (int(rows[-1]) + 1) / graph.num_nodes


def _names(graph: Graph, order: Tensor) -> Names:
    own = graph.names.node_ids(order.numpy())
    if isinstance(own, pa.ChunkedArray):
        own = own.combine_chunks()
    return Names(own, graph.names.classes, graph.names.features)
