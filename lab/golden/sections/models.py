"""Custom models, as in the documents."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn


class Residual(nn.Module):
    """A model with residual connections and the dropout of torch.nn."""

    propagation = "mean"

    def __init__(self, features: int, hidden: int, classes: int, depth: int = 2) -> None:
        super().__init__()
        self.arguments = {
            **{"features": features, "hidden": hidden},
            **{"classes": classes, "depth": depth},
        }
        self.first = nn.Linear(features, hidden)
        self.layers = nn.ModuleList(nn.Linear(hidden, hidden) for _ in range(depth))
        self.last = nn.Linear(hidden, classes)
        self.dropout = nn.Dropout(0.2)

    def forward(self, x: torch.Tensor, propagate: Any) -> torch.Tensor:
        """Return the outputs of the last level's nodes, (nodes, classes)."""
        h = torch.relu(self.first(x))
        for layer in self.layers:
            h = propagate.own(h) + torch.relu(layer(self.dropout(propagate(h))))
        return self.last(h)


class Relational(nn.Module):
    """A model with two matrices over the same nodes."""

    def __init__(self, features: int, hidden: int, classes: int) -> None:
        super().__init__()
        widths = ((features, hidden), (hidden, classes))
        self.cites = nn.ModuleList(nn.Linear(*pair) for pair in widths)
        self.knows = nn.ModuleList(nn.Linear(*pair) for pair in widths)

    def forward(self, h: torch.Tensor, propagate: Any) -> torch.Tensor:
        """Return the outputs of the last level's nodes, (nodes, classes)."""
        for level, (cites, knows) in enumerate(zip(self.cites, self.knows, strict=True)):
            h = torch.relu(h) if level else h
            h = cites(propagate(h, over="cites")) + knows(propagate(h, over="knows"))
        return h
