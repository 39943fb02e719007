"""Features that are means of columns of edges: which they are, and that they cannot change.

The import names them after the relation, `item.rated.rating` and `user.rev_rated.rating`
(`vrgcn/data/tables/edge_means.py`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch

from vrgcn.files.setting_names import setting
from vrgcn.graph.blocks import Blocks
from vrgcn.graph.graph import Graph
from vrgcn.graph.names import user_column
from vrgcn.graph.relations import REVERSE
from vrgcn.graph.sparse import select_columns

NONE = "none"  # the feature that marks nodes without an edge


def made_of_edges(graph: Graph, relation: str) -> dict[int, str]:
    """The feature columns that are means over a relation's edges, each with the name of the column
    after the relation's: rated.rating, rev_rated.rating."""
    middle = graph.relations[relation].triple[1]
    own = (f"{middle}.", f"{REVERSE}{middle}.")
    names = enumerate(graph.names.features or [])
    after = ((place, name.partition(".")[2]) for place, name in names)
    return {place: name for place, name in after if name.startswith(own)}


def averaged_columns(graph: Graph) -> dict[str, list[str]]:
    """For each relation the columns of its edges whose means are features of nodes; a relation
    whose means are all zero, as those of a predicted one may be, has none."""
    averaged: dict[str, list[str]] = {}
    if not graph.kinds.named:
        return averaged
    for name in graph.edges:
        made = made_of_edges(graph, name)
        places = torch.tensor(list(made), dtype=torch.int64)
        blocks = Blocks.of(select_columns(graph.features, places)).blocks if made else []
        if any(bool(block.values.to_dense().any()) for block in blocks):
            columns = (user_column(each.partition(".")[2]) for each in made.values())
            averaged[name] = [column for column in dict.fromkeys(columns) if column != NONE]
    return averaged


def cannot_follow(averaged: Mapping[str, Sequence[str]], *, advice: bool = True) -> str | None:
    """Return the sentence that means of columns of edges stay as they are; None if there are none.

    averaged: the columns, by the name of the relation as a setting names it
    advice: say which import would allow changes
    """
    columns = [f"{owner}.{column}" for owner, own in averaged.items() for column in own]
    if not columns:
        return None
    shown = ", ".join(columns[:5]) + (", ..." if len(columns) > 5 else "")
    said = (
        f"means of columns of edges ({shown}) are features of nodes, and cannot follow a change: a "
        "live graph (vrgcn serve) refuses changes of these edges and of the nodes at their ends"
    )
    if not advice:
        return said
    return (
        f"{said}; to allow them, import without these columns: "
        f"{setting('drop', tuple(columns), command='import')}"
    )
