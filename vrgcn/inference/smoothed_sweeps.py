"""Exact outputs of a model, corrected and smoothed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import torch
from torch import Tensor

from vrgcn.graph.graph import Graph
from vrgcn.inference.smoothing import STEPS, Smoothing, Spreading, corrected, outputs_of
from vrgcn.inference.sweeps import ROWS, Outputs
from vrgcn.tasks import find_task


class SmoothedSweeps(Outputs):
    """The same as `ExactSweeps` for a model with a `Smoothing`. Memory is that of the model, and
    up to six tables of outputs. Outputs of some nodes need the model's for the nodes within STEPS
    hops.

    inner: sweeps of the model alone, which has layers
    task: name of the model's task
    """

    file = "smoothed.bin"

    def __init__(
        self, inner: Outputs, smoothing: Smoothing, task: str, directory: Path | None = None
    ) -> None:
        self.inner = inner
        self.smoothing = smoothing
        self.task = find_task(task)
        self.directory = directory
        self.on_chunk, inner.on_chunk = inner.on_chunk, self.done

    @property
    def graph(self) -> Graph:
        return self.inner.graph

    def stream(
        self, nodes: Tensor | None = None, layer: int | None = None
    ) -> Iterator[tuple[Tensor, Tensor]]:
        if layer is not None:
            yield from self.inner.stream(nodes, layer)
            return
        self.begin(nodes)
        smoothing, spreading = self.smoothing, self._spreading()
        width = smoothing.errors.shape[1]
        rows, places = smoothing.places(self.graph)
        errors = spreading.table("errors", width)
        errors[places] = smoothing.errors[rows].to(errors)
        z = spreading.spread(errors, smoothing.correct, "correct")
        known = torch.zeros(self.graph.num_nodes, dtype=torch.bool)
        known[places] = True
        first = spreading.table("first", width)
        size = smoothing.size if smoothing.autoscale else None
        for chunk, outputs in self.inner.stream(self._needed(nodes, spreading)):
            shares = (self.task.shares(outputs) - smoothing.centre).to(first)
            first[chunk] = corrected(shares, z[chunk], size)
        first[places] = smoothing.labels[rows].to(first)
        smoothed = spreading.spread(first, smoothing.smooth, "smooth")
        asked = spreading.every if nodes is None else nodes
        for chunk in asked.split(ROWS):
            yield chunk, outputs_of(self.task, smoothed[chunk], smoothing.centre)

    def work(self, nodes: Tensor | None = None, layer: int | None = None) -> int:
        if layer is not None:
            return self.inner.work(nodes, layer)
        spreads = (self.smoothing.correct > 0) + (self.smoothing.smooth > 0)
        own = self.inner.work(self._needed(nodes, self._spreading()))
        return own + spreads * STEPS * self.graph.num_nodes

    def _spreading(self) -> Spreading:
        return Spreading(self.graph, self.directory, self.done)

    def _needed(self, nodes: Tensor | None, spreading: Spreading) -> Tensor | None:
        """The nodes whose outputs by the model are needed; None: all."""
        if nodes is None:
            return None
        return nodes if self.smoothing.smooth == 0 else spreading.reach(nodes)
