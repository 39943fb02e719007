"""Exact outputs of an average: those of its members, one after the other, and their mean."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Protocol

import torch
from torch import Tensor

from vrgcn.graph.graph import Graph
from vrgcn.graph.mapped import zeros
from vrgcn.inference.average import Average
from vrgcn.tasks import find_task

_ROWS = 65_536  # rows of outputs that are averaged, and returned, at a time


class MemberSweeps(Protocol):
    """Sweeps of one member."""

    def stream(self, nodes: Tensor | None = None) -> Iterator[tuple[Tensor, Tensor]]: ...


class AverageSweeps:
    """The same for several models as `ExactSweeps` for one. Memory is that of one member, and one
    table of outputs.

    graph: as it was given, before any member's scaling
    members: makes the sweeps of each when its turn comes
    on_chunk, on_begin, directory: as in `ExactSweeps`
    """

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
        self.graph = graph
        self.members = members
        self.task = find_task(average.task)
        self.directory = directory
        self.on_chunk = on_chunk
        self.on_begin: Callable[[int], None] | None = None

    def outputs(self, nodes: Tensor | None = None, layer: int | None = None) -> Tensor:
        """(nodes, classes), exact; all nodes if none are named."""
        if layer is not None:
            self.average.refuse_layers()
        if self.on_begin is not None:
            self.on_begin(self.work(nodes))
        mean: Tensor | None = None
        for make, weight in zip(self.members, self.average.weights, strict=True):
            start = 0
            for chunk, outputs in make().stream(nodes):
                shares = self.task.shares(outputs)
                if mean is None:
                    count = self.graph.num_nodes if nodes is None else len(nodes)
                    file = None if self.directory is None else self.directory / "average.bin"
                    mean = zeros((count, *shares.shape[1:]), shares.dtype, file)
                mean[start : start + len(chunk)] += weight * shares
                start += len(chunk)
                if self.on_chunk is not None:
                    self.on_chunk(len(chunk))
        assert mean is not None
        for part in mean.split(_ROWS):
            part.copy_(self.task.from_shares(part))
        return mean

    def stream(
        self, nodes: Tensor | None = None, layer: int | None = None
    ) -> Iterator[tuple[Tensor, Tensor]]:
        """The same, a chunk at a time: its nodes, in the order asked for, and their outputs."""
        outputs = self.outputs(nodes, layer)
        asked = torch.arange(self.graph.num_nodes) if nodes is None else nodes
        yield from zip(asked.split(_ROWS), outputs.split(_ROWS), strict=True)

    def work(self, nodes: Tensor | None = None, layer: int | None = None) -> int:
        """How many nodes the members' last sweeps visit together, for showing progress."""
        count = self.graph.num_nodes if nodes is None else len(nodes)
        return len(self.members) * count
