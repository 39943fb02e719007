"""Edges from what became known later to what was known earlier, in a graph of rows with a time of
their own: messages over them would bring the future."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import torch
from torch import Tensor

from vrgcn.files.setting_names import Placeholder, setting
from vrgcn.files.wording import counted
from vrgcn.graph.dated import ALWAYS
from vrgcn.graph.graph import Graph
from vrgcn.graph.relations import Relation
from vrgcn.leaks.finding import Budget, Finding


def edges_back_in_time(graph: Graph, budget: Budget) -> Iterator[Finding]:
    """Find relations, and reverses, with edges that lead back in time."""
    if graph.dated is None:
        return
    moments = graph.dated.moments(graph)
    for relation in graph.relations.values():
        late = _late(relation, moments, budget.entries)
        if len(late):
            yield _finding(graph, relation, moments, late)


def _late(relation: Relation, moments: Tensor, most: int) -> Tensor:
    """Entries of a relation whose source is later than its target."""
    A = relation.adjacency
    step = -(-A.num_entries // most) if A.num_entries else 1
    every = torch.arange(0, A.num_entries, step)
    sources = moments[A.indices[every]]
    return every[(sources > moments[A.row_of_entry[every]]) & (sources > ALWAYS)]


def _finding(graph: Graph, relation: Relation, moments: Tensor, late: Tensor) -> Finding:
    A = relation.adjacency
    source, target = int(A.indices[late[0]]), int(A.row_of_entry[late[0]])
    ends = " to ".join(
        f"{kind} {graph.names.ids_of(kind)[node - graph.kinds.range(kind).start]}"
        f" ({_day(float(moments[node]))})"
        for kind, node in ((relation.source, source), (relation.target, target))
    )
    cure = (
        "make the relation one-way, Graph.from_kinds(..., one_way=[...])"
        if relation.reverse_of is not None
        else "leave these edges out, or import the tables with their dates, "
        f"{setting('dated', Placeholder('KIND.COLUMN'), command='import')}"
    )
    what = counted(len(late), "edge leads", "edges lead")
    return Finding(
        "high",
        "time",
        f"{what} back in time over {relation.name}, first: from {ends}: rows would be predicted "
        "from what nobody knew at their time",
        cure,
    )


def _day(moment: float) -> str:
    """A moment as a date; nodes without a date were always known."""
    if not np.isfinite(moment):
        return "always known" if moment < 0 else "never known"
    return str(np.datetime64(int(moment), "s").astype("datetime64[D]"))
