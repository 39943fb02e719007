"""A linear function of a node's own features beside a network."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from vrgcn.graph.forms import Form, formed
from vrgcn.graph.sparse import product


class LinearPath(nn.Module):
    """formed(x) W + b: (nodes, features) -> (nodes, outputs). W and b are fitted before training,
    and training does not change them.

    form: of the features
    """

    weight: Tensor
    bias: Tensor

    def __init__(self, in_features: int, outputs: int, form: Form) -> None:
        super().__init__()
        self.form: Form = form
        self.register_buffer("weight", torch.zeros(in_features, outputs))
        self.register_buffer("bias", torch.zeros(outputs))

    def set(self, weight: Tensor, bias: Tensor) -> None:
        """Give it what a fit found."""
        self.weight.copy_(weight)
        self.bias.copy_(bias)

    def forward(self, x: Tensor) -> Tensor:
        return product(formed(x, self.form), self.weight) + self.bias
