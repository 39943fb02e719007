"""The changed graph as a graph of its own, as it would be imported anew."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pyarrow as pa
import torch
from torch import Tensor

from vrgcn.graph.graph import Graph
from vrgcn.graph.kept import Column
from vrgcn.graph.kinds import Kinds
from vrgcn.graph.names import Names
from vrgcn.graph.relations import with_reverses
from vrgcn.graph.sparse import CSR
from vrgcn.graph.validation import SPLITS
from vrgcn.live.edges import LiveEdges
from vrgcn.live.ids import KindIds
from vrgcn.live.slots import ONLY
from vrgcn.live.state import LiveState
from vrgcn.tasks import find_task


def materialise(
    graph: Graph, state: LiveState, ids: Mapping[str, KindIds], *, bare: bool = False
) -> Graph:
    """The nodes that are there, in the order of their slots.

    graph: as it was before all changes
    bare: with one feature, which is zero: for those who need edges and names alone
    """
    slots = state.alive.nonzero()[:, 0]
    number = torch.full((state.slots.total,), -1)
    number[slots] = torch.arange(len(slots))
    matrices = {name: _adjacency(edges, slots, number) for name, edges in state.edges.items()}
    kinds, relations = _kinds(graph, state), None
    if graph.kinds.named:
        relations = with_reverses(
            replace(part, adjacency=matrices[name]) for name, part in graph.given.items()
        )
    before = state.slots.numbers()[slots]
    names = _names(graph, state, ids, kinds, slots)
    made = Graph.from_parts(
        None if kinds.named else matrices[ONLY],
        torch.zeros(len(slots), 1, dtype=state.dtype) if bare else state.raw.all(slots),
        _labels(graph, before),
        {name: _split(graph.split(name), before) for name in SPLITS},
        graph.num_classes,
        replace(names, features=None) if bare else names,
        graph.task,
        kinds,
        relations,
    )
    if graph.dated is None or state.moments is None:
        return made
    moments = state.moments[slots]
    kept = {}
    for kind, column in graph.dated.times.items():
        span = kinds.range(kind)
        kept[kind] = {column: Column("date", moments[span.start : span.stop])}
    return made.replace(dated=graph.dated, kept=kept)


def _adjacency(edges: LiveEdges, slots: Tensor, number: Tensor) -> CSR:
    into = _numbered(edges.into.rows.rows(slots), number, len(slots))
    if edges.out is edges.into:
        return into
    return into.with_transposed(_numbered(edges.out.rows.rows(slots), number, len(slots)))


def _numbered(rows: CSR, number: Tensor, count: int) -> CSR:
    return rows.with_columns(number.index_select(0, rows.indices), count)


def _kinds(graph: Graph, state: LiveState) -> Kinds:
    sizes = {}
    for kind in state.slots.kinds:
        first = state.slots.first(kind)
        sizes[kind] = int(state.alive[first : first + state.slots.room[kind]].sum())
    return Kinds(sizes, graph.kinds.target, graph.kinds.widths)


def _labels(graph: Graph, before: Tensor) -> Tensor | None:
    """Labels of nodes that were there, unknown ones of the others. before: numbers, or -1"""
    if graph.labels is None:
        return None
    labels = graph.labels[before.clamp(min=0)]
    labels[before < 0] = find_task(graph.task).unknown
    return labels


def _split(nodes: Tensor, before: Tensor) -> Tensor:
    return torch.isin(before, nodes).nonzero()[:, 0]


def _names(
    graph: Graph,
    state: LiveState,
    ids: Mapping[str, KindIds],
    kinds: Kinds,
    slots: Tensor,
) -> Names:
    if not kinds.named:
        return replace(graph.names, nodes=_ids(ids[ONLY], slots))
    by_kind = {}
    for kind in kinds.names:
        first = state.slots.first(kind)
        own = slots[(slots >= first) & (slots < first + state.slots.room[kind])]
        by_kind[kind] = _ids(ids[kind], own)
    return replace(graph.names, kinds=kinds, by_kind=by_kind)


def _ids(ids: KindIds, slots: Tensor) -> pa.Array:
    """Ids of slots, ascending: those of the graph's own nodes come first."""
    own = slots - ids.first
    own = own[own < ids.index.count]
    added = [ids.names[slot] for slot in slots[len(own) :].tolist()]
    kind = pa.string() if ids.index.text else pa.int64()
    return pa.concat_arrays([ids.index.ids(own).cast(kind), pa.array(added, kind)])
