"""Models. Ordinary PyTorch: where the textbook writes P @ h, they call `propagate(h)`.

Any module with `forward(x, propagate)` trains, is diagnosed and predicts like these; see
propagate.Propagate for what it is given. `propagation` names the matrix it is meant for.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from itertools import pairwise
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from vrgcn.graph.randomness import default_generator
from vrgcn.graph.sparse import CSR, is_sparse
from vrgcn.models.config import ModelConfig, check_sizes
from vrgcn.models.dropout import Dropout
from vrgcn.models.output_scale import OutputScale

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
        y = CSR.from_torch(x) @ self.weight.t()
        return y if self.bias is None else y + self.bias


class Dense(nn.Module):
    """The dense part of a graph layer: for each width, dropout, linear, LayerNorm, activation.

    widths: (input, hidden, ..., output)
    last: the end of the model, whose output is neither normalised nor activated
    drop_input: dropout on the input too; not where it was dropped before the propagation
    """

    def __init__(
        self,
        widths: list[int],
        *,
        dropout: float,
        layer_norm: bool,
        bias: bool,
        activation: str,
        last: bool,
        drop_input: bool = True,
    ) -> None:
        super().__init__()
        self.linears = nn.ModuleList(Linear(a, b, bias=bias) for a, b in pairwise(widths))
        inner = len(self.linears) - last
        self.norms = nn.ModuleList(
            nn.LayerNorm(width) if layer_norm else nn.Identity() for width in widths[1 : inner + 1]
        )
        self.dropout = Dropout(dropout)
        self.drop_input = drop_input
        self.activation = ACTIVATIONS[activation]

    def forward(self, x: Tensor) -> Tensor:
        for i, linear in enumerate(self.linears):
            x = linear(self.dropout(x) if i or self.drop_input else x)
            if i < len(self.norms):
                x = self.activation(self.norms[i](x))
        return x


class GraphModel(nn.Module):
    """Base of GCN, GraphSAGE and MLP: `layers` graph layers of `dense` dense layers each.

    in_features, hidden, classes: widths; for one number per node, classes is 1
    dropout: probability of dropping, before every linear layer
    order: "after" drops P h (the paper's M1, which allows preprocessing), "before" drops h (M0)
    layer_norm: LayerNorm after each linear layer but the last
    """

    propagation = "gcn"
    copies = 1  # how many times the width of h a graph layer's dense part takes in

    def __init__(
        self,
        in_features: int,
        hidden: int,
        classes: int,
        *,
        layers: int = ModelConfig.layers,
        dense: int = ModelConfig.dense,
        dropout: float = ModelConfig.dropout,
        order: str = ModelConfig.order,
        layer_norm: bool = ModelConfig.layer_norm,
        bias: bool = ModelConfig.bias,
        activation: str = "relu",
    ) -> None:
        super().__init__()
        check_sizes(in_features=in_features, hidden=hidden, classes=classes)
        check_sizes(layers=layers, dense=dense)
        if order not in ("after", "before"):
            raise ValueError(f"order must be 'after' or 'before', not {order!r}")
        if activation not in ACTIVATIONS:
            raise ValueError(f"activation {activation!r} is none of {', '.join(ACTIVATIONS)}")
        self.arguments: dict[str, Any] = {
            "in_features": in_features, "hidden": hidden, "classes": classes, "layers": layers,
            "dense": dense, "dropout": dropout, "order": order, "layer_norm": layer_norm,
            "bias": bias, "activation": activation,
        }  # fmt: skip
        self.order = order
        self.dropout = Dropout(dropout)
        self.layers = nn.ModuleList(
            Dense(
                [
                    (in_features if layer == 0 else hidden) * self.copies,
                    *[hidden] * (dense - 1),
                    classes if layer == layers - 1 else hidden,
                ],
                dropout=dropout,
                layer_norm=layer_norm,
                bias=bias,
                activation=activation,
                last=layer == layers - 1,
                drop_input=order == "after",
            )
            for layer in range(layers)
        )
        self.output_scale = OutputScale()

    def set_output_scale(self, mean: float, deviation: float) -> None:
        """From now on the outputs are multiplied by `deviation` and moved by `mean`.

        `fit` does this for numbers, so that the outputs are in the labels' unit.
        """
        self.output_scale.set(mean, deviation, next(self.parameters()).device)

    def forward(self, x: Tensor, propagate: Callable[[Tensor], Tensor]) -> Tensor:
        for layer in self.layers:
            if self.order == "before":
                x = self.dropout(x)
            x = layer(self.gather(x, propagate))
        scaled: Tensor = self.output_scale(x)
        return scaled

    def gather(self, x: Tensor, propagate: Any) -> Tensor:
        """The input of a graph layer's dense part, for each node."""
        raise NotImplementedError


class GCN(GraphModel):
    """Kipf and Welling: H' = activation(P H W)."""

    def gather(self, x: Tensor, propagate: Any) -> Tensor:
        averaged: Tensor = propagate(x)
        return averaged


class GraphSAGE(GraphModel):
    """Hamilton et al., mean: H' = activation([H, P H] W)."""

    propagation = "mean"
    copies = 2

    def gather(self, x: Tensor, propagate: Any) -> Tensor:
        both: Tensor = propagate.beside(x)
        return both


class MLP(GraphModel):
    """The same dense layers, no graph."""

    propagation = "identity"

    def gather(self, x: Tensor, propagate: Any) -> Tensor:
        return x


MODELS: dict[str, type[GraphModel]] = {"gcn": GCN, "graphsage": GraphSAGE, "mlp": MLP}


def build_model(config: ModelConfig, in_features: int, classes: int, seed: int) -> GraphModel:
    """The model with weights from the seed, whatever was drawn before."""
    arguments = asdict(config)
    kind = MODELS[arguments.pop("model")]
    with default_generator(torch.device("cpu"), seed):
        return kind(in_features, classes=classes, **arguments)
