"""Which layers of PyG can be trained with histories, and what to use in place of the others."""

from __future__ import annotations

from typing import Any

from torch import nn
from torch_geometric.nn.conv.message_passing import MessagePassing

from vrgcn.files.mistakes import InputError
from vrgcn.pyg.adapters import ADAPTERS, Adapter, aggregation

# Layers by the name of their class, and what they do that fixed weights cannot.
_ATTENTION = (
    "weighs neighbours by attention, which depends on what they compute, and histories need "
    "averages of fixed weights: use SAGEConv or GraphConv"
)
_ALL_NODES = "normalises over all nodes of the graph, and a minibatch has a part of them: "
_BATCH_NORM = "use torch_geometric.nn.BatchNorm, or LayerNorm(..., mode='node')"
REFUSED: dict[str, str] = {
    **dict.fromkeys(
        (
            *("GATConv", "GATv2Conv", "TransformerConv", "SuperGATConv", "AGNNConv", "RGATConv"),
            *("HGTConv", "HANConv", "FAConv", "FeaStConv", "FusedGATConv", "GPSConv", "HEATConv"),
        ),
        _ATTENTION,
    ),
    "EdgeConv": "takes the maximum over neighbours, and only averages have a history: use SAGEConv",
    "DynamicEdgeConv": "finds neighbours anew as it runs: use SAGEConv on a fixed graph",
    "PNAConv": "takes maxima and deviations of neighbours: use SAGEConv or GraphConv",
    "RGCNConv": "takes a type for each edge: use HeteroConv with a relation for each type",
    "FastRGCNConv": "takes a type for each edge: use HeteroConv with a relation for each type",
    "GINEConv": "reads features of edges: use GINConv",
    **dict.fromkeys(
        ("GraphNorm", "PairNorm", "InstanceNorm", "GraphSizeNorm", "MeanSubtractionNorm"),
        _ALL_NODES + _BATCH_NORM,
    ),
}
_NORMS = "torch_geometric.nn.norm"
_POOLING = "torch_geometric.nn.pool"


def is_layer(module: nn.Module) -> bool:
    """Whether a module is a layer of PyG that passes messages."""
    return isinstance(module, MessagePassing)


def has_layers(model: nn.Module) -> bool:
    """Whether a model has layers of PyG."""
    return any(map(is_layer, model.modules()))


def find_adapter(layer: nn.Module) -> Adapter:
    """The adapter of a layer of PyG; an error that says what to use instead where there is none."""
    kind = type(layer)
    for base in kind.__mro__:
        name = base.__name__
        if name in REFUSED and _is_pyg(base):
            raise InputError(f"{_called(kind, base)} {REFUSED[name]}")
        if name in ADAPTERS and _is_pyg(base):
            _check_same(kind, base)
            return ADAPTERS[name]
    raise InputError(
        f"vrgcn has no adapter for {kind.__name__}; there are {', '.join(ADAPTERS)}. A layer of "
        "your own that averages with fixed weights: write the model with propagate(h) in its "
        "place, see docs/guides/own-models.md"
    )


def check_model(model: nn.Module) -> None:
    """Refuse layers that cannot be trained with histories, by the name of each."""
    if hasattr(model, "_orig_mod"):
        raise TypeError("the model is compiled, and its layers cannot be seen: give it uncompiled")
    for module in model.modules():
        kind = type(module)
        if is_layer(module):
            _check_layer(module)
        elif kind.__module__.startswith(_NORMS) and kind.__name__ in REFUSED:
            raise InputError(f"{kind.__name__} {REFUSED[kind.__name__]}")
        elif kind.__module__.startswith(_NORMS) and getattr(module, "mode", None) == "graph":
            raise InputError(
                f"{kind.__name__}(mode='graph') {_ALL_NODES}use mode='node' (of a model such as "
                "GraphSAGE(norm='layer'): norm_kwargs={'mode': 'node'})"
            )
        elif kind.__module__.startswith(_POOLING):
            raise InputError(
                f"{kind.__name__} changes which nodes there are; vrgcn predicts nodes, and every "
                "layer keeps them"
            )


def _check_layer(layer: Any) -> None:
    find_adapter(layer)
    name = type(layer).__name__
    if aggregation(layer) not in ("sum", "mean"):
        raise InputError(
            f"{name}(aggr={layer.aggr!r}): only sums and means of neighbours have a history; use "
            "aggr='mean' or 'sum'"
        )
    if layer.node_dim not in (-2, 0):
        raise InputError(f"{name}(node_dim={layer.node_dim}): nodes are rows here, node_dim=-2")


def _check_same(kind: type, base: type) -> None:
    """Refuse a class of the user's own that changes what its base computes."""
    for method in ("forward", "message", "aggregate", "update", "message_and_aggregate"):
        if getattr(kind, method, None) is not getattr(base, method, None):
            raise InputError(
                f"{kind.__name__} is a {base.__name__} with a {method} of its own, which vrgcn "
                "does not run: write the model with propagate(h) in its place, see "
                "docs/guides/own-models.md"
            )


def _called(kind: type, base: type) -> str:
    return kind.__name__ if kind is base else f"{kind.__name__} (a {base.__name__})"


def _is_pyg(kind: type) -> bool:
    return kind.__module__.startswith("torch_geometric.")
