"""Correct and Smooth (Huang et al., ICLR 2021) around any model.

Correct: the model's errors on the training nodes are spread along the edges and added to its
predictions. Smooth: the predictions, on training nodes the labels, are spread in turn.

    Z ← a P Z + (1 - a) E,        E the errors of training nodes, 0 elsewhere
    G ← b P G + (1 - b) (S + Z),  S the model's shares; of training nodes their labels

P is the mean over the neighbours; a node without neighbours keeps what it has. Shares are
probabilities, or numbers less the mean of the training labels. Z is taken as it is, or at the size
that errors have on training nodes (autoscale). Only labels of training nodes are in E and G.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self

import pyarrow as pa
import torch
from torch import Tensor

from vrgcn.files.kinds import FLAG, Kind
from vrgcn.files.mistakes import InputError
from vrgcn.files.setting_names import setting
from vrgcn.graph.graph import Graph
from vrgcn.graph.mapped import zeros
from vrgcn.graph.propagation import build_propagation, chunks, with_neighbours
from vrgcn.inference.node_tables import id_tensors, ids_of_tensors, places_of
from vrgcn.inference.stage import Stage, StagedOutputs
from vrgcn.inference.sweeps import ROWS, Outputs
from vrgcn.tasks.task import Task

if TYPE_CHECKING:
    from vrgcn.inference.saved import SavedModel


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
        reached = nodes.unique()
        for _ in range(STEPS):
            wider = with_neighbours(reached, self.P)
            if len(wider) == len(reached):
                break
            reached = wider
        return reached


def corrected(shares: Tensor, z: Tensor, size: float | None) -> Tensor:
    """Shares with spread errors added: (rows, width).

    size: that of the errors of training nodes; None: errors as they are
    """
    if size is not None:
        z = z * (size / z.abs().sum(1, keepdim=True).clamp(min=_LEAST))
    return shares + z


def outputs_of(task: Task, smoothed: Tensor, centre: float) -> Tensor:
    """Outputs whose shares are smoothed ones: (rows, width) float64."""
    outputs = smoothed.double() + centre
    if task.has_classes:
        outputs = outputs.clamp(min=_LEAST)
        outputs = outputs.clamp(max=1) if task.several else outputs / outputs.sum(1, keepdim=True)
    return task.from_shares(outputs)


def _number(least: float, most: float, words: str) -> Kind:
    return Kind(lambda v: type(v) in (int, float) and least <= v < most, words)


@dataclass(frozen=True, eq=False)
class Smoothing(Stage):
    """Everything that corrects and smooths the outputs of a model, on any graph.

    correct, smooth: a and b above; autoscale: errors are taken at the training nodes' size
    size: mean over the training nodes of the sum of their errors' sizes
    centre: number that shares are taken less of
    errors, labels: (training nodes, outputs)
    nodes: ids of the training nodes, or their numbers
    """

    correct: float
    smooth: float
    autoscale: bool
    size: float
    centre: float
    errors: Tensor
    labels: Tensor
    nodes: pa.Array

    name = "smoothed"
    title = "Correct & Smooth"
    words = "corrected and smoothed"
    of_nodes = True
    kinds: ClassVar[Mapping[str, Kind]] = {
        **dict.fromkeys(("correct", "smooth"), _number(0, 1, "at least 0 and below 1")),
        "autoscale": FLAG,
        "size": _number(0, float("inf"), "a number of at least 0"),
        "centre": _number(-float("inf"), float("inf"), "a finite number"),
    }

    @property
    def tensors(self) -> dict[str, Tensor]:
        return {"errors": self.errors, "labels": self.labels, **id_tensors(self.nodes)}

    @classmethod
    def of_file(
        cls,
        where: str,
        settings: Mapping[str, Any],
        tensors: dict[str, Tensor],
        before: SavedModel,
    ) -> Self:
        errors, labels = tensors.get("errors"), tensors.get("labels")
        nodes = ids_of_tensors(where, tensors)
        if errors is None or labels is None or nodes is None:
            raise InputError(f"{where}: lacks errors, labels or nodes of its smoothing")
        if errors.dim() != 2 or errors.shape != labels.shape or len(errors) != len(nodes):
            raise InputError(
                f"{where}: its smoothing has {len(nodes)} nodes, errors {tuple(errors.shape)} and "
                f"labels {tuple(labels.shape)}"
            )
        if not (errors.is_floating_point() and labels.is_floating_point()):
            raise InputError(
                f"{where}: errors and labels of its smoothing hold {errors.dtype} and "
                f"{labels.dtype}, not floating-point numbers"
            )
        if before.num_classes not in (None, errors.shape[1]):
            raise InputError(
                f"{where}: its smoothing is of {errors.shape[1]} outputs, and the model has "
                f"{before.num_classes}"
            )
        return cls(**settings, errors=errors, labels=labels, nodes=nodes)

    def on(self, inner: Outputs, task: Task, directory: Path | None) -> Outputs:
        return SmoothedOutputs(inner, self, task, directory)

    @property
    def caution(self) -> str | None:
        return (
            f"the scores of training nodes say nothing: {self.title} gives them their own labels; "
            f"{setting('smooth', 'never', command='train')} trains without it"
        )

    def places(self, graph: Graph) -> tuple[Tensor, Tensor]:
        """The training nodes that a graph has: (found,) their rows here; (found,) their numbers in
        the graph."""
        places = places_of(self.nodes, graph)
        rows = (places >= 0).nonzero()[:, 0]
        return rows, places[rows]


class SmoothedOutputs(StagedOutputs):
    """Outputs of a `Smoothing`. Memory is that of the stages before it, and up to six tables of
    outputs. Outputs of some nodes need those before for the nodes within STEPS hops."""

    file = "smoothed.bin"

    def __init__(
        self, inner: Outputs, smoothing: Smoothing, task: Task, directory: Path | None
    ) -> None:
        super().__init__(inner, directory)
        self.smoothing = smoothing
        self.task = task

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
