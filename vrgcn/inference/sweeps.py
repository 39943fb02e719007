"""Exact outputs of a model for any number of nodes in bounded memory.

Sweeps over the nodes fill one table after the other (engine.sweeps), and the last gives the
outputs. Memory is one chunk and one table per layer (of P X for the first).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from pathlib import Path

import torch
from torch import Tensor, nn

from vrgcn.engine.history import exact_tables
from vrgcn.engine.setup import Setup, set_up
from vrgcn.engine.sweeps import fill_tables, needed_nodes, sweep
from vrgcn.graph.graph import Graph
from vrgcn.graph.mapped import zeros
from vrgcn.graph.propagation import PropagationLike
from vrgcn.graph.scaling import find_trained_on
from vrgcn.inference.node_tables import on_nodes

ROWS = 65_536  # rows of outputs that are returned at a time, where no sweep decides


class Outputs(ABC):
    """Outputs of a model, or of a chain of stages, for the nodes of a graph, streamed.

    directory: keep tables in files there instead of in memory
    on_chunk: called with the number of nodes after each chunk of each sweep
    on_begin: called before the first with how many that will be together
    """

    directory: Path | None = None
    on_chunk: Callable[[int], None] | None = None
    on_begin: Callable[[int], None] | None = None
    file = "outputs.bin"

    @property
    @abstractmethod
    def graph(self) -> Graph:
        """The graph, its features as the model takes them."""

    @abstractmethod
    def stream(
        self, nodes: Tensor | None = None, layer: int | None = None
    ) -> Iterator[tuple[Tensor, Tensor]]:
        """Chunks of nodes, in the order asked for, and their outputs; of all nodes if none are
        named.

        layer: of a level that the model propagates, what it propagates there instead, which
            nothing corrects
        """

    @abstractmethod
    def work(self, nodes: Tensor | None = None, layer: int | None = None) -> int:
        """How many nodes all sweeps visit together, for showing progress."""

    @abstractmethod
    def layers(self) -> int:
        """How often the model propagates; raise if the outputs are of several models."""

    def outputs(self, nodes: Tensor | None = None, layer: int | None = None) -> Tensor:
        """What `stream` yields as one table, (nodes, width). In a file, if tables are."""
        out: Tensor | None = None
        start = 0
        for chunk, outputs in self.stream(nodes, layer):
            if out is None:
                out = self.empty(nodes, outputs)
            out[start : start + len(chunk)] = outputs
            start += len(chunk)
        assert out is not None
        return out

    def empty(self, nodes: Tensor | None, outputs: Tensor) -> Tensor:
        """A table of zeros for the outputs of some nodes. outputs: of a chunk"""
        count = self.graph.num_nodes if nodes is None else len(nodes)
        file = None if self.directory is None else self.directory / self.file
        return zeros((count, *outputs.shape[1:]), outputs.dtype, file)

    def begin(self, nodes: Tensor | None) -> None:
        if self.on_begin is not None:
            self.on_begin(self.work(nodes))

    def done(self, nodes: int) -> None:
        if self.on_chunk is not None:
            self.on_chunk(nodes)


class ExactSweeps(Outputs):
    """Exact outputs of a model on a graph."""

    def __init__(
        self,
        model: nn.Module,
        setup: Setup,
        *,
        directory: Path | None = None,
        on_chunk: Callable[[int], None] | None = None,
    ) -> None:
        self.model = model
        self.setup = setup
        self.on_chunk = on_chunk
        self.directory = directory
        graph = setup.graph
        self.tables = exact_tables(graph.num_nodes, graph.dtype, setup.device, directory)

    @property
    def graph(self) -> Graph:
        return self.setup.graph

    def layers(self) -> int:
        return self.setup.evaluation.depth

    def stream(
        self, nodes: Tensor | None = None, layer: int | None = None
    ) -> Iterator[tuple[Tensor, Tensor]]:
        needed = self._needed(nodes, layer)
        if self.on_begin is not None:
            self.on_begin(sum(map(len, needed)))
        # Averages of wide features are the larger part of the work, and every sweep needs them.
        keep = len(needed) > 1
        if nodes is None and self.setup.evaluation.features_first:
            for over in self.setup.evaluation.levels[0]:
                self.setup.averages[over].find()
        fill_tables(
            self.model,
            self.setup,
            needed[:-1],
            self.tables,
            keep_averages=keep,
            on_chunk=self.on_chunk,
        )
        last = sweep(
            self.model, self.setup, needed[-1], self.tables, stop=layer, keep_averages=keep
        )
        for swept in last:
            rows = swept.outputs if layer is None else swept.received[layer]
            assert rows is not None
            yield swept.nodes, rows.to_dense().cpu()  # features may be sparse
            self.done(len(swept.nodes))

    def work(self, nodes: Tensor | None = None, layer: int | None = None) -> int:
        return sum(map(len, self._needed(nodes, layer)))

    def _needed(self, nodes: Tensor | None, layer: int | None) -> list[Tensor]:
        """The nodes of each sweep, first to last: each includes the neighbours of the next."""
        if nodes is not None:
            return needed_nodes(self.setup, nodes, layer)
        evaluation = self.setup.evaluation
        last = evaluation.depth if layer is None else layer
        sweeps = max(last - evaluation.first_table, 0) + 1
        return [torch.arange(self.setup.graph.num_nodes)] * sweeps


def sweep_module(
    model: nn.Module,
    graph: Graph,
    *,
    propagation: PropagationLike | None = None,
    directory: Path | None = None,
    on_chunk: Callable[[int], None] | None = None,
) -> ExactSweeps:
    """The sweeps of a module, for a graph whose features are as it was trained on them."""
    trained_on = find_trained_on(model)
    if trained_on is not None:
        model = on_nodes(model, trained_on.nodes, graph)
    setup = set_up(model, graph, propagation=propagation, directory=directory)
    return ExactSweeps(model, setup, directory=directory, on_chunk=on_chunk)


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
