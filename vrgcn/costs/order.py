"""`transform_first="auto"`: decides whether sparse features are multiplied by the first weights
before or after they are propagated.

A sparse product adds up one row of the weights, or of a history, for each entry. So entries are
counted, for a node of a minibatch:

    (P X) W     the entries of the node's row of P X, which is computed once and exact
    P (X W)     the entries of its row of X, and its neighbours in the histories of X W and of
                their gradients, and the work of the further hop

GraphSAGE multiplies the node's own row as well, in both orders. Rows of P X are counted for some of
the nodes. Of dense features P X is as large as X, and it is always propagated first.
"""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor

from vrgcn.files.setting_names import setting
from vrgcn.graph.graph import Graph
from vrgcn.graph.sparse import CSR, sparse_columns
from vrgcn.models.config import ModelConfig
from vrgcn.models.models import MODELS, GraphModel, build_model
from vrgcn.models.relational import RelationalModel, build_relational

_COUNTED = 256  # nodes whose rows of P X are counted
# A further hop takes a node as long as this many entries, beside the entries that it reads. P X is
# worth this many times the work: it is exact, and products have a history as old as its weights.
# (amazon_computers, two-way, 10 epochs, two seeds, test: 91.4% by P X, 89.1% by the other order,
# whose epochs take 0.6 of the time. This is one graph: any value from 2 to 6 is as well founded.)
_HOP = 50
_WORTH = 3.0


def build_for(
    config: ModelConfig, graph: Graph, outputs: int, seed: int
) -> GraphModel | RelationalModel:
    """Build the model of the config for a graph, in the order that `auto` stands for there; a
    relational model where the graph has relations.

    outputs: number of outputs of the model for a node; seed: of its weights
    """
    settled = settle_order(config, graph)
    if graph.kinds is not None and config.model != "mlp":
        return build_relational(settled, graph.kinds, graph.relations.values(), outputs, seed)
    _check_no_relations(config, graph)
    return build_model(settled, graph.num_features, outputs, seed, graph.num_nodes)


def _check_no_relations(config: ModelConfig, graph: Graph) -> None:
    if graph.kinds is not None and not graph.kinds.widths.get(graph.target or "", 0):
        raise ValueError(f"model mlp has nothing to learn from: {graph.target!r} has no features")
    for name in ("node_embeddings", "bases"):
        value = getattr(config, name)
        if value:
            raise ValueError(
                f"{setting(name, value)} is for graphs of several kinds, and for models that look "
                "at neighbours"
            )


def settle_order(config: ModelConfig, graph: Graph) -> ModelConfig:
    """Return the config with "always" or "never" in place of `auto`."""
    if config.transform_first != "auto":
        return config
    first = _transforms_first(MODELS[config.model], graph)
    return replace(config, transform_first="always" if first else "never")


def _transforms_first(kind: type[GraphModel], graph: Graph) -> bool:
    X = sparse_columns(graph.features)
    if X is None or kind.propagation == "identity":
        return False
    entries = X.num_entries / graph.num_nodes
    degree = graph.num_edges / graph.num_nodes
    averaged = averaged_entries(graph.features, graph.adjacency, own=kind.propagation == "gcn")
    after = averaged + (kind.copies - 1) * entries
    before = kind.copies * entries + 2 * degree + _HOP
    return after > _WORTH * before


def averaged_entries(features: Tensor, adjacency: CSR, *, own: bool) -> float:
    """Return the mean number of entries in a row of P X for the sparse columns X of features,
    counted for some of the nodes.

    own: True if P has the nodes' own edges beside those of the adjacency
    """
    X, count = sparse_columns(features), 0
    if X is None:
        return 0
    nodes = torch.arange(0, adjacency.num_rows, max(1, adjacency.num_rows // _COUNTED))
    for node in nodes:  # one by one: rows of hubs are long
        row = adjacency.rows(node[None]).indices
        averaged = torch.cat([row, node[None]]) if own else row
        count += len(X.rows(averaged).indices.unique())
    return count / len(nodes)
