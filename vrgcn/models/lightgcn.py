"""LightGCN: learned rows of nodes, averaged over neighbours again and again, without weights.

    h⁰ = E (+ x W),   hᵏ = P hᵏ⁻¹,   z = mean over k of hᵏ

P = D^-1/2 A D^-1/2 over all edges of the graph: of a graph with kinds over the union of its
relations and their reverses. Averages of E read the rows themselves, never an old copy.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from vrgcn.graph.randomness import default_generator
from vrgcn.graph.sparse import select_rows
from vrgcn.models.config import ModelConfig, check_sizes
from vrgcn.models.dense import InputLinear, OutputScale
from vrgcn.models.node_table import NodeTable

_DEVIATION = 0.1  # initial standard deviation of learned rows, as published


class LightGCN(nn.Module):
    """He et al.: the mean of learned rows and of their averages over 1 to `layers` hops.

    in_features: feature columns; 0: the rows are all that is known of a node
    classes: width of rows and embeddings
    nodes: of the graph that it is trained on
    prior: whether embeddings have one more column, a known number of each node, which is set before
        training; a node that was not there has 0. The decoder of the pairs decides, so it is none
        of the `arguments`
    """

    propagation = "symmetric"

    def __init__(
        self,
        in_features: int,
        classes: int,
        *,
        nodes: int,
        layers: int = ModelConfig.layers,
        prior: bool = False,
    ) -> None:
        super().__init__()
        check_sizes(classes=classes, layers=layers, nodes=nodes)
        self.arguments: dict[str, Any] = {
            "in_features": in_features,
            "classes": classes,
            "nodes": nodes,
            "layers": layers,
        }
        self.depth = layers
        self.rows = NodeTable.drawn(nodes, classes, _DEVIATION, input=True)
        self.encoder = InputLinear(in_features, classes, bias=False) if in_features else None
        self.prior = NodeTable(torch.zeros(nodes, 1), learned=False) if prior else None
        self.readout = Readout(layers)
        self.output_scale = OutputScale()

    def forward(self, x: Tensor, propagate: Any) -> Tensor:
        """(nodes, width) embeddings."""
        if self.encoder is None:
            own = self.rows.take(propagate.nodes)
            h = propagate.table(self.rows.rows, own=True)
        else:
            averaged = propagate(x)
            own = self.rows.take(propagate.nodes) + self.encoder(propagate.own(x))
            h = propagate.table(self.rows.rows, own=True) + self.encoder(averaged)
        total = h
        for _ in range(1, self.depth):
            h = propagate(h)
            total = total[: len(h)] + h
        embedded: Tensor = self.readout(total, own[: len(total)])
        return self.with_prior(embedded, propagate.nodes[: len(embedded)])

    def with_prior(self, embedded: Tensor, nodes: Tensor) -> Tensor:
        """(nodes, width) embeddings, with the column of priors if there is one."""
        if self.prior is None:
            return embedded
        return torch.cat([embedded, self.prior.take(nodes).to(embedded.dtype)], dim=1)

    def own(self, nodes: Tensor, features: Tensor | None) -> Tensor:
        """(nodes, width) h⁰ of some nodes. features: of all nodes, where the model takes any"""
        rows = self.rows.take(nodes)
        if self.encoder is None or features is None:
            return rows
        x = select_rows(features, nodes).to(rows.device, rows.dtype)
        encoded: Tensor = self.encoder(x)
        return rows + encoded


class Readout(nn.Module):
    """(averages + own) / (layers + 1). averages: (nodes, width), the sum over 1 to `layers` hops"""

    def __init__(self, layers: int) -> None:
        super().__init__()
        self.levels = layers + 1

    def forward(self, averages: Tensor, own: Tensor) -> Tensor:
        return (averages + own) / self.levels


LIGHT: dict[str, type[LightGCN]] = {"lightgcn": LightGCN}


def build_light(
    config: ModelConfig, in_features: int, classes: int, seed: int, nodes: int
) -> LightGCN:
    """Build the model with rows that depend only on the seed."""
    with default_generator(torch.device("cpu"), seed):
        return LIGHT[config.model](in_features, classes, nodes=nodes, layers=config.layers)
