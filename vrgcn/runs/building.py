"""The network of a model's settings, for what a graph is to predict: labels of nodes, or pairs."""

from __future__ import annotations

from torch import nn

from vrgcn.costs.order import build_for
from vrgcn.graph.graph import Graph
from vrgcn.models.config import ModelConfig
from vrgcn.targets.scored import scored_edges
from vrgcn.training.target import Target


def build_network(config: ModelConfig, graph: Graph, target: Target, seed: int) -> nn.Module:
    """Build a model with new weights, which depend on the seed; with a decoder for pairs."""
    edges = scored_edges(graph)
    if edges is None:
        return build_for(config, graph, target.outputs, seed)
    from vrgcn.pairs.model import PairModel

    network = build_for(config, graph, config.embedding, seed)
    return PairModel.around(network, config.decoder, edges.predicted, seed)
