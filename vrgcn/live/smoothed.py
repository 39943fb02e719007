"""Outputs of a live model that is corrected and smoothed: they depend on the whole graph, and are
computed for all nodes when they are first asked for after a change."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor

from vrgcn.graph.graph import Graph
from vrgcn.inference.smoothed_sweeps import SmoothedSweeps
from vrgcn.inference.smoothing import Smoothing
from vrgcn.inference.sweeps import ROWS


class KnownOutputs:
    """Outputs that are there already, as sweeps would give them. outputs: (nodes, width)"""

    def __init__(self, graph: Graph, outputs: Tensor) -> None:
        self.graph = graph
        self._outputs = outputs
        self.on_chunk: Callable[[int], None] | None = None

    def outputs(self, nodes: Tensor | None = None, layer: int | None = None) -> Tensor:
        return self._outputs if nodes is None else self._outputs[nodes]

    def stream(
        self, nodes: Tensor | None = None, layer: int | None = None
    ) -> Iterator[tuple[Tensor, Tensor]]:
        every = torch.arange(len(self._outputs)) if nodes is None else nodes
        for chunk in every.split(ROWS):
            yield chunk, self._outputs[chunk]

    def work(self, nodes: Tensor | None = None, layer: int | None = None) -> int:
        return 0


def smoothed_outputs(smoothing: Smoothing, task: str, graph: Graph, outputs: Tensor) -> Tensor:
    """(nodes, width). outputs: of the model alone"""
    inner: Any = KnownOutputs(graph, outputs)  # it has no layers, and none is asked for
    return SmoothedSweeps(inner, smoothing, task).outputs()
