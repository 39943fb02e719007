"""Exact outputs of a model, corrected and smoothed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import torch
from torch import Tensor

from vrgcn.graph.graph import Graph
from vrgcn.graph.mapped import zeros
from vrgcn.inference.average_sweeps import AverageSweeps
from vrgcn.inference.smoothing import STEPS, Smoothing, Spreading, corrected, outputs_of
from vrgcn.inference.sweeps import ExactSweeps
from vrgcn.tasks import find_task

_ROWS = 65_536  # rows of outputs that are returned at a time


class SmoothedSweeps:
    """The same as `ExactSweeps` for a model with a `Smoothing`. Memory is that of the model, and
    up to six tables of outputs. Outputs of some nodes need the model's for the nodes within STEPS
    hops.

    inner: sweeps of the model alone, which has layers
    task: name of the model's task
    on_chunk, on_begin, directory: as in `ExactSweeps`
    """

    def __init__(
        self,
        inner: ExactSweeps | AverageSweeps,
        smoothing: Smoothing,
        task: str,
        *,
        directory: Path | None = None,
        on_chunk: Callable[[int], None] | None = None,
    ) -> None:
        self.inner = inner
        self.smoothing = smoothing
        self.task = find_task(task)
        self.directory = directory
        self.on_chunk = on_chunk
        self.on_begin: Callable[[int], None] | None = None
        inner.on_chunk = self._done

    @property
    def graph(self) -> Graph:
        """The graph that the sweeps are of."""
        return self.inner.graph

    def outputs(self, nodes: Tensor | None = None, layer: int | None = None) -> Tensor:
        """(nodes, classes), exact; all nodes if none are named. In a file, if the tables are.

        layer: as in `ExactSweeps`: what the model propagates is not smoothed
        """
        if layer is not None:
            return self.inner.outputs(nodes, layer)
        out: Tensor | None = None
        start = 0
        for chunk, outputs in self.stream(nodes):
            if out is None:
                count = self.graph.num_nodes if nodes is None else len(nodes)
                file = None if self.directory is None else self.directory / "smoothed.bin"
                out = zeros((count, *outputs.shape[1:]), outputs.dtype, file)
            out[start : start + len(chunk)] = outputs
            start += len(chunk)
        assert out is not None
        return out

    def stream(
        self, nodes: Tensor | None = None, layer: int | None = None
    ) -> Iterator[tuple[Tensor, Tensor]]:
        """The same, a chunk at a time: its nodes, in the order asked for, and their outputs."""
        if layer is not None:
            yield from self.inner.stream(nodes, layer)
            return
        if self.on_begin is not None:
            self.on_begin(self.work(nodes))
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
        for chunk in asked.split(_ROWS):
            yield chunk, outputs_of(self.task, smoothed[chunk], smoothing.centre)

    def work(self, nodes: Tensor | None = None, layer: int | None = None) -> int:
        """How many nodes all sweeps visit together, for showing progress."""
        if layer is not None:
            return self.inner.work(nodes, layer)
        spreads = (self.smoothing.correct > 0) + (self.smoothing.smooth > 0)
        own = self.inner.work(self._needed(nodes, self._spreading()))
        return own + spreads * STEPS * self.graph.num_nodes

    def _spreading(self) -> Spreading:
        return Spreading(self.graph, self.directory, self._done)

    def _needed(self, nodes: Tensor | None, spreading: Spreading) -> Tensor | None:
        """The nodes whose outputs by the model are needed; None: all."""
        if nodes is None:
            return None
        return nodes if self.smoothing.smooth == 0 else spreading.reach(nodes)

    def _done(self, nodes: int) -> None:
        if self.on_chunk is not None:
            self.on_chunk(nodes)
