"""Graphs of several kinds, from tensors: numbers within each kind become places in one
numbering."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import torch
from torch import Tensor

from vrgcn.files.mistakes import InputError
from vrgcn.graph.blocks import Blocks
from vrgcn.graph.graph import Graph
from vrgcn.graph.kept import Column, aligned, read_columns
from vrgcn.graph.kinds import Kinds
from vrgcn.graph.names import Names
from vrgcn.graph.relations import (
    Relation,
    Triple,
    build_adjacency,
    relation_name,
    shifted,
    with_reverses,
)
from vrgcn.graph.validation import (
    as_tensor,
    check_edges,
    check_features,
    check_labels,
    check_split_labels,
    check_splits,
)
from vrgcn.tasks.task import is_integer


def graph_from_kinds(
    features: Mapping[str, Any],
    edges: Mapping[Triple, Any],
    labels: Mapping[str, Any],
    *,
    splits: Mapping[str, Any],
    target: str | None,
    undirected: Collection[Triple],
    one_way: Collection[Triple],
    ids: Mapping[str, Any],
    classes: list[str] | None,
    columns: Mapping[str, list[str]],
    num_classes: int | None,
    task: str | None,
    edge_columns: Mapping[Triple, Mapping[str, Any]],
    node_columns: Mapping[str, Mapping[str, Any]],
) -> Graph:
    """See `Graph.from_kinds`."""
    tables = {kind: _features(kind, given, ids.get(kind)) for kind, given in features.items()}
    if len(labels) > 1:
        raise InputError(f"labels belong to one kind of nodes, not to {', '.join(labels)}")
    target = next(iter(labels), target)
    sizes = {kind: x if isinstance(x, int) else x.shape[0] for kind, x in tables.items()}
    widths = {kind: 0 if isinstance(x, int) else x.shape[1] for kind, x in tables.items()}
    kinds = Kinds(sizes, target, widths)
    given = {
        triple: _relation(
            kinds, triple, part, undirected=triple in undirected, one_way=triple in one_way
        )
        for triple, part in edges.items()
    }
    _check_owners(kinds, given)
    for option, triples in (("undirected", undirected), ("one_way", one_way)):
        for triple in triples:
            if triple not in given:
                raise InputError(f"{option} names {relation_name(triple)!r}, and edges do not")
    own = kinds.range(target) if target is not None else range(0)
    y, num_classes, task = check_labels(labels.get(target or ""), num_classes, len(own), task)
    parts = dict(zip(splits, check_splits(dict(splits), len(own)), strict=True))
    if y is not None:
        y = spread_labels(y, own, kinds.num_nodes)
    names = Names(
        classes=classes,
        features=_column_names(tables, columns),
        kinds=kinds,
        by_kind={kind: _ids(kinds, kind, part) for kind, part in ids.items()},
    )
    graph = Graph.from_parts(
        None,
        stack_features(kinds, tables),
        y,
        {name: part + own.start for name, part in parts.items()},
        num_classes,
        names,
        task,
        kinds,
        with_reverses(given.values()),
    )
    check_split_labels(graph)
    names.check(graph.num_nodes, graph.num_classes, graph.num_features)
    kept = _kept_of_nodes(kinds, node_columns)
    for triple, own_columns in edge_columns.items():
        if triple not in given:
            raise InputError(f"edge_columns name {triple!r}, and edges do not")
        kept |= _kept_of_edges(kinds, given[triple], edges[triple], own_columns)
    return graph.replace(kept=kept)


def _check_owners(kinds: Kinds, relations: Iterable[Triple]) -> None:
    """Raise if a relation is called as a kind: kept columns belong to one or the other by name."""
    for triple in relations:
        if relation_name(triple) in kinds.sizes:
            raise InputError(
                f"{relation_name(triple)!r} is the name of a kind and of a relation: give another "
                "name to one of them"
            )


def _kept_of_nodes(
    kinds: Kinds, node_columns: Mapping[str, Mapping[str, Any]]
) -> dict[str, dict[str, Column]]:
    kept = {}
    for kind, columns in node_columns.items():
        kinds.check(kind)
        kept[kind] = read_columns(columns, kinds.sizes[kind])
    return kept


def _kept_of_edges(
    kinds: Kinds, relation: Relation, edges: Any, columns: Mapping[str, Any]
) -> dict[str, dict[str, Column]]:
    edge_index = edges[0] if isinstance(edges, tuple) and len(edges) == 2 else edges
    ends = shifted(kinds, relation.triple, as_tensor(edge_index, "edge_index"))
    try:
        read = read_columns(columns, ends.shape[1])
    except InputError as error:
        raise InputError(f"relation {relation.name!r}: {error}") from None
    kept = aligned(relation.adjacency, ends[0], ends[1], read, relation.undirected)
    return {relation.name: kept}


def spread_labels(labels: Tensor, own: range, num_nodes: int) -> Tensor:
    """Labels of one kind, (nodes of the kind, ...), as those of all nodes: unknown elsewhere."""
    unknown = float("nan") if labels.is_floating_point() and labels.dim() == 1 else -1
    spread = labels.new_full((num_nodes, *labels.shape[1:]), unknown)
    spread[own.start : own.stop] = labels
    return spread


def stack_features(kinds: Kinds, tables: Mapping[str, Tensor | int]) -> Tensor:
    """(all nodes, columns of all kinds): each kind has columns of its own, zero for the others.

    tables: (nodes of the kind, width) by kind; a number where a kind has no features
    """
    known = {kind: x for kind, x in tables.items() if isinstance(x, Tensor)}
    shape = (kinds.num_nodes, sum(kinds.widths.values()))
    if not known:
        return torch.zeros(shape)
    dtypes = {x.dtype for x in known.values()}
    dtype = torch.float64 if torch.float64 in dtypes else torch.float32
    blocks = [
        replace(
            block,
            values=block.values.to(dtype),
            row=kinds.range(kind).start,
            column=kinds.columns(kind).start + block.column,
        )
        for kind, x in known.items()
        for block in Blocks.of(x).blocks
    ]
    if len(blocks) == 1 and blocks[0].covers(kinds.num_nodes):
        return blocks[0].values
    return Blocks(shape, blocks)


def split_features(kinds: Kinds, features: Tensor) -> dict[str, Tensor | None]:
    """The features of each kind, (nodes of the kind, its columns); None if it has none."""
    features_of: dict[str, Tensor | None] = dict.fromkeys(kinds.names)
    for kind in kinds.names:
        rows, columns = kinds.range(kind), kinds.columns(kind)
        own = [
            replace(block, row=0, column=block.column - columns.start)
            for block in Blocks.of(features).blocks
            if block.row == rows.start and block.column in columns
        ]
        if len(own) == 1:
            features_of[kind] = own[0].values
        elif own:
            features_of[kind] = Blocks((len(rows), len(columns)), own)
    return features_of


def _features(kind: str, given: Any, ids: Any) -> Tensor | int:
    """The checked features of a kind, or the number of its nodes."""
    if given is None and ids is not None:
        return len(ids)
    if isinstance(given, int | np.integer) and not isinstance(given, bool):
        return int(given)
    if given is None:
        raise InputError(
            f"kind {kind!r} has no features: give the number of its nodes, or their ids"
        )
    try:
        return check_features(given)
    except (TypeError, ValueError) as error:
        raise type(error)(f"kind {kind!r}: {error}") from None


def _relation(
    kinds: Kinds, triple: Triple, given: Any, *, undirected: bool, one_way: bool
) -> Relation:
    if len(triple) != 3:
        raise InputError(f"edges are named (source kind, relation, target kind), not {triple!r}")
    name = relation_name(triple)
    for kind in (triple[0], triple[2]):
        try:
            kinds.check(kind)
        except InputError as error:
            raise InputError(f"relation {name!r}: {error}") from None
    edge_index, weight = given if isinstance(given, tuple) and len(given) == 2 else (given, None)
    try:
        sizes = kinds.sizes[triple[0]], kinds.sizes[triple[2]]
        edges, weight = check_ends(edge_index, weight, *sizes)
    except (TypeError, ValueError) as error:
        raise type(error)(f"relation {name!r}: {error}") from None
    if undirected and triple[0] != triple[2]:
        raise InputError(f"relation {name!r} joins two kinds: it cannot be undirected")
    adjacency = build_adjacency(shifted(kinds, triple, edges), weight, kinds.num_nodes, undirected)
    return Relation(triple, adjacency, undirected=undirected, one_way=one_way)


def check_ends(
    edge_index: Any, edge_weight: Any, sources: int, targets: int
) -> tuple[Tensor, Tensor | None]:
    """Edges (2, edges) between two kinds of so many nodes, and their weights."""
    edges = as_tensor(edge_index, "edge_index")
    if edges.numel() and edges.dim() == 2 and edges.shape[0] == 2 and is_integer(edges):
        for end, count in (("source", sources), ("target", targets)):
            row = edges[0 if end == "source" else 1]
            outside = (row < 0) | (row >= count)
            if outside.any():
                first = int(outside.nonzero()[0, 0])
                raise InputError(
                    f"{int(outside.sum())} edges name a {end} outside 0..{count - 1}, first: edge "
                    f"{first} from {int(edges[0, first])} to {int(edges[1, first])}"
                )
    return check_edges(edges, edge_weight, max(sources, targets))


def _column_names(
    tables: Mapping[str, Tensor | int], columns: Mapping[str, list[str]]
) -> list[str] | None:
    """Names of the columns of all kinds, "user.age"; None if no kind names its own."""
    if not columns:
        return None
    titles: list[str] = []
    for kind, x in tables.items():
        width = 0 if isinstance(x, int) else x.shape[1]
        own = columns.get(kind) or [str(column) for column in range(width)]
        if len(own) != width:
            raise InputError(f"kind {kind!r} has {width} feature columns and {len(own)} names")
        titles += [f"{kind}.{column}" for column in own]
    return titles


def _ids(kinds: Kinds, kind: str, given: Any) -> pa.Array:
    kinds.check(kind)
    ids = given if isinstance(given, pa.Array) else pa.array(given)
    if len(ids) != kinds.sizes[kind]:
        raise InputError(f"kind {kind!r} has {kinds.sizes[kind]} nodes and {len(ids)} ids")
    return ids
