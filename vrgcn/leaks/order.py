"""Orders of nodes that tell the label: rows that were sorted by class, ids that were given class by
class."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from torch import Tensor

from vrgcn.graph.graph import Graph
from vrgcn.leaks.columns import bins, sample
from vrgcn.leaks.columns_of_labels import members_of
from vrgcn.leaks.finding import Budget, Finding
from vrgcn.leaks.skill import halves, r2_of_bins, skill_of_bins
from vrgcn.tasks import find_task

SKILL = 0.7
_NODES = 20_000


def orders_that_tell_labels(graph: Graph, budget: Budget) -> Iterator[Finding]:
    """Find orders of rows and of ids that alone predict the label of training nodes."""
    if graph.labels is None:
        return
    nodes = sample(graph.train, min(_NODES, budget.cells))
    for what, places in _orders(graph, nodes):
        skill = _skill(graph, nodes, places)
        if skill < SKILL:
            continue
        yield Finding(
            "medium",
            "order",
            f"the order of the {what} tells the label: skill {skill:.2f} on held-out training "
            "nodes, where 0 is a guess and 1 is always right",
            "ids and row numbers are no features here, so training does not see them; make no "
            "feature, split or batch of them, and ask why the table is sorted: nodes without a "
            "label may be told apart the same way",
        )
        return


def _orders(graph: Graph, nodes: Tensor) -> Iterator[tuple[str, NDArray[np.float64]]]:
    yield "rows", nodes.numpy().astype(np.float64)
    own = graph.names.nodes is not None or bool(graph.names.by_kind)
    if own:
        ids = graph.names.node_ids(nodes.numpy())
        if isinstance(ids, pa.ChunkedArray):
            ids = ids.combine_chunks()
        ranks = pc.rank(ids, tiebreaker="dense").to_numpy().astype(np.float64)
        yield "ids", ranks


def _skill(graph: Graph, nodes: Tensor, places: NDArray[np.float64]) -> float:
    if not find_task(graph.task).has_classes:
        if len(nodes) < 40:
            return 0.0
        assert graph.labels is not None
        fitted = halves(len(nodes))
        numbers = graph.labels[nodes].double().numpy()
        return r2_of_bins(bins(places, fitted), numbers, fitted)
    members = members_of(graph, nodes)
    if members is None:
        return 0.0
    rule = skill_of_bins(bins(places, members.fitted), members)
    if members.exclusive:
        return rule.skill
    return float(2 * rule.auc.mean() - 1)
