"""A table with one row for every node of the graph that a model is trained on."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn


class NodeTable(nn.Module):
    """Rows that belong to nodes: a parameter (learned rows), or numbers that are known.

    rows: (nodes, width)
    kind: the kind that the nodes are of; None: all nodes of the graph
    input: whether the rows are the nodes' own input; else neighbours read them beside other
        features

    A saved model keeps the rows under the user's node ids. On another graph, rows follow their
    nodes, and a node that the model has not seen has a row of zeros.
    """

    rows: Tensor

    def __init__(
        self, rows: Tensor, *, learned: bool, kind: str | None = None, input: bool = False
    ) -> None:
        super().__init__()
        self.kind = kind
        self.input = input
        if learned:
            self.rows = nn.Parameter(rows)
        else:
            self.register_buffer("rows", rows)

    def take(self, nodes: Tensor) -> Tensor:
        """(nodes, width) rows of some nodes; their gradient is sparse."""
        return F.embedding(nodes, self.rows, sparse=True)

    def set(self, rows: Tensor) -> None:
        """Put other rows in place of these, perhaps of more nodes or of fewer."""
        learned = isinstance(self.rows, nn.Parameter)
        self.rows = nn.Parameter(rows) if learned else rows

    @staticmethod
    def drawn(
        nodes: int,
        width: int,
        deviation: float,
        kind: str | None = None,
        *,
        input: bool = False,
    ) -> NodeTable:
        """Rows to be learned, drawn from PyTorch's default generator."""
        rows = torch.randn(nodes, width) * deviation
        return NodeTable(rows, learned=True, kind=kind, input=input)


def node_tables(model: nn.Module) -> dict[str, NodeTable]:
    """The tables of a model, by the names of their modules."""
    return {name: part for name, part in model.named_modules() if isinstance(part, NodeTable)}
