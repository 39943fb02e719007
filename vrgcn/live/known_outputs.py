"""Outputs of a live model's tables, for stages that need the whole graph: they are computed for all
nodes when they are first asked for after a change."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

from vrgcn.graph.graph import Graph
from vrgcn.inference.sweeps import ROWS, Outputs


class KnownOutputs(Outputs):
    """Outputs that are there already. table: (nodes, width), without layers"""

    def __init__(self, graph: Graph, table: Tensor) -> None:
        self._graph = graph
        self._table = table

    @property
    def graph(self) -> Graph:
        return self._graph

    def layers(self) -> int:
        return 0

    def stream(
        self, nodes: Tensor | None = None, layer: int | None = None
    ) -> Iterator[tuple[Tensor, Tensor]]:
        every = torch.arange(len(self._table)) if nodes is None else nodes
        for chunk in every.split(ROWS):
            yield chunk, self._table[chunk]

    def work(self, nodes: Tensor | None = None, layer: int | None = None) -> int:
        return 0
