"""Exact prediction of any number of nodes in bounded memory.

Theorem 1 in action: a sweep over the nodes in chunks, each neighbour read from the tables, makes
the first table exact; the next sweep the second; and the last sweep gives exact outputs. A sweep
stops inside the model at the first layer whose table is not exact yet. Memory is one chunk and one
table per layer (of P X for the first), however deep the model and however large a node's receptive
field.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from vrgcn.engine.history import NEVER, Histories
from vrgcn.engine.propagate import PassEnded, Propagate
from vrgcn.engine.trace import device_of, set_mode, trace
from vrgcn.graph.graph import Graph
from vrgcn.graph.propagation import Propagation, PropagationLike, build_propagation
from vrgcn.graph.sparse import CSR, is_sparse, scale_rows, select_rows
from vrgcn.graph.validation import check_nodes

CHUNK_COST = 1 << 20  # entries of P plus a little per node: some tens of megabytes
_NODE_COST = 64


class ExactSweeps:
    """Exact outputs of a model on a graph.

    preprocessed: P X where it is known already
    histories: tables to fill instead of new ones, such as those that training starts from
    """

    def __init__(
        self,
        model: nn.Module,
        features: Tensor,
        P: Propagation,
        *,
        preprocessed: Tensor | None = None,
        histories: Histories | None = None,
        on_chunk: Callable[[int], None] | None = None,
    ) -> None:
        self.model = model
        self.features = features
        self.P = P
        self.preprocessed = preprocessed
        self.device = device_of(model)
        self.histories = histories or exact_tables(P.num_nodes, features, self.device)
        self.on_chunk = on_chunk
        self.trace = trace(model, features, training=False)
        self._keeps_averages = False
        # With the features, which may be larger than the model's device holds, and apart from the
        # tables: training's may have a history of its own for the first call.
        self._averages = exact_tables(
            P.num_nodes, features, features.device, self.histories.directory
        )

    def outputs(self, nodes: Tensor | None = None) -> Tensor:
        """(nodes, classes), exact; all nodes if none are named."""
        return torch.cat([outputs for _, outputs in self.stream(nodes)])

    def stream(self, nodes: Tensor | None = None) -> Iterator[tuple[Tensor, Tensor]]:
        """The same, a chunk at a time: its nodes, in the order asked for, and their outputs."""
        needed = self._needed(nodes)
        # Averages of wide features are the larger part of the work, and every sweep needs them.
        # (Sparse ones would not be sparse any more.)
        self._keeps_averages = len(needed) > 1 and not is_sparse(self.features)
        self._fill(needed[:-1])
        for chunk, outputs in self._sweep(needed[-1], self.trace.calls):
            yield chunk, outputs.cpu()

    def work(self, nodes: Tensor | None = None) -> int:
        """How many nodes all sweeps visit together, for showing progress."""
        return sum(map(len, self._needed(nodes)))

    def fill_tables(self, step: int) -> None:
        """Make the tables of all nodes exact for the model's present weights."""
        self._keeps_averages = False
        self._fill(self._needed(None)[:-1], step)

    def _fill(self, needed: list[Tensor], step: int = 0) -> None:
        for call, nodes in enumerate(needed, start=self.trace.first_table):
            for chunk, h in self._sweep(nodes, call):
                self.histories.table(call, h.shape[1]).write(chunk.to(self.device), h, step)

    def _needed(self, nodes: Tensor | None) -> list[Tensor]:
        """The nodes of each sweep, first to last: each includes the neighbours of the next."""
        sweeps = self.trace.calls - self.trace.first_table + 1
        if nodes is None:
            return [torch.arange(self.P.num_nodes)] * sweeps
        needed = [nodes]
        for _ in range(sweeps - 1):
            needed.append(with_neighbours(self.P, needed[-1]))
        return needed[::-1]

    def _sweep(self, nodes: Tensor, stop: int) -> Iterator[tuple[Tensor, Tensor]]:
        """Chunks of nodes with the input of call `stop`, or with the output after the last."""
        for chunk in chunks(self.P, nodes):
            # Not around the loop: whoever takes the chunks would be in these modes too.
            with torch.no_grad(), set_mode(self.model, training=False, norms=False):
                h = self._forward(chunk, stop)
            yield chunk, h
            if self.on_chunk is not None:
                self.on_chunk(len(chunk))

    def _forward(self, chunk: Tensor, stop: int) -> Tensor:
        x = select_rows(self.features, chunk).to(self.device)
        reached: list[Tensor] = []
        # A sweep that stops at the first table needs no row of P where P X is known.
        rows_of_P = cache(lambda: self.P.rows(chunk))

        def answer(call: int, h: Tensor) -> Tensor:
            if call == stop:
                reached.append(h)
                raise PassEnded
            if call == 0 and self.trace.features_first:
                return self._averaged_features(chunk, rows_of_P)
            rows = rows_of_P()[1].to(self.device)
            average = self.histories.table(call, h.shape[1]).average(rows, h.dtype)
            return scale_rows(rows_of_P()[0].to(self.device), h) + average

        sizes = [len(chunk)] * (self.trace.calls + 1)
        try:
            output: Tensor = self.model(x, Propagate(sizes, answer))
        except PassEnded:
            return reached[0]
        return output

    def _averaged_features(
        self, chunk: Tensor, rows_of_P: Callable[[], tuple[Tensor, CSR]]
    ) -> Tensor:
        """(chunk, features) rows of P X: known, kept from an earlier sweep, or computed."""
        if self.preprocessed is not None:
            return select_rows(self.preprocessed, chunk).to(self.device)
        if self._keeps_averages:
            table = self._averages.table(0, self.features.shape[1])
            if bool((table.written[chunk] != NEVER).all()):
                return table.read(chunk, self.features.dtype).to(self.device)
        diagonal, rows = rows_of_P()
        own = scale_rows(diagonal, select_rows(self.features, chunk))
        averages = torch.add(own, rows @ self.features)
        if self._keeps_averages:
            table.write(chunk, averages, step=0)
        return averages.to(self.device)


def predict(
    model: nn.Module,
    graph: Graph,
    nodes: Any = None,
    *,
    propagation: PropagationLike | None = None,
    directory: Path | None = None,
    on_chunk: Callable[[int], None] | None = None,
) -> Tensor:
    """The model's exact outputs: (nodes, classes), one row for each node asked for, in that order.

    nodes: ids; all nodes if None
    propagation: as in training; if None, the model's own (`model.propagation`), else "gcn"
    directory: keep the tables in files there instead of in memory
    on_chunk: called with the number of nodes after each chunk of each sweep
    """
    rule = propagation_of(model) if propagation is None else propagation
    P = build_propagation(rule, graph)
    histories = exact_tables(graph.num_nodes, graph.features, device_of(model), directory)
    sweeps = ExactSweeps(model, graph.features, P, histories=histories, on_chunk=on_chunk)
    if nodes is None:
        return sweeps.outputs()
    return sweeps.outputs(check_nodes(nodes, graph.num_nodes))


def exact_tables(
    num_nodes: int, features: Tensor, device: torch.device, directory: Path | None = None
) -> Histories:
    """Tables in the precision of the features, so that nothing is lost on the way."""
    return Histories(num_nodes, str(features.dtype).removeprefix("torch."), device, directory)


def propagate_features(P: Propagation, features: Tensor, nodes: Tensor | None = None) -> Tensor:
    """P X, computed once: (nodes, features) in the layout of X. Rows not asked for are zero."""
    if features.layout == torch.sparse_csr:
        return P @ features
    out = torch.zeros_like(features)
    for chunk in chunks(P, torch.arange(P.num_nodes) if nodes is None else nodes):
        diagonal, rows = P.rows(chunk)
        out[chunk] = scale_rows(diagonal, features[chunk]) + rows @ features
    return out


def chunks(P: Propagation, nodes: Tensor) -> Iterator[Tensor]:
    """Runs of nodes whose rows of P have about CHUNK_COST entries: hubs make shorter runs."""
    counts = P.neighbours.indptr[nodes + 1] - P.neighbours.indptr[nodes]
    bucket = torch.div((counts + _NODE_COST).cumsum(0), CHUNK_COST, rounding_mode="floor")
    sizes = torch.unique_consecutive(bucket, return_counts=True)[1]
    yield from nodes.split(sizes.tolist())


def with_neighbours(P: Propagation, nodes: Tensor) -> Tensor:
    """The nodes and all that P averages for them, ascending."""
    inside = torch.zeros(P.num_nodes, dtype=torch.bool)
    inside[nodes] = True
    for chunk in chunks(P, nodes):
        inside[P.neighbours.rows(chunk).indices] = True
    return inside.nonzero()[:, 0]


def propagation_of(model: nn.Module) -> PropagationLike:
    """What a model says of itself by an attribute `propagation`; "gcn" if it says nothing."""
    rule: PropagationLike = getattr(model, "propagation", "gcn")
    return rule
