"""The dense part of graph layers: linear layers for dense and sparse inputs, norms, activations."""

from __future__ import annotations

from collections.abc import Callable
from itertools import islice, pairwise
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from vrgcn.graph.sparse import CSR, in_blocks, is_sparse
from vrgcn.models.dropout import Dropout

ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "relu": torch.relu,
    "elu": F.elu,
    "gelu": F.gelu,
    "tanh": torch.tanh,
    "softplus": F.softplus,
}


class Linear(nn.Linear):
    """x W' (+ b), Glorot-uniform, for dense or sparse CSR x."""

    def reset_parameters(self) -> None:
        nn.init.xavier_uniform_(self.weight)
        if self.bias is not None:
            nn.init.zeros_(self.bias)

    def forward(self, x: Tensor) -> Tensor:
        if not is_sparse(x):
            return super().forward(x)
        return self.with_bias(CSR.from_torch(x) @ self.weight.t())

    def with_bias(self, y: Tensor) -> Tensor:
        return y if self.bias is None else y + self.bias


class InputLinear(Linear):
    """The same layer for sparse features, and for features that are multiplied before they are
    propagated.

    `weight` is W', (in, out): what a sparse x adds up are rows in one piece, and so it is in the
    gradient and in the optimiser. In a state dict it is W, as that of any other linear layer.
    """

    def __init__(self, in_features: int, out_features: int, bias: bool = True) -> None:
        super().__init__(in_features, out_features, bias=bias)
        self.weight = nn.Parameter(self.weight.detach().t().contiguous())
        self.register_state_dict_post_hook(_to_state)
        self.register_load_state_dict_pre_hook(_from_state)

    def forward(self, x: Tensor) -> Tensor:
        return self.with_bias(self.product(x))

    def product(self, x: Tensor) -> Tensor:
        """x W', without the bias."""
        return CSR.from_torch(x) @ self.weight if is_sparse(x) else x @ self.weight

    def products(self, left: Tensor, right: Tensor) -> tuple[Tensor, Tensor]:
        """left L' and right R', without the bias; L and R are the halves of W = [L, R]."""
        if in_blocks(left) and in_blocks(right):
            both = left.above(right) @ self.weight
            return both[: left.shape[0]], both[left.shape[0] :]
        if is_sparse(left):
            # In one product: each half would have a gradient as large as all of W.
            both = CSR.from_torch(left).diagonal_with(CSR.from_torch(right)) @ self.weight
            return both[: left.shape[0]], both[left.shape[0] :]
        of_left, of_right = self.weight.chunk(2)
        return left @ of_left, right @ of_right


def _to_state(linear: nn.Module, state: dict[str, Any], prefix: str, *_: Any) -> None:
    state[f"{prefix}weight"] = state[f"{prefix}weight"].t()


def _from_state(linear: nn.Module, state: dict[str, Any], prefix: str, *_: Any) -> None:
    name = f"{prefix}weight"
    if name in state:  # it may become the weight itself
        state[name] = state[name].t().contiguous()


class BatchNorm(nn.BatchNorm1d):
    """BatchNorm1d without its count of minibatches, which nothing reads: a state dict has
    floating-point numbers alone."""

    def __init__(self, width: int) -> None:
        super().__init__(width)
        self.num_batches_tracked = None

    def _load_from_state_dict(self, *arguments: Any) -> None:  # else a count is added
        nn.Module._load_from_state_dict(self, *arguments)


NORMS: dict[str, Callable[[int], nn.Module]] = {
    "layer": nn.LayerNorm,
    "batch": BatchNorm,
    "none": lambda width: nn.Identity(),
}


class Dense(nn.Module):
    """The dense part of a graph layer: for each width, dropout, linear, norm, activation.

    widths: (input, hidden, ..., output)
    norm: a name of NORMS
    last: the end of the model, whose output is neither normalised nor activated
    drop_input: dropout on the input too; not where it was dropped before the propagation
    first: the input are features for an `InputLinear`
    """

    def __init__(
        self,
        widths: list[int],
        *,
        dropout: float,
        norm: str,
        bias: bool,
        activation: str,
        last: bool,
        drop_input: bool = True,
        first: bool = False,
    ) -> None:
        super().__init__()
        self.linears = nn.ModuleList(
            (InputLinear if first and i == 0 else Linear)(a, b, bias=bias)
            for i, (a, b) in enumerate(pairwise(widths))
        )
        inner = len(self.linears) - last
        self.norms = nn.ModuleList(NORMS[norm](width) for width in widths[1 : inner + 1])
        self.dropout = Dropout(dropout)
        self.drop_input = drop_input
        self.activation = ACTIVATIONS[activation]

    def forward(self, x: Tensor, added: Tensor | None = None) -> Tensor:
        """added: to the output of the first linear layer"""
        y: Tensor = self.linears[0](self.dropout(x) if self.drop_input else x)
        return self.after_first(y if added is None else y + added)

    def after_first(self, y: Tensor) -> Tensor:
        """Apply the layers after the first linear layer, whose output is y."""
        y = self._activated(0, y)
        for i, linear in enumerate(islice(self.linears, 1, None), start=1):
            y = self._activated(i, linear(self.dropout(y)))
        return y

    def _activated(self, i: int, y: Tensor) -> Tensor:
        """Normalised and activated, unless the model ends with linear layer i."""
        if i < len(self.norms):
            y = self.activation(self.norms[i](y))
        return y
