"""Settings of a model. No torch here: the command line reads it before loading anything."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from inspect import signature
from typing import Annotated, Any, Literal

from vrgcn.files.mistakes import InputError
from vrgcn.files.plugins import MODELS, Plugins, is_plugin
from vrgcn.files.settings import Component, declared, is_number, is_whole

DROPOUT = 0.2  # usual probability of dropping
NETWORKS = ("auto", "gcn", "graphsage", "residual", "mlp", "lightgcn")


@dataclass(frozen=True)
class ModelConfig(Component):
    """The model."""

    """Group model: layers of the network."""
    model: Annotated[
        Literal[
            "auto",
            "gcn",
            "graphsage",
            "residual",
            "mlp",
            "lightgcn",
            "labels",
            "linear",
            "linear-2",
            "link",
            "mlp-2",
            "mlp-tables",
            "smoothed",
            "smoothed-mlp",
            "smoothed-trees",
            "trees",
            "trees-2",
            "trees-tables",
        ],
        Plugins(MODELS),
    ] = declared("graphsage", compared=True)
    """Architecture, such as gcn or mlp.

    gcn averages a node with its neighbours; graphsage sets its own activation beside their mean;
    residual is graphsage with layers that are added to their input, after a dense layer on the
    features; mlp uses no neighbours; lightgcn averages learned rows of nodes over all edges without
    weights, for pairs. auto: the winner of a race between several. Or a baseline, which
    `vrgcn train` fits at once: labels, which spread along the edges; linear, mlp and trees, of a
    node's own features, with -2 of two hops, with -tables also of links and labels; link, linear
    in who the neighbours are; smoothed, corrected and smoothed. Or the name of a plug-in:
    docs/guides/plugins.md."""
    hidden: int = 128
    """Width of the hidden layers.

    The embeddings of nodes whose pairs are predicted have a width of their own, --embedding."""
    layers: int = declared(2, compared=True)
    """Graph layers: how many hops a node sees.

    0, for pairs in graphs of several kinds: embeddings are learned rows, and features times
    weights; no neighbours are averaged."""
    dense: int = 1
    """Dense layers in each graph layer."""
    dropout: float | None = declared(DROPOUT, by_graph=True)
    """Dropout probability.

    Dropout comes before every dense layer. None: 0.5, or 0.2 where there are few feature
    columns."""
    order: Literal["after", "before"] = "after"
    """Dropout after the propagation (allows preprocessing) or before it (as Kipf and Welling)."""
    layer_norm: bool = True
    """LayerNorm after each dense layer except the last."""
    bias: bool = False
    """Biases in the dense layers."""
    transform_first: Literal["auto", "always", "never"] = declared("auto", by_graph=True)
    """Multiply the features by the first weights before they are propagated, for sparse features
    whose averages would be dense. auto: if that is less work."""
    centre_features: bool | None = declared(False, by_graph=True)
    """Subtract the mean of the training nodes from sparse features, and bring them to the size of
    standardised ones, in the layer that reads them: the features stay sparse, and training starts
    much faster. For labels of graphs of one kind. None: unless few nodes have labels, with a weight
    decay, or with learned rows."""
    learned_rows: bool | None = declared(False, by_graph=True)
    """Learn a row for each node that only its neighbours read, beside their features. It helps if
    the identity of neighbours carries information, as with many links and few features. None: if
    nodes have enough training nodes among their neighbours."""
    neighbour_labels: bool = False
    """Give the last layer the mean of the neighbours' training labels, without a node's own."""
    label_hops: int = 1
    """Hops of neighbour_labels. 2: also the mean over the neighbours of neighbours, without the
    part of a node's own label that returns to it."""
    linear_path: Literal["auto", "never", "given", "binary", "length"] = declared(
        "never", by_graph=True
    )
    """Add a linear function of a node's own features to the outputs: the best ridge regression of
    the training labels, fitted before training begins; the network learns what is left. Of the
    features as they are given, as 0 and 1, or in rows of length 1; auto: where numbers are
    predicted, of the form that is best on the validation nodes."""
    norm: Literal["auto", "layer", "batch", "none"] = "auto"
    """LayerNorm, BatchNorm or nothing after each dense layer except the last. auto: as --layer-norm
    says; `vrgcn train` takes nothing where few nodes have labels."""
    skip: bool = False
    """Add the input of a graph layer to its output if both are hidden: for deep models. For pairs
    in graphs of several kinds, to the embeddings too, if --embedding is --hidden."""
    jumping: Literal["none", "cat", "max"] = "none"
    """Jumping knowledge: predict from the outputs of all graph layers, side by side (cat) or their
    maximum (max), with one more dense layer."""
    node_embeddings: bool = declared(False, compared=True)
    """Learn a row for each node as its own input beside its features, in graphs of several kinds
    and where pairs are predicted. Kinds without features always have learned rows."""
    bases: int = 0
    """Matrices that the weights of all relations are sums of, in graphs with many relations. 0:
    each relation has a matrix of its own."""

    """Group pairs: scoring and training of links and ratings."""
    decoder: Literal["dot", "cosine", "lift", "distmult", "complex", "mlp"] = declared(
        "dot", of=("links", "values", "relations"), compared=True
    )
    """Score of a pair from the embeddings of its nodes: their product; the cosine between them;
    lift, for recommendations by lightgcn: a cosine that learns how much more often a pair occurs
    than by chance, and the nodes' numbers of pairs beside it; the product with a learned weight for
    each dimension; the same with complex numbers; or a small network."""
    embedding: int = declared(64, of=("links", "values", "relations"))
    """Width of the embeddings of nodes whose pairs are predicted."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.model in ("mlp", "lightgcn") and (self.learned_rows or self.neighbour_labels):
            why = "looks at no neighbours" if self.model == "mlp" else "has rows alone"
            raise InputError(
                f"model {self.model} {why}: learned_rows and neighbour_labels need graphsage or gcn"
            )
        if self.model == "residual":
            self._check_residual()
        check_sizes(hidden=self.hidden, dense=self.dense)
        check_sizes(least=0, layers=self.layers)
        if self.label_hops not in (1, 2):
            raise InputError(f"label_hops must be 1 or 2, not {self.label_hops}")
        if self.bases < 0:
            raise InputError(f"bases must be at least 0, not {self.bases}")
        check_sizes(embedding=self.embedding)
        if self.dropout is not None:
            check_dropout(self.dropout)

    def _check_residual(self) -> None:
        """Refuse settings of the other models: layers of this one are added to their input, and a
        dense layer reads the features first."""
        usual = {"order": "after", "skip": False, "jumping": "none"}
        for name, value in usual.items():
            if getattr(self, name) != value:
                raise InputError(f"model residual has no {name}: leave it out, or take graphsage")
        if self.transform_first == "always":
            raise InputError("model residual always multiplies features first: leave it out")

    @property
    def is_baseline(self) -> bool:
        """True if the model is fitted at once, and not trained by epochs."""
        return self.model not in NETWORKS and not is_plugin(MODELS, self.model)

    def settled(self) -> ModelConfig:
        """Return the config with the usual values in place of auto and None."""
        return replace(
            self,
            model="graphsage" if self.model == "auto" else self.model,
            dropout=DROPOUT if self.dropout is None else self.dropout,
            learned_rows=bool(self.learned_rows),
            centre_features=bool(self.centre_features),
        )


def arguments_for(config: ModelConfig, model: Callable[..., Any]) -> dict[str, Any]:
    """Return the settings that a model, or a function that makes one, has parameters for."""
    parameters = signature(model).parameters
    values = {each.name: getattr(config, each.name) for each in fields(config)}
    return {name: value for name, value in values.items() if name in parameters}


def check_sizes(*, least: int = 1, **sizes: int) -> None:
    """Refuse a named size of a model that is none, or is smaller than `least`."""
    for name, size in sizes.items():
        if not is_whole(size):
            raise InputError(f"{name} must be a whole number, not {size!r}")
        if size < least:
            raise InputError(f"{name} must be at least {least}, not {size}")


def check_dropout(p: float) -> None:
    """Refuse what is no probability, and that of dropping everything."""
    if not is_number(p):
        raise InputError(f"dropout must be a number, not {p!r}")
    if not 0 <= p < 1:
        raise InputError(f"dropout must be at least 0 and below 1, not {p}")
