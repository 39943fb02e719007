"""New rows of a task, asked about at a time: they take the place of the graph's own rows.

Each sees the facts that its entity had by its time, found by the code that made the edges of the
imported rows (`Lookback`). Nothing else changes: facts and entities are shared, and so are their
features.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa
import torch
from numpy.typing import NDArray
from torch import Tensor

from vrgcn.files.mistakes import InputError
from vrgcn.graph.dated import Dated, Lookback, Pairs, TimedRows
from vrgcn.graph.from_kinds import split_features, stack_features
from vrgcn.graph.graph import Graph
from vrgcn.graph.kept import Column
from vrgcn.graph.kinds import Kinds
from vrgcn.graph.relations import Relation, build_adjacency, with_reverses
from vrgcn.graph.sparse import CSR
from vrgcn.graph.validation import SPLITS


def with_rows(
    graph: Graph,
    asked: TimedRows,
    own: NDArray[np.float32] | None = None,
    lookback: Lookback | None = None,
) -> Graph:
    """The graph with other rows, which have no labels and are in no split.

    graph: with `dated`, its features as they are
    asked: the new rows; entities are node numbers of the graph
    own: (rows, columns) features of the rows' own columns; None: there are none
    lookback: over the graph's facts; None: made anew
    """
    dated, count = graph.dated, len(asked.times)
    if dated is None:
        raise InputError(
            "the graph has no rows with a time of their own: import it with dated tables "
            "(vrgcn import --rows --at --dated)"
        )
    kinds = replace(graph.kinds, sizes={**graph.kinds.sizes, dated.rows: count})
    width = graph.kinds.widths.get(dated.rows, 0)
    features, edges = seen_by(dated, width, asked, own, lookback or Lookback.on(graph))
    tables: dict[str, Tensor | int] = {
        kind: kinds.sizes[kind] if x is None else x
        for kind, x in split_features(graph.kinds, graph.features).items()
    }
    tables[dated.rows] = torch.from_numpy(features).to(graph.features.dtype)
    relations = [
        _moved(part, graph.kinds, kinds, dated.rows, edges) for part in graph.given.values()
    ]
    time = Column("date", torch.from_numpy(asked.times))
    kept = {owner: columns for owner, columns in graph.kept.items() if owner != dated.rows}
    names = replace(
        graph.names,
        kinds=kinds,
        by_kind={**graph.names.by_kind, dated.rows: pa.array(np.arange(count))},
    )
    found = Graph.from_parts(
        None,
        stack_features(kinds, tables),
        None,
        dict.fromkeys(SPLITS, graph.train[:0]),
        graph.num_classes,
        names,
        graph.task,
        kinds,
        with_reverses(relations),
    )
    return found.replace(dated=dated, kept=kept | {dated.rows: {dated.times[dated.rows]: time}})


def seen_by(
    dated: Dated,
    width: int,
    asked: TimedRows,
    own: NDArray[np.float32] | None,
    lookback: Lookback,
) -> tuple[NDArray[np.float32], dict[str, Pairs]]:
    """The features of rows, and for each relation into them its edges: rows, by their places, and
    nodes.

    width: of the features that rows have
    own: as in `with_rows`
    """
    edges: dict[str, Pairs] = {}
    for relation, entities in asked.entities.items():
        known = np.flatnonzero(entities >= 0)
        edges[relation] = known, entities[known]
    parts = [np.empty((len(asked.times), 0), np.float32) if own is None else own]
    for path in dated.paths:
        seen = lookback.seen(path, asked)
        parts.append(seen.features)
        edges |= {relation: seen.last(most) for relation, most in path.last.items()}
    features = np.concatenate(parts, axis=1)
    lacking = width - features.shape[1]
    if lacking:
        given = parts[0].shape[1]
        raise InputError(
            f"rows have {given} features of their own columns, and the graph's rows "
            f"{given + lacking}: give the columns that the import made features of"
        )
    return features, edges


def _moved(
    part: Relation, before: Kinds, after: Kinds, rows: str, edges: dict[str, Pairs]
) -> Relation:
    """A relation in the numbering with other rows."""
    old, new = before.range(rows), after.range(rows)

    def moved(nodes: Tensor) -> Tensor:
        return torch.where(nodes >= old.stop, nodes + (len(new) - len(old)), nodes)

    if part.source == rows:
        raise InputError(
            f"the relation {part.name!r} leads from the rows: new rows would change what is known "
            "of others; leave it out of the import"
        )
    if part.target == rows:
        places, nodes = map(torch.from_numpy, edges.get(part.name, (np.empty(0, int),) * 2))
        ends = torch.stack([moved(nodes), places + new.start])
        return replace(part, adjacency=build_adjacency(ends, None, after.num_nodes, False))
    A = part.adjacency
    middle = A.indptr[old.start].expand(len(new))
    indptr = torch.cat([A.indptr[: old.start + 1], middle, A.indptr[old.stop + 1 :]])
    later = before.range(part.source).start >= old.stop
    indices = moved(A.indices) if later else A.indices
    return replace(part, adjacency=CSR(indptr, indices, A.values, after.num_nodes))
