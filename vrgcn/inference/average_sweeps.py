"""Exact outputs of an average: those of its members, one after the other, and their mean."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Protocol

import torch
from torch import Tensor

from vrgcn.graph.graph import Graph
from vrgcn.inference.average import Average
from vrgcn.inference.sweeps import ROWS, Outputs
from vrgcn.tasks import find_task


class MemberSweeps(Protocol):
    """Sweeps of one member."""

    def stream(self, nodes: Tensor | None = None) -> Iterator[tuple[Tensor, Tensor]]: ...


class AverageSweeps(Outputs):
    """The same for several models as `ExactSweeps` for one. Memory is that of one member, and one
    table of outputs.

    graph: as it was given, before any member's scaling
    members: makes the sweeps of each when its turn comes
    """

    file = "average.bin"

    def __init__(
        self,
        average: Average,
        graph: Graph,
        members: Sequence[Callable[[], MemberSweeps]],
        *,
        directory: Path | None = None,
        on_chunk: Callable[[int], None] | None = None,
    ) -> None:
        self.average = average
        self._graph = graph
        self.members = members
        self.task = find_task(average.task)
        self.directory = directory
        self.on_chunk = on_chunk

    @property
    def graph(self) -> Graph:
        return self._graph

    def outputs(self, nodes: Tensor | None = None, layer: int | None = None) -> Tensor:
        if layer is not None:
            self.average.refuse_layers()
        self.begin(nodes)
        mean: Tensor | None = None
        for make, weight in zip(self.members, self.average.weights, strict=True):
            start = 0
            for chunk, outputs in make().stream(nodes):
                shares = self.task.shares(outputs)
                if mean is None:
                    mean = self.empty(nodes, shares)
                mean[start : start + len(chunk)] += weight * shares
                start += len(chunk)
                self.done(len(chunk))
        assert mean is not None
        for part in mean.split(ROWS):
            part.copy_(self.task.from_shares(part))
        return mean

    def stream(
        self, nodes: Tensor | None = None, layer: int | None = None
    ) -> Iterator[tuple[Tensor, Tensor]]:
        outputs = self.outputs(nodes, layer)
        asked = torch.arange(self.graph.num_nodes) if nodes is None else nodes
        yield from zip(asked.split(ROWS), outputs.split(ROWS), strict=True)

    def work(self, nodes: Tensor | None = None, layer: int | None = None) -> int:
        count = self.graph.num_nodes if nodes is None else len(nodes)
        return len(self.members) * count
