"""Exact outputs of a graph in parts: each process computes its own nodes, level by level."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import torch
from torch import Tensor, nn

from vrgcn.distributed.halo import Halo
from vrgcn.distributed.visits import grown
from vrgcn.engine.history import exact_tables
from vrgcn.engine.setup import Setup
from vrgcn.engine.sweeps import fill_tables, sweep


class PartSweeps:
    """`inference.sweeps.ExactSweeps` for own nodes. A table's rows reach all copies before the next
    table is computed from them. All processes call it at the same time, each for its own nodes.

    on_chunk: called with the number of nodes after each chunk of each sweep
    """

    def __init__(
        self,
        model: nn.Module,
        setup: Setup,
        halo: Halo,
        *,
        on_chunk: Callable[[int], None] | None = None,
    ) -> None:
        self.model = model
        self.setup = setup
        self.halo = halo
        self.on_chunk = on_chunk
        graph = setup.graph
        self.tables = exact_tables(graph.num_nodes, graph.dtype, setup.device)

    def outputs(self, nodes: Tensor | None = None) -> Tensor:
        """Return exact outputs (nodes, outputs); of all own nodes if none are named."""
        chunks = [outputs for _, outputs in self.stream(nodes)]
        return torch.cat(chunks) if chunks else self._none()

    def stream(self, nodes: Tensor | None = None) -> Iterator[tuple[Tensor, Tensor]]:
        """Yield the exact outputs in chunks: the nodes, in the requested order, and their
        outputs."""
        evaluation = self.setup.evaluation
        last = torch.arange(self.halo.own) if nodes is None else nodes
        needed = [last]
        for _ in range(evaluation.depth - evaluation.first_table):
            needed.append(grown(needed[-1], self.halo, list(self.setup.P.values())))
        fill_tables(
            self.model,
            self.setup,
            needed[:0:-1],
            self.tables,
            keep_averages=len(needed) > 1,
            on_chunk=self.on_chunk,
            on_table=lambda table: self.halo.renew(table.values, "evaluation"),
        )
        for swept in sweep(
            self.model, self.setup, last, self.tables, keep_averages=len(needed) > 1
        ):
            assert swept.outputs is not None
            yield swept.nodes, swept.outputs.cpu()
            if self.on_chunk is not None:
                self.on_chunk(len(swept.nodes))

    def _none(self) -> Tensor:
        """Return an empty tensor (0, outputs) like those of others, for a process without nodes."""
        some = torch.zeros(1, dtype=torch.int64)
        swept = next(iter(sweep(self.model, self.setup, some, self.tables)))
        assert swept.outputs is not None
        return swept.outputs[:0].cpu()
