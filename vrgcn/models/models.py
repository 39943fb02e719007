"""Models. Ordinary PyTorch: where the textbook writes P @ h, they call `propagate(h)`.

Any module with `forward(x, propagate)` trains, is diagnosed and predicts like these; see
propagate.Propagate for what it is given. `propagation` names the matrix it is meant for.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from vrgcn.files.mistakes import InputError
from vrgcn.files.plugins import MODELS as PLUGINS
from vrgcn.files.plugins import check_own
from vrgcn.graph.forms import FORMS
from vrgcn.graph.randomness import default_generator
from vrgcn.models.config import DROPOUT, ModelConfig, arguments_for, check_sizes
from vrgcn.models.dense import ACTIVATIONS, NORMS, Dense, Dropout, InputLinear, Linear, OutputScale
from vrgcn.models.linear_path import LinearPath
from vrgcn.models.node_table import NodeTable
from vrgcn.models.plugins import build_plugin

JUMPING = ("none", "cat", "max")
_DEVIATION = 0.01  # initial standard deviation of learned rows


class GraphModel(nn.Module):
    """Base of the models: `layers` graph layers of `dense` dense layers each.

    in_features, hidden, classes: widths; for one number per node, classes is 1
    dropout: probability of dropping, before every linear layer
    order: "after" drops P h (the paper's M1, which allows preprocessing), "before" drops h (M0)
    layer_norm: LayerNorm after each linear layer but the last
    activation: a name of ACTIVATIONS; None: the model's usual one
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
    usual_activation = "relu"
    embeds = False  # whether a dense layer reads the features before they are propagated

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
        activation: str | None = None,
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
        linear_path: str = ModelConfig.linear_path,
    ) -> None:
        super().__init__()
        check_sizes(in_features=in_features, hidden=hidden, classes=classes)
        check_sizes(layers=layers, dense=dense)
        if learned_rows or neighbour_labels or node_embeddings:
            check_sizes(nodes=nodes)
        if label_hops not in (1, 2):
            raise InputError(f"label_hops must be 1 or 2, not {label_hops!r}")
        if order not in ("after", "before"):
            raise InputError(f"order must be 'after' or 'before', not {order!r}")
        activation = activation or self.usual_activation
        if activation not in ACTIVATIONS:
            raise InputError(f"activation {activation!r} is none of {', '.join(ACTIVATIONS)}")
        if norm not in ("auto", *NORMS):
            raise InputError(f"norm {norm!r} is none of auto, {', '.join(NORMS)}")
        if jumping not in JUMPING:
            raise InputError(f"jumping {jumping!r} is none of {', '.join(JUMPING)}")
        self.arguments: dict[str, Any] = {
            "in_features": in_features, "hidden": hidden, "classes": classes, "layers": layers,
            "dense": dense, "dropout": dropout, "order": order, "layer_norm": layer_norm,
            "bias": bias, "activation": activation, "transform_first": transform_first,
            "nodes": nodes, "learned_rows": learned_rows, "neighbour_labels": neighbour_labels,
            "label_hops": label_hops, "norm": norm, "skip": skip, "jumping": jumping,
            "sparse_features": sparse_features, "node_embeddings": node_embeddings,
            "linear_path": linear_path,
        }  # fmt: skip
        self.order = order
        self.transform_first = transform_first
        self.skip, self.jumping = skip, jumping
        self.label_hops = label_hops
        self.dropout = Dropout(dropout)
        if norm == "auto":
            norm = "layer" if layer_norm else "none"
        self.head: Linear | None = None
        self.build_layers(norm)
        self.output_scale = OutputScale()
        self.linear: LinearPath | None = None
        if linear_path in FORMS:
            self.linear = LinearPath(in_features, classes, linear_path)
            nn.init.zeros_(self.last_linear().weight)  # the outputs begin as those of the path
        self.learned: NodeTable | None = None
        self.labels: NodeTable | None = None
        if learned_rows:
            self.learned = NodeTable.drawn(nodes, self.width_of_rows(), _DEVIATION)
        self.inputs: NodeTable | None = None
        if node_embeddings:
            self.inputs = NodeTable.drawn(nodes, hidden, hidden**-0.5, input=True)
            width = hidden if dense > 1 else self.width_of_rows()
            self.of_inputs = Linear(hidden * self.copies, width, bias=False)
        if neighbour_labels:
            # A column for each output, and one that tells known labels from unknown ones.
            self.labels = NodeTable(torch.zeros(nodes, classes + 1), learned=False)
            width = (classes + 1) * label_hops
            self.of_labels = Linear(width, self.width_of_labels(), bias=False)

    def build_layers(self, norm: str) -> None:
        """Build the layers of `self.arguments`. norm: a name of NORMS"""
        given = self.arguments
        hidden, layers, jumping = given["hidden"], given["layers"], given["jumping"]
        ends = jumping == "none"  # with the last graph layer
        self.layers = nn.ModuleList(
            Dense(
                [
                    (given["in_features"] if layer == 0 else hidden) * self.copies,
                    *[hidden] * (given["dense"] - 1),
                    given["classes"] if ends and layer == layers - 1 else hidden,
                ],
                dropout=given["dropout"],
                norm=norm,
                bias=given["bias"],
                activation=given["activation"],
                last=ends and layer == layers - 1,
                drop_input=given["order"] == "after",
                first=(given["transform_first"] or given["sparse_features"]) and layer == 0,
            )
            for layer in range(layers)
        )
        if not ends:
            width = hidden * (layers if jumping == "cat" else 1)
            self.head = Linear(width, given["classes"], bias=given["bias"])

    def last_linear(self) -> Linear:
        """The layer whose outputs are the model's."""
        if self.head is not None:
            return self.head
        dense = self.layers[-1]
        assert isinstance(dense, Dense)
        last = dense.linears[-1]
        assert isinstance(last, Linear)
        return last

    def _ended(self, y: Tensor, features: Tensor, propagate: Any) -> Tensor:
        """The outputs, from those of the last layer. features: of level 0"""
        if self.linear is not None:
            y = y + self.linear(propagate.own(features))
        scaled: Tensor = self.output_scale(y)
        return scaled

    def width_of_rows(self) -> int:
        """Width of learned rows: that of the first linear layer's output."""
        given = self.arguments
        return int(given["hidden"] if given["layers"] > 1 else self.width_of_labels())

    def width_of_labels(self) -> int:
        """Width of what neighbours' labels add to: the last graph layer's first output."""
        given = self.arguments
        hidden = given["dense"] > 1 or given["jumping"] != "none"
        return int(given["hidden"] if hidden else given["classes"])

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
        features, seen = x, list[Tensor]()
        for index, layer in enumerate(self.layers):
            assert isinstance(layer, Dense)
            given = x
            if index == 0 and self.transform_first:
                y = self._transformed(x, layer, propagate)
                added = self._of_tables(index, propagate)
                x = layer.after_first(y if added is None else y + added)
            else:
                given = self.dropout(x) if self.order == "before" else x
                gathered = self.gather(given, propagate)
                x = layer(gathered, self._of_tables(index, propagate))
            if self.skip and index > 0 and (self.head is not None or layer is not self.layers[-1]):
                x = x + propagate.own(given)
            seen.append(x)
        if self.head is not None:
            x = self.head(self.dropout(self._jump([propagate.own(h) for h in seen])))
        return self._ended(x, features, propagate)

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
            told = self._of_labels(self.labels, propagate)
            added = told if added is None else added + told
        return added

    def _of_labels(self, labels: NodeTable, propagate: Any) -> Tensor:
        averages = propagate.table(labels.rows)
        if self.label_hops == 2:
            averages = torch.cat([averages, propagate.second_hop(labels.rows)], dim=1)
        told: Tensor = self.of_labels(averages)
        return told

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


class Residual(GraphModel):
    """GraphSAGE whose graph layers are added to their input, after a dense layer of its own:

        h  = gelu(x W + b)
        h += W2 gelu(W1 [n, P n] + b1) + b2,  n = norm(h)    in each graph layer
        y  = W3 norm(h) + b3

    Nothing on the way from the features to the outputs is cut off or normalised, so that many
    layers learn, and a node's own features remain beside the averages of its neighbours (Platonov
    et al., 2023). Linear layers have biases, and each graph layer has `dense` + 1 of them. Learned
    rows are added in the first graph layer, neighbours' labels to the outputs. The model has no
    order, transform_first, skip and jumping.
    """

    propagation = "mean"
    usual_activation = "gelu"
    embeds = True

    def build_layers(self, norm: str) -> None:
        given = self.arguments
        hidden, kind = given["hidden"], InputLinear if given["sparse_features"] else Linear
        self.activation = ACTIVATIONS[given["activation"]]
        self.first = kind(given["in_features"], hidden)
        self.norms = nn.ModuleList(NORMS[norm](hidden) for _ in range(given["layers"] + 1))
        self.layers = nn.ModuleList(
            Dense(
                [2 * hidden, *[hidden] * (given["dense"] + 1)],
                dropout=given["dropout"],
                norm="none",
                bias=True,
                activation=given["activation"],
                last=True,
                drop_input=False,
            )
            for _ in range(given["layers"])
        )
        self.head = Linear(hidden, given["classes"])

    def width_of_rows(self) -> int:
        return int(self.arguments["hidden"])

    def width_of_labels(self) -> int:
        return int(self.arguments["classes"])

    def forward(self, x: Tensor, propagate: Any) -> Tensor:
        h = self.dropout(self.activation(self.first(x)))
        for index, layer in enumerate(self.layers):
            gathered = propagate.beside(self.norms[index](h))
            added = None
            if index == 0 and self.learned is not None:
                added = self._of_learned(self.learned, propagate)
            h = h[: gathered.shape[0]] + self.dropout(layer(gathered, added))
        assert self.head is not None
        y: Tensor = self.head(self.norms[-1](h))
        if self.labels is not None:
            y = y + self._of_labels(self.labels, propagate)
        return self._ended(y, x, propagate)


MODELS: dict[str, type[GraphModel]] = {
    "gcn": GCN,
    "graphsage": GraphSAGE,
    "residual": Residual,
    "mlp": MLP,
}


def build_model(
    config: ModelConfig,
    in_features: int,
    classes: int,
    seed: int,
    nodes: int = 0,
    *,
    sparse_features: bool = False,
) -> nn.Module:
    """Build the model with weights that depend only on the seed.

    nodes: of the graph, for models with a table of them
    sparse_features: see `GraphModel`

    If `transform_first` is still "auto", the features are propagated first; other settings that
    are not settled have their usual values.
    """
    config = config.settled()
    if config.model not in MODELS:
        return build_plugin(config, in_features, classes, seed)
    check_own(PLUGINS, config.model)
    kind = MODELS[config.model]
    first = config.transform_first == "always"
    arguments = arguments_for(config, kind) | {"transform_first": first}
    if config.linear_path == "auto":  # chosen by a fit: runs/building.py
        arguments["linear_path"] = "never"
    tables = config.learned_rows or config.neighbour_labels or config.node_embeddings
    with default_generator(torch.device("cpu"), seed):
        return kind(
            in_features,
            classes=classes,
            nodes=nodes if tables else 0,
            sparse_features=sparse_features,
            **arguments,
        )
