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
from vrgcn.graph.sparse import CSR, in_blocks, is_sparse
from vrgcn.models.config import DROPOUT, ModelConfig, check_sizes
from vrgcn.models.dropout import Dropout
from vrgcn.models.node_table import NodeTable
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
JUMPING = ("none", "cat", "max")


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


_DEVIATION = 0.01  # initial standard deviation of learned rows


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
    sparse_features: keep the first weights row by row, which products with sparse features read
    nodes: of the graph that it is trained on, where it has tables of them
    learned_rows: the first linear layer's output gets the sum of the neighbours' learned rows over
        the root of their number. A node's own row reaches it by a detour at most: at once, it would
        learn labels by heart
    node_embeddings: the first linear layer has a part for learned rows that are the nodes' own
        input: their averages, and in GraphSAGE the node's own row, read as they are
    neighbour_labels: the last graph layer's first linear layer has a part for the mean of the
        neighbours' training labels, `set_labels` having told them
    label_hops: of neighbour_labels; 2: and for the mean over the neighbours of neighbours, where
        what returns to a node of its own label is left out
    norm: "layer", "batch" or "none" after each linear layer but the last; "auto": layer_norm says
    skip: add a graph layer's input to its output, where both are hidden
    jumping: "cat" puts the outputs of all graph layers side by side, "max" takes their largest
        numbers, and one more linear layer makes the model's outputs of them
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
        dropout: float = DROPOUT,
        order: str = ModelConfig.order,
        layer_norm: bool = ModelConfig.layer_norm,
        bias: bool = ModelConfig.bias,
        activation: str = "relu",
        transform_first: bool = False,
        nodes: int = 0,
        learned_rows: bool = False,
        neighbour_labels: bool = False,
        label_hops: int = ModelConfig.label_hops,
        norm: str = ModelConfig.norm,
        skip: bool = ModelConfig.skip,
        jumping: str = ModelConfig.jumping,
        sparse_features: bool = False,
        node_embeddings: bool = False,
    ) -> None:
        super().__init__()
        check_sizes(in_features=in_features, hidden=hidden, classes=classes)
        check_sizes(layers=layers, dense=dense)
        if learned_rows or neighbour_labels or node_embeddings:
            check_sizes(nodes=nodes)
        if label_hops not in (1, 2):
            raise ValueError(f"label_hops must be 1 or 2, not {label_hops!r}")
        if order not in ("after", "before"):
            raise ValueError(f"order must be 'after' or 'before', not {order!r}")
        if activation not in ACTIVATIONS:
            raise ValueError(f"activation {activation!r} is none of {', '.join(ACTIVATIONS)}")
        if norm not in ("auto", *NORMS):
            raise ValueError(f"norm {norm!r} is none of auto, {', '.join(NORMS)}")
        if jumping not in JUMPING:
            raise ValueError(f"jumping {jumping!r} is none of {', '.join(JUMPING)}")
        self.arguments: dict[str, Any] = {
            "in_features": in_features, "hidden": hidden, "classes": classes, "layers": layers,
            "dense": dense, "dropout": dropout, "order": order, "layer_norm": layer_norm,
            "bias": bias, "activation": activation, "transform_first": transform_first,
            "nodes": nodes, "learned_rows": learned_rows, "neighbour_labels": neighbour_labels,
            "label_hops": label_hops, "norm": norm, "skip": skip, "jumping": jumping,
            "sparse_features": sparse_features, "node_embeddings": node_embeddings,
        }  # fmt: skip
        self.order = order
        self.transform_first = transform_first
        self.skip, self.jumping = skip, jumping
        self.label_hops = label_hops
        self.dropout = Dropout(dropout)
        if norm == "auto":
            norm = "layer" if layer_norm else "none"
        ends = jumping == "none"  # with the last graph layer
        self.layers = nn.ModuleList(
            Dense(
                [
                    (in_features if layer == 0 else hidden) * self.copies,
                    *[hidden] * (dense - 1),
                    classes if ends and layer == layers - 1 else hidden,
                ],
                dropout=dropout,
                norm=norm,
                bias=bias,
                activation=activation,
                last=ends and layer == layers - 1,
                drop_input=order == "after",
                first=(transform_first or sparse_features) and layer == 0,
            )
            for layer in range(layers)
        )
        self.head: Linear | None = None
        if not ends:
            self.head = Linear(hidden * (layers if jumping == "cat" else 1), classes, bias=bias)
        self.output_scale = OutputScale()
        self.learned: NodeTable | None = None
        self.labels: NodeTable | None = None
        # The width of the last graph layer's first output.
        last = hidden if dense > 1 or not ends else classes
        if learned_rows:
            self.learned = NodeTable.drawn(nodes, hidden if layers > 1 else last, _DEVIATION)
        self.inputs: NodeTable | None = None
        if node_embeddings:
            self.inputs = NodeTable.drawn(nodes, hidden, hidden**-0.5, input=True)
            width = hidden if dense > 1 or layers > 1 else last
            self.of_inputs = Linear(hidden * self.copies, width, bias=False)
        if neighbour_labels:
            # A column for each output, and one that tells known labels from unknown ones.
            self.labels = NodeTable(torch.zeros(nodes, classes + 1), learned=False)
            self.of_labels = Linear((classes + 1) * label_hops, last, bias=False)

    def set_labels(self, nodes: Tensor, columns: Tensor) -> None:
        """Tell it the labels of the training nodes, where it takes those of neighbours.

        nodes: (training nodes,) ids; columns: (training nodes, outputs)
        """
        if self.labels is None:
            return
        rows = torch.zeros_like(self.labels.rows)
        known = torch.cat([columns, columns.new_ones(len(columns), 1)], dim=1)
        rows[nodes.to(rows.device)] = known.to(rows.device, rows.dtype)
        self.labels.set(rows)

    def set_output_scale(self, mean: float, deviation: float) -> None:
        """From now on the outputs are multiplied by `deviation` and moved by `mean`.

        `fit` does this for numbers, so that the outputs are in the labels' unit.
        """
        self.output_scale.set(mean, deviation, next(self.parameters()).device)

    def forward(self, x: Tensor, propagate: Any) -> Tensor:
        seen: list[Tensor] = []
        for place, layer in enumerate(self.layers):
            assert isinstance(layer, Dense)
            given = x
            if place == 0 and self.transform_first:
                y = self._transformed(x, layer, propagate)
                added = self._of_tables(place, propagate)
                x = layer.after_first(y if added is None else y + added)
            else:
                given = self.dropout(x) if self.order == "before" else x
                gathered = self.gather(given, propagate)
                x = layer(gathered, self._of_tables(place, propagate))
            if self.skip and place > 0 and (self.head is not None or layer is not self.layers[-1]):
                x = x + propagate.own(given)
            seen.append(x)
        if self.head is not None:
            x = self.head(self.dropout(self._jump([propagate.own(h) for h in seen])))
        scaled: Tensor = self.output_scale(x)
        return scaled

    def _jump(self, outputs: list[Tensor]) -> Tensor:
        """The head's input, from the outputs of all graph layers for the nodes of the minibatch."""
        if self.jumping == "cat":
            return torch.cat(outputs, dim=-1)
        return torch.stack(outputs).amax(0)

    def _transformed(self, x: Tensor, layer: Dense, propagate: Any) -> Tensor:
        """The output of the first linear layer, from features that are not propagated yet."""
        linear = layer.linears[0]
        assert isinstance(linear, InputLinear)
        return linear.with_bias(self.gather_transformed(self.dropout(x), linear, propagate))

    def _of_tables(self, place: int, propagate: Any) -> Tensor | None:
        """What tables of nodes add to the first linear layer of a graph layer; None: nothing."""
        added = None
        if place == 0 and self.learned is not None:
            added = self._of_learned(self.learned, propagate)
        if place == 0 and self.inputs is not None:
            rows: Tensor = self.of_inputs(self.dropout(self.gather_table(self.inputs, propagate)))
            added = rows if added is None else added + rows
        if place == len(self.layers) - 1 and self.labels is not None:
            averages = propagate.table(self.labels.rows)
            if self.label_hops == 2:
                averages = torch.cat([averages, propagate.second_hop(self.labels.rows)], dim=1)
            told: Tensor = self.of_labels(averages)
            added = told if added is None else added + told
        return added

    def _of_learned(self, learned: NodeTable, propagate: Any) -> Tensor:
        mean = propagate.table(learned.rows)
        return self.dropout(mean * propagate.degrees()[:, None].to(mean.dtype).sqrt())

    def gather(self, x: Tensor, propagate: Any) -> Tensor:
        """The input of a graph layer's dense part, for each node."""
        raise NotImplementedError

    def gather_transformed(self, x: Tensor, linear: InputLinear, propagate: Any) -> Tensor:
        """`gather(x, propagate)` times the linear layer's weights, by propagating products."""
        raise NotImplementedError

    def gather_table(self, table: NodeTable, propagate: Any) -> Tensor:
        """`gather` of learned rows, read from the table itself, for the nodes at hand."""
        raise NotImplementedError


class GCN(GraphModel):
    """Kipf and Welling: H' = activation(P H W)."""

    def gather(self, x: Tensor, propagate: Any) -> Tensor:
        averaged: Tensor = propagate(x)
        return averaged

    def gather_transformed(self, x: Tensor, linear: InputLinear, propagate: Any) -> Tensor:
        averaged: Tensor = propagate(linear.product(x))
        return averaged

    def gather_table(self, table: NodeTable, propagate: Any) -> Tensor:
        averaged: Tensor = propagate.table(table.rows, own=True)
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

    def gather_table(self, table: NodeTable, propagate: Any) -> Tensor:
        own = table.take(propagate.nodes)
        return torch.cat([own, propagate.table(table.rows, own=True)], dim=1)


class MLP(GraphModel):
    """The same dense layers, no graph."""

    propagation = "identity"

    def gather(self, x: Tensor, propagate: Any) -> Tensor:
        return x

    def gather_transformed(self, x: Tensor, linear: InputLinear, propagate: Any) -> Tensor:
        return linear.product(x)

    def gather_table(self, table: NodeTable, propagate: Any) -> Tensor:
        return table.take(propagate.nodes)


MODELS: dict[str, type[GraphModel]] = {"gcn": GCN, "graphsage": GraphSAGE, "mlp": MLP}


def build_model(
    config: ModelConfig,
    in_features: int,
    classes: int,
    seed: int,
    nodes: int = 0,
    *,
    sparse_features: bool = False,
) -> GraphModel:
    """Build the model with weights that depend only on the seed.

    nodes: of the graph, for models with a table of them
    sparse_features: see `GraphModel`

    If `transform_first` is still "auto", the features are propagated first; other settings that
    are not settled have their usual values.
    """
    config = config.settled()
    arguments = asdict(config)
    # Settings of relational models alone, and of models of pairs, which are made around this one.
    for name in ("bases", "decoder", "embedding"):
        del arguments[name]
    arguments["transform_first"] = config.transform_first == "always"
    tables = config.learned_rows or config.neighbour_labels or config.node_embeddings
    kind = MODELS[arguments.pop("model")]
    with default_generator(torch.device("cpu"), seed):
        return kind(
            in_features,
            classes=classes,
            nodes=nodes if tables else 0,
            sparse_features=sparse_features,
            **arguments,
        )
