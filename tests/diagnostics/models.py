"""A model in which a pass could leave a trace."""

from __future__ import annotations

import torch
from torch import nn


class Normed(nn.Module):
    """Dropout before and after, and BatchNorm, whose statistics training changes."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.first = nn.Linear(5, 8)
        self.norm = nn.BatchNorm1d(8)
        self.drop = nn.Dropout(0.5)
        self.last = nn.Linear(8, 3)
        self.double()

    def forward(self, x, propagate):
        h = torch.relu(self.norm(self.first(propagate(x))))
        return self.last(self.drop(propagate(self.drop(h))))
