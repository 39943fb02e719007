"""A split that is drawn anew for a graph that is there, as `vrgcn import --ratio` draws it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from vrgcn.data.tables.numbers import Numbers
from vrgcn.data.tables.splits import draw_split
from vrgcn.graph.graph import Graph
from vrgcn.graph.validation import SPLITS


@dataclass(frozen=True)
class Classes:
    """known: (nodes,) whether a node has a label; groups: (known nodes,) split each on its own"""

    known: NDArray[np.bool_]
    groups: NDArray[np.int64]

    def strata(self) -> NDArray[np.int64]:
        return self.groups


def random_split(graph: Graph, ratio: Sequence[float], seed: int = 0) -> Graph:
    """The same graph, its labelled nodes split at random, class by class.

    ratio: shares of training, validation and test nodes, such as (0.6, 0.2, 0.2)
    """
    if graph.labels is None:
        raise ValueError("a graph without labels cannot be split (--ratio): nothing to train on")
    known = graph.labelled
    labels: Classes | Numbers
    if graph.task == "regression":
        labels = Numbers(graph.labels.double().numpy())
    elif graph.multilabel:
        labels = Classes(known.numpy(), np.zeros(int(known.sum()), np.int64))
    else:
        labels = Classes(known.numpy(), graph.labels[known].numpy())
    codes = draw_split(labels, ratio, seed)
    return graph.with_splits(
        {name: torch.from_numpy(np.flatnonzero(codes == n)) for n, name in enumerate(SPLITS)}
    )
