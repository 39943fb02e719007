"""A split that is drawn anew for a graph that is there, as `vrgcn import --ratio` draws it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from vrgcn.data.tables.spec import check_ratio
from vrgcn.data.tables.splits import draw_split
from vrgcn.files.setting_names import setting
from vrgcn.graph.graph import Graph
from vrgcn.graph.validation import SPLITS
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


def random_split(graph: Graph, ratio: Sequence[float], seed: int = 0) -> Graph:
    """The same graph, its labelled nodes split at random, class by class.

    ratio: shares of training, validation and test nodes, such as (0.6, 0.2, 0.2)
    """
    check_ratio(ratio)
    if graph.labels is None:
        raise ValueError(
            f"a graph without labels cannot be split ({setting('ratio')}): nothing to train on"
        )
    task = find_task(graph.task)
    labels = GraphLabels(task, graph.labels.numpy(), graph.labelled.numpy())
    codes = draw_split(labels, ratio, seed)
    return graph.with_splits(
        {name: torch.from_numpy(np.flatnonzero(codes == n)) for n, name in enumerate(SPLITS)}
    )
