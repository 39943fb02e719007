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

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import pyarrow as pa
import torch
from torch import Tensor

from vrgcn.files.kinds import FLAG, Kind
from vrgcn.files.mistakes import InputError
from vrgcn.graph.graph import Graph
from vrgcn.graph.mapped import zeros
from vrgcn.graph.propagation import build_propagation, chunks, with_neighbours
from vrgcn.inference.node_tables import id_tensors, ids_of_tensors, places_of
from vrgcn.tasks.task import Task

STEPS = 10  # of each of the two spreads
_LEAST = 1e-9  # smallest probability
_PREFIX = "smoothing."


def _number(least: float, most: float, words: str) -> Kind:
    return Kind(lambda v: type(v) in (int, float) and least <= v < most, words)


@dataclass(frozen=True, eq=False)
class Smoothing:
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

    kinds: ClassVar[Mapping[str, Kind]] = {
        **dict.fromkeys(("correct", "smooth"), _number(0, 1, "at least 0 and below 1")),
        "autoscale": FLAG,
        "size": _number(0, float("inf"), "a number of at least 0"),
        "centre": _number(-float("inf"), float("inf"), "a finite number"),
    }

    @property
    def settings(self) -> dict[str, Any]:
        """The entries that a file describes it by."""
        return {name: getattr(self, name) for name in self.kinds}

    @property
    def tensors(self) -> dict[str, Tensor]:
        """The tensors that a file keeps."""
        held = {f"{_PREFIX}errors": self.errors, f"{_PREFIX}labels": self.labels}
        return held | id_tensors(self.nodes, _PREFIX)

    @staticmethod
    def of_file(path: Path, settings: Mapping[str, Any], tensors: dict[str, Tensor]) -> Smoothing:
        """Build from the entries and the tensors of a file; raise if they do not agree."""
        errors, labels = (tensors.get(f"{_PREFIX}{name}") for name in ("errors", "labels"))
        nodes = ids_of_tensors(path, tensors, _PREFIX)
        if errors is None or labels is None or nodes is None:
            raise InputError(f"{path}: lacks errors, labels or nodes of its smoothing")
        if errors.dim() != 2 or errors.shape != labels.shape or len(errors) != len(nodes):
            raise InputError(
                f"{path}: its smoothing has {len(nodes)} nodes, errors {tuple(errors.shape)} and "
                f"labels {tuple(labels.shape)}"
            )
        if not (errors.is_floating_point() and labels.is_floating_point()):
            raise InputError(
                f"{path}: errors and labels of its smoothing hold {errors.dtype} and "
                f"{labels.dtype}, not floating-point numbers"
            )
        return Smoothing(**settings, errors=errors, labels=labels, nodes=nodes)

    def places(self, graph: Graph) -> tuple[Tensor, Tensor]:
        """The training nodes that a graph has: (found,) their rows here; (found,) their numbers in
        the graph."""
        places = places_of(self.nodes, graph)
        rows = (places >= 0).nonzero()[:, 0]
        return rows, places[rows]


def is_smoothing(tensor: str) -> bool:
    """True if a tensor of a file belongs to a smoothing, by its name."""
    return tensor.startswith(_PREFIX)


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
