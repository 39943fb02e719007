"""Rows of X: a table of features, a `Graph`, or numbers of the nodes of a fixed graph.

Each form is converted to a graph and the node of each row.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from vrgcn.files.mistakes import InputError
from vrgcn.graph.graph import Graph
from vrgcn.graph.names import Names
from vrgcn.graph.sparse import layout_word, stored
from vrgcn.graph.validation import check_features, check_nodes


@dataclass(frozen=True)
class InputRows:
    """Rows of X as nodes of a graph.

    graph: the graph of the nodes
    nodes: (rows,) the node of each row; None if row i is node i
    """

    graph: Graph
    nodes: NDArray[np.int64] | None = None

    def __len__(self) -> int:
        return self.graph.num_nodes if self.nodes is None else len(self.nodes)

    def spread(self, values: NDArray[Any], elsewhere: Any) -> Tensor:
        """Return (nodes, ...): the values (rows, ...) at the nodes of the rows, `elsewhere` at
        others."""
        if self.nodes is None:
            return torch.from_numpy(np.array(values))
        spread = np.full((self.graph.num_nodes, *values.shape[1:]), elsewhere, values.dtype)
        spread[self.nodes] = values
        return torch.from_numpy(spread)


def rows_of_table(
    X: Any, edge_index: Any, edge_weight: Any, undirected: bool, names: list[str] | None
) -> InputRows:
    """Convert a table to rows.

    X: (nodes, features), an array or a scipy matrix; edge_index: None for no edges
    """
    if edge_index is None and edge_weight is not None:
        raise InputError("edge_weight needs edge_index: the weights are of its edges")
    edges = np.empty((2, 0), np.int64) if edge_index is None else edge_index
    return InputRows(
        Graph(
            edges,
            writable(X),
            edge_weight=edge_weight,
            undirected=undirected,
            names=Names(features=names),
        )
    )


def rows_of_nodes(graph: Graph, X: Any) -> InputRows:
    """Convert numbers of nodes to rows.

    X: (rows,) or (rows, 1) numbers of nodes of the graph, counted from 0
    """
    numbers = np.asarray(X)
    if numbers.ndim == 2 and numbers.shape[1] == 1:
        numbers = numbers[:, 0]
    if numbers.ndim != 1 or numbers.dtype.kind not in "iu":
        raise InputError(
            "with a fixed graph (graph=...) X is the numbers of its nodes, such as "
            f"np.arange({graph.num_nodes}), not {numbers.dtype} of shape {numbers.shape}"
        )
    return InputRows(graph, check_nodes(numbers.astype(np.int64), graph.num_nodes).numpy())


def check_different(nodes: NDArray[np.int64] | None) -> None:
    """Raise if a node occurs twice in the training rows."""
    if nodes is None:
        return
    different, counts = np.unique(nodes, return_counts=True)
    if len(different) < len(nodes):
        raise InputError(
            f"X names node {different[counts > 1][0]} more than once; to let a node count more, "
            "give sample_weight"
        )


def same_features(graph: Graph, X: Any) -> bool:
    """Return True if X (nodes, features) equals the graph's features, in the precision of the
    graph."""
    features = check_features(writable(X))
    layouts = (layout_word(m) for m in (features, graph.features))
    if features.shape != graph.features.shape or len(set(layouts)) > 1:
        return False
    parts, others = stored(features), stored(graph.features)
    return len(parts) == len(others) and all(map(torch.equal, parts, others))


def writable(X: Any) -> Any:
    """Return a copy of a read-only array, because PyTorch warns about such arrays."""
    return X.copy() if isinstance(X, np.ndarray) and not X.flags.writeable else X
