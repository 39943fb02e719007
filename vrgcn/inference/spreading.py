"""Spreading of a table of numbers along the edges of a graph, and shares with spread errors.

    z ← share · P z + (1 - share) · start,  STEPS times from z = start

P is the mean over the neighbours; a node without neighbours keeps what it has.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import torch
from torch import Tensor

from vrgcn.graph.graph import Graph
from vrgcn.graph.mapped import zeros
from vrgcn.graph.propagation import build_propagation, chunks, with_neighbours
from vrgcn.tasks.task import Task

STEPS = 10  # of each spread
_LEAST = 1e-9  # smallest probability


class Spreading:
    """P of a graph, and a · P z + (1 - a) · start over all of its nodes, some rows at a time.

    directory: keep tables in files there instead of in memory
    on_chunk: called with the number of nodes after each run of rows
    """

    def __init__(
        self,
        graph: Graph,
        directory: Path | None = None,
        on_chunk: Callable[[int], None] | None = None,
    ) -> None:
        self.P = build_propagation("mean", graph)
        self.graph = graph
        self.directory = directory
        self.on_chunk = on_chunk
        self.every = torch.arange(graph.num_nodes)
        alone = self.P.degrees(self.every) == 0
        if isinstance(self.P.own, Tensor):
            alone &= self.P.own == 0
        self.alone = alone

    def table(self, name: str, width: int) -> Tensor:
        """Zeros (nodes, width), in a file of this name where tables are files."""
        file = None if self.directory is None else self.directory / f"{name}.bin"
        return zeros((self.graph.num_nodes, width), self.graph.dtype, file)

    def spread(self, start: Tensor, share: float, name: str) -> Tensor:
        """share · P z + (1 - share) · start, STEPS times from z = start: (nodes, width).

        name: of the tables
        """
        if share == 0:
            return start
        z, other = start, self.table(f"{name}-0", start.shape[1])
        for step in range(STEPS):
            for rows in chunks(self.every, self.P):
                mean = self.P.product(z, rows)
                alone = self.alone[rows]
                if alone.any():
                    mean[alone] = z[rows[alone]]
                other[rows] = torch.lerp(start[rows], mean, share)
                if self.on_chunk is not None:
                    self.on_chunk(len(rows))
            done = other
            if step + 1 < STEPS:
                other = self.table(f"{name}-1", start.shape[1]) if z is start else z
            z = done
        return z

    def reach(self, nodes: Tensor) -> Tensor:
        """The nodes within STEPS hops of some nodes, ascending."""
        found = nodes.unique()
        for _ in range(STEPS):
            wider = with_neighbours(found, self.P)
            if len(wider) == len(found):
                break
            found = wider
        return found


def corrected(shares: Tensor, z: Tensor, size: float | None) -> Tensor:
    """Shares with spread errors added: (rows, width).

    size: that of the errors of training nodes; None: errors as they are
    """
    if size is not None:
        z = z * (size / z.abs().sum(1, keepdim=True).clamp(min=_LEAST))
    return shares + z


def outputs_of(task: Task, smoothed: Tensor, centre: float) -> Tensor:
    """Outputs whose shares are smoothed ones: (rows, width) float64."""
    found = smoothed.double() + centre
    if task.has_classes:
        found = found.clamp(min=_LEAST)
        found = found.clamp(max=1) if task.several else found / found.sum(1, keepdim=True)
    return task.from_shares(found)
