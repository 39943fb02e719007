"""`transform_first="auto"`: decides whether sparse features are multiplied by the first weights
before or after they are propagated.

A sparse product adds up one row of the weights, or of a history, for each entry. So entries are
counted, for a node of a minibatch:

    (P X) W     the entries of the node's row of P X, which is computed once and exact; where more
                than a third of its columns have entries, its rows are dense, and a third of the
                columns count
    P (X W)     the entries of its row of X, its neighbours in the histories of X W and of their
                gradients, which are read four times as fast, and the work of the further hop

GraphSAGE multiplies the node's own row as well, in both orders. Rows of P X are counted for some of
the nodes. Of dense features P X is as large as X, and it is always propagated first.
"""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor, nn

from vrgcn.engine.averages import FULL
from vrgcn.files.mistakes import InputError
from vrgcn.files.setting_names import Placeholder, setting
from vrgcn.graph.graph import Graph
from vrgcn.graph.sparse import CSR, is_dense, sparse_columns
from vrgcn.models.config import ModelConfig
from vrgcn.models.dense import standardise_inputs
from vrgcn.models.lightgcn import LIGHT, build_light
from vrgcn.models.models import MODELS, GraphModel, build_model
from vrgcn.models.plugins import is_plugin_model
from vrgcn.models.relational import build_relational
from vrgcn.targets.scored import scored_edges

_COUNTED = 256  # nodes whose rows of P X are counted
# A further hop takes a node as long as this many entries, beside those that it reads
# (facebook_large, two-way, a step of 512 nodes).
_HOP = 150
# P X is worth this many times the work: it is exact, and products have a history as old as their
# weights. Test accuracy by P X and by the other order, two-way, 10 epochs, three splits:
# amazon_computers 91.4 and 90.3, facebook_large 94.6 and 94.8, blogcatalog_attributed 96.2 and
# 96.2; after 30 epochs amazon_computers 91.9 and 91.3.
_WORTH = 1.5


def build_for(config: ModelConfig, graph: Graph, outputs: int, seed: int) -> nn.Module:
    """Build the model of the config for a graph, in the order that `auto` stands for there; a
    relational model where the graph has relations, unless the config asks for LightGCN.

    outputs: number of outputs of the model for a node; seed: of its weights
    """
    config = config.settled()
    if config.is_baseline:
        raise InputError(
            f"{setting('model', config.model)} is a baseline, which only `vrgcn train` fits: take "
            "a network, such as graphsage"
        )
    if config.model in LIGHT:
        _check_light(config, graph)
        return build_light(config, graph.num_features, outputs, seed, graph.num_nodes)
    if is_plugin_model(config.model):
        _check_plugin(config, graph)
    settled = settle_order(config, graph)
    if graph.kinds.named and config.model != "mlp":
        edges = scored_edges(graph)
        targets = None if edges is None else edges.predicted.kinds
        dated = () if graph.dated is None else graph.dated.times
        relations = graph.relations.values()
        return build_relational(settled, graph.kinds, relations, outputs, seed, targets, dated)
    _check_no_relations(config, graph)
    model = build_model(
        settled,
        graph.num_features,
        outputs,
        seed,
        graph.num_nodes,
        sparse_features=not is_dense(graph.features),
    )
    if config.centre_features and scored_edges(graph) is None and not graph.kinds.named:
        standardise_inputs(model, graph.features, graph.train)
    return model


def _check_no_relations(config: ModelConfig, graph: Graph) -> None:
    if graph.kinds.named and not graph.kinds.widths.get(graph.target or "", 0):
        what = (
            "embeds no pairs of several kinds of nodes: take graphsage or gcn"
            if graph.target is None
            else f"has nothing to learn from: {graph.target!r} has no features"
        )
        raise InputError(f"{setting('model', config.model)} {what}")
    rows = config.node_embeddings and scored_edges(graph) is None
    if config.bases or rows:
        name = "bases" if config.bases else "node_embeddings"
        raise InputError(
            f"{setting(name, getattr(config, name))} is for graphs of several kinds, and for "
            "models that look at neighbours"
        )


def _check_plugin(config: ModelConfig, graph: Graph) -> None:
    for cannot, what in (
        (graph.kinds.named, "graphs of several kinds"),
        (scored_edges(graph) is not None, "pairs"),
    ):
        if cannot:
            raise InputError(
                f"{setting('model', config.model)} is a plug-in, which predicts labels of nodes of "
                f"one kind: {what} need a model of vrgcn's own, such as graphsage"
            )


def _check_light(config: ModelConfig, graph: Graph) -> None:
    edges = scored_edges(graph)
    if edges is None or edges.word != "pairs":
        raise InputError(
            f"{setting('model', config.model)} embeds nodes whose pairs of one relation are "
            f"predicted: give {setting('predict', Placeholder('RELATION'))}, or take graphsage or "
            "gcn"
        )


def settle_order(config: ModelConfig, graph: Graph) -> ModelConfig:
    """Return the config with "always" or "never" in place of `auto`."""
    if config.transform_first != "auto" or is_plugin_model(config.model):
        return config
    first = _transforms_first(MODELS[config.settled().model], graph)
    return replace(config, transform_first="always" if first else "never")


def _transforms_first(kind: type[GraphModel], graph: Graph) -> bool:
    X = sparse_columns(graph.features)
    if X is None or kind.propagation == "identity" or kind.embeds:
        return False
    entries = X.num_entries / graph.num_nodes
    degree = graph.num_edges / graph.num_nodes
    averaged = averaged_entries(graph.features, graph.adjacency, own=kind.propagation == "gcn")
    after = read_entries(averaged, X.columns) + (kind.copies - 1) * entries
    before = kind.copies * entries + degree / 2 + _HOP
    return after > _WORTH * before


def read_entries(averaged: float, columns: int) -> float:
    """Return how many entries take as long to read as a row of P X. averaged: entries in the row"""
    return min(averaged, FULL * columns)


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
