"""Models. Ordinary PyTorch: where the textbook writes P @ h, they call `propagate(h)`.

Any module with `forward(x, propagate)` trains, is diagnosed and predicts like these; see
propagate.Propagate for what it is given. `propagation` names the matrix it is meant for.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from itertools import islice, pairwise
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
        return self.with_bias(CSR.from_torch(x) @ self.weight.t())

    def with_bias(self, y: Tensor) -> Tensor:
        return y if self.bias is None else y + self.bias


class InputLinear(Linear):
    """The same layer for features that are multiplied before they are propagated.

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


class Dense(nn.Module):
    """The dense part of a graph layer: for each width, dropout, linear, LayerNorm, activation.

    widths: (input, hidden, ..., output)
    last: the end of the model, whose output is neither normalised nor activated
    drop_input: dropout on the input too; not where it was dropped before the propagation
    transform_first: the input is multiplied before it is propagated: see `GraphModel`
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
        transform_first: bool = False,
    ) -> None:
        super().__init__()
        self.linears = nn.ModuleList(
            (Linear if i or not transform_first else InputLinear)(a, b, bias=bias)
            for i, (a, b) in enumerate(pairwise(widths))
        )
        inner = len(self.linears) - last
        self.norms = nn.ModuleList(
            nn.LayerNorm(width) if layer_norm else nn.Identity() for width in widths[1 : inner + 1]
        )
        self.dropout = Dropout(dropout)
        self.drop_input = drop_input
        self.activation = ACTIVATIONS[activation]

    def forward(self, x: Tensor) -> Tensor:
        for i, linear in enumerate(self.linears):
            x = self._activated(i, linear(self.dropout(x) if i or self.drop_input else x))
        return x

    def after_first(self, y: Tensor) -> Tensor:
        """What follows the first linear layer, whose output y is given."""
        y = self._activated(0, y)
        for i, linear in enumerate(islice(self.linears, 1, None), start=1):
            y = self._activated(i, linear(self.dropout(y)))
        return y

    def _activated(self, i: int, y: Tensor) -> Tensor:
        """Normalised and activated, unless the model ends with linear layer i."""
        if i < len(self.norms):
            y = self.activation(self.norms[i](y))
        return y


class GraphModel(nn.Module):
    """Base of GCN, GraphSAGE and MLP: `layers` graph layers of `dense` dense layers each.

    in_features, hidden, classes: widths; for one number per node, classes is 1
    dropout: probability of dropping, before every linear layer
    order: "after" drops P h (the paper's M1, which allows preprocessing), "before" drops h (M0)
    layer_norm: LayerNorm after each linear layer but the last
    transform_first: multiply the features by the first weights before they are propagated, P (x W)
        in place of (P x) W: the same numbers without dropout, by another order of the products. For
        sparse features whose averages would be dense. Dropout is of x then, in either order, and
        the first thing that the model propagates is x W, which has a history like any activation
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
        transform_first: bool = False,
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
            "bias": bias, "activation": activation, "transform_first": transform_first,
        }  # fmt: skip
        self.order = order
        self.transform_first = transform_first
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
                transform_first=transform_first and layer == 0,
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
        if self.transform_first:
            x = self._transformed(x, propagate)
        for layer in islice(self.layers, int(self.transform_first), None):
            if self.order == "before":
                x = self.dropout(x)
            x = layer(self.gather(x, propagate))
        scaled: Tensor = self.output_scale(x)
        return scaled

    def _transformed(self, x: Tensor, propagate: Any) -> Tensor:
        """The output of the first graph layer, from features that are not propagated yet."""
        layer = self.layers[0]
        assert isinstance(layer, Dense)
        linear = layer.linears[0]
        assert isinstance(linear, InputLinear)
        y = self.gather_transformed(self.dropout(x), linear, propagate)
        return layer.after_first(linear.with_bias(y))

    def gather(self, x: Tensor, propagate: Any) -> Tensor:
        """The input of a graph layer's dense part, for each node."""
        raise NotImplementedError

    def gather_transformed(self, x: Tensor, linear: InputLinear, propagate: Any) -> Tensor:
        """`gather(x, propagate)` times the linear layer's weights, by propagating products."""
        raise NotImplementedError


class GCN(GraphModel):
    """Kipf and Welling: H' = activation(P H W)."""

    def gather(self, x: Tensor, propagate: Any) -> Tensor:
        averaged: Tensor = propagate(x)
        return averaged

    def gather_transformed(self, x: Tensor, linear: InputLinear, propagate: Any) -> Tensor:
        averaged: Tensor = propagate(linear.product(x))
        return averaged


class GraphSAGE(GraphModel):
    """Hamilton et al., mean: H' = activation([H, P H] W)."""

    propagation = "mean"
    copies = 2

    def gather(self, x: Tensor, propagate: Any) -> Tensor:
        both: Tensor = propagate.beside(x)
        return both

    def gather_transformed(self, x: Tensor, linear: InputLinear, propagate: Any) -> Tensor:
        own, others = linear.products(propagate.own(x), x)
        averaged: Tensor = propagate(others)
        return own + averaged


class MLP(GraphModel):
    """The same dense layers, no graph."""

    propagation = "identity"

    def gather(self, x: Tensor, propagate: Any) -> Tensor:
        return x

    def gather_transformed(self, x: Tensor, linear: InputLinear, propagate: Any) -> Tensor:
        return linear.product(x)


MODELS: dict[str, type[GraphModel]] = {"gcn": GCN, "graphsage": GraphSAGE, "mlp": MLP}


def build_model(config: ModelConfig, in_features: int, classes: int, seed: int) -> GraphModel:
    """The model with weights from the seed, whatever was drawn before.

    `transform_first` is "auto" where nobody has looked at the graph: the features are propagated
    """
    arguments = asdict(config)
    arguments["transform_first"] = config.transform_first == "always"
    kind = MODELS[arguments.pop("model")]
    with default_generator(torch.device("cpu"), seed):
        return kind(in_features, classes=classes, **arguments)
