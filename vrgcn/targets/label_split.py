"""A split that is drawn anew for a graph that is there, as `vrgcn import --ratio` draws it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from vrgcn.data.tables.spec import check_ratio
from vrgcn.data.tables.splits import NONE, draw_split
from vrgcn.files.mistakes import InputError
from vrgcn.files.setting_names import setting
from vrgcn.graph.graph import Graph
from vrgcn.graph.kept import NODES
from vrgcn.graph.until import Until, check_order, nodes_until, time_of
from vrgcn.graph.validation import SPLITS
from vrgcn.graph.visible import Visible, until_then
from vrgcn.tasks import find_task
from vrgcn.tasks.task import Task


@dataclass(frozen=True)
class GraphLabels:
    """labels: of all nodes, as a graph keeps them; known: (nodes,) whether a node has one"""

    task: Task
    labels: NDArray[Any]
    known: NDArray[np.bool_]

    def strata(self) -> NDArray[np.int64]:
        return self.task.strata(self.labels, self.known)


def split_by_time(
    graph: Graph,
    train_until: str,
    val_until: str | None = None,
    time_column: str | None = None,
    seed: int = 0,
) -> Graph:
    """The same graph, its labelled nodes split by their time; training sees only the edges that are
    there by its end.

    train_until, val_until: the last moments of training and of validation, such as "2026-06" for
        the end of June; later nodes are for the test. Without the second, a tenth of the training
        nodes is drawn for validation
    time_column: the kept column of the nodes' times; None for the only one of dates
    seed: of the validation nodes that are drawn

    An edge is there if its own time, where the graph keeps it, and its nodes are not later. Models
    are evaluated and predict with all edges.
    """
    kind = graph.kinds.target
    if graph.labels is None or kind is None:
        raise InputError(
            f"a graph without labels cannot be split ({setting('train_until', train_until)}): "
            "nothing to train on"
        )
    train = Until(train_until, "train_until")
    val = None if val_until is None else Until(val_until, "val_until")
    owner = kind or NODES
    times = time_of(graph.kept.get(owner, {}), owner, time_column, needed=True)
    assert times is not None
    check_order(train, val, times)
    codes = torch.where(times.known, 2, NONE)
    if val is not None:
        codes[val.not_later(times)] = 1
    codes[train.not_later(times)] = 0
    own = graph.kinds.range(kind)
    codes[~graph.labelled[own.start : own.stop]] = NONE
    if val is None:
        early = (codes == 0).nonzero()[:, 0]
        order = torch.randperm(len(early), generator=torch.Generator().manual_seed(seed))
        codes[early[order[: len(early) // 10]]] = 1
    if not (codes == 0).any():
        raise InputError(
            f"{setting('train_until', train_until)}: no labelled node is that early: there is "
            "nothing to train on"
        )
    parts = {
        name: (codes == number).nonzero()[:, 0] + own.start for number, name in enumerate(SPLITS)
    }
    found = graph.with_splits(parts)
    hidden = until_then(graph, train, time_column)
    unseen = sum(int((~keep).sum()) for keep in hidden.values())
    rules = (
        f"training does not see the {unseen:,} edges that are later than {train_until}; "
        "evaluation and prediction use all edges",
        "features are scaled using only training nodes",
    )
    there = nodes_until(graph, train, time_column)
    assert there is not None  # the labelled nodes have times
    return found.replace(visible=Visible(hidden, there, rules))


def random_split(graph: Graph, ratio: Sequence[float], seed: int = 0) -> Graph:
    """The same graph, its labelled nodes split at random, class by class.

    ratio: shares of training, validation and test nodes, such as (0.6, 0.2, 0.2)
    """
    check_ratio(ratio)
    if graph.labels is None:
        raise InputError(
            f"a graph without labels cannot be split ({setting('ratio')}): nothing to train on"
        )
    task = find_task(graph.task)
    labels = GraphLabels(task, graph.labels.numpy(), graph.labelled.numpy())
    codes = draw_split(labels, ratio, seed)
    return graph.with_splits(
        {name: torch.from_numpy(np.flatnonzero(codes == n)) for n, name in enumerate(SPLITS)}
    )
