"""Things that are later than the cut-off of a split by time: relations whose edges have no times,
and columns of dates that were filled in afterwards."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

from vrgcn.files.parsing import read_json
from vrgcn.files.setting_names import setting
from vrgcn.graph.graph import Graph
from vrgcn.graph.kept import NODES
from vrgcn.graph.names import user_column
from vrgcn.graph.until import Until
from vrgcn.leaks.columns import dense_features, sample
from vrgcn.leaks.finding import Finding

SHARE = 0.001  # of nodes with a later date
_NODES = 100_000
_SECONDS = ".seconds"
_RECIPE = "import.json"


@dataclass(frozen=True)
class Later:
    """What is known of times in a graph as it was before it was split.

    until: the cut-off
    dated: the relations whose edges have times; nodes_dated: whether nodes have
    origins: the second that counts as 0 in a feature of dates, by the feature's name
    """

    until: Until
    dated: frozenset[str] = frozenset()
    nodes_dated: bool = False
    origins: Mapping[str, float] = field(default_factory=dict)

    @staticmethod
    def of(graph: Graph, folder: Path | None, until: str, time_column: str | None = None) -> Later:
        """The times of a graph.

        folder: of a graph on disk, which says how dates were encoded
        time_column: the column of times, where it is none of dates
        """
        timed = {
            owner
            for owner, columns in graph.kept.items()
            if time_column in columns or any(each.kind == "date" for each in columns.values())
        }
        kinds = {kind or NODES for kind in graph.kinds.names}
        cut_off = Until(until)
        return Later(cut_off, frozenset(timed - kinds), bool(timed & kinds), _origins(folder))


def _origins(folder: Path | None) -> dict[str, float]:
    if folder is None or not (folder / _RECIPE).is_file():
        return {}
    recipe: dict[str, Any] = read_json(folder / _RECIPE)
    origins = {}
    for table in recipe.get("tables", [recipe]):
        kind = f"{table['table']}." if table.get("table") else ""
        for column in table.get("columns", []):
            if "origin" in column:
                origins[f"{kind}{column['column']}{_SECONDS}"] = float(column["origin"])
    return origins


def later_things(graph: Graph, later: Later) -> Iterator[Finding]:
    """Find what may be later than the cut-off of a split by time.

    graph: after the split
    """
    predicted = () if graph.predicted is None else graph.predicted.relations
    if not later.nodes_dated:
        for name in graph.edges if graph.kinds.named else ():
            if name not in predicted and name not in later.dated:
                yield _timeless(name, later)
    for kind in graph.kinds.names:
        yield from _dates(graph, kind, later)


def _timeless(relation: str, later: Later) -> Finding:
    return Finding(
        "medium",
        "time",
        f"the edges of {relation} have no times, and all of them carry messages: some may be later "
        f"than {later.until}",
        f"keep their times, {setting('keep', f'{relation}.COLUMN=date', command='import')}, or "
        "make sure that all of them were there by then",
    )


def _dates(graph: Graph, kind: str, later: Later) -> Iterator[Finding]:
    """Columns of dates that are later than the cut-off in nodes that were there by then."""
    there = torch.zeros(graph.num_nodes, dtype=torch.bool)
    for A in graph.edges.values():
        there[A.indices] = True
        there[A.row_of_entry] = True
    nodes = graph.kinds.nodes(kind)
    nodes = sample(nodes[there[nodes]], _NODES)
    if not len(nodes) or not later.origins or not later.until.is_date:
        return
    for feature in dense_features(graph, kind, nodes):
        origin = later.origins.get(feature.title)
        if origin is None:
            continue
        share = float((feature.values + origin >= later.until.end).mean())
        if share >= SHARE:
            column = user_column(feature.title)
            yield Finding(
                "high",
                "time",
                f"column {column!r} is later than {later.until} for {share:.1%} of the nodes that "
                "edges of training name: it was filled in afterwards",
                "use what was known by then, or import the table without it, "
                f"{setting('drop', column, command='import')}",
            )
