"""Writes the parts of a graph, one after the other.

Memory holds a few numbers for each node of the whole graph, and the edges of one part at a time;
features are copied from file to file in runs of rows.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from vrgcn import __version__
from vrgcn.data.sources import META
from vrgcn.data.store import write_array, write_meta
from vrgcn.data.store_arrays import relation_arrays, write_ids
from vrgcn.data.store_format import BlockPlace, RelationPlace
from vrgcn.data.tables.growing import GrowingArray
from vrgcn.distributed.parts import (
    ARRAYS,
    FORMAT,
    IDS,
    SHARED,
    VERSION,
    no_shared,
    part_folder,
    write_description,
)
from vrgcn.files.checksums import file_checksum
from vrgcn.files.mistakes import InputError
from vrgcn.files.tensors import write_tensors
from vrgcn.files.writing import new_folder
from vrgcn.graph.graph import Graph
from vrgcn.graph.kinds import Kinds
from vrgcn.graph.propagation import Propagation, chunks, column_sums, is_symmetric, row_sums
from vrgcn.graph.relations import ONLY
from vrgcn.graph.scaling import Scaling
from vrgcn.graph.sparse import CSR, is_dense, offsets
from vrgcn.graph.validation import SPLITS
from vrgcn.runs.identity import fingerprint
from vrgcn.tasks import find_task

_ROWS = 65_536  # rows of features that are copied at once


@dataclass(frozen=True)
class PartSize:
    """The size of a part.

    own, halo, training: numbers of nodes
    edges: edges into own nodes; cut: those of them that come from other parts
    copies: own nodes in halos of others, counted once for each
    """

    own: int
    halo: int
    training: int
    edges: int
    cut: int
    copies: int


def write_parts(
    graph: Graph,
    assignment: Tensor,
    out: Path,
    *,
    parts: int,
    scaling: str,
    on_part: Callable[[int], None] | None = None,
) -> list[PartSize]:
    """Write the parts that `assignment` (nodes,) makes of the graph to the new folder `out`.

    scaling: of the features, unless training sets another
    on_part: called with the number of each part that is written
    """
    if graph.kinds.named:
        raise InputError("a graph of several kinds of nodes cannot be divided into parts yet")
    if not is_dense(graph.features):
        raise InputError(
            "the features are sparse, and parts are of dense ones: save the graph with "
            "graph.with_features(graph.features.to_dense())"
        )
    writer = _Writer(graph, assignment, parts)
    with new_folder(out) as folder:
        sizes = []
        for number in range(parts):
            sizes.append(writer.write(part_folder(folder, number), number))
            if on_part is not None:
                on_part(number)
        _write_tensors(folder / SHARED, _shared(graph) or no_shared())
        if graph.names.nodes is not None:
            write_ids(graph.names.nodes, folder / IDS)
        names = [SHARED, *([IDS] if graph.names.nodes is not None else [])]
        for number in range(parts):
            names += [f"{part_folder(folder, number).name}/{name}" for name in (ARRAYS, META)]
        write_description(
            folder,
            {
                "format": FORMAT,
                "version": VERSION,
                "vrgcn": __version__,
                "parts": parts,
                "nodes": graph.num_nodes,
                "edges": graph.num_edges,
                "scaling": scaling,
                "classes": graph.names.classes,
                "sizes": [vars(size) for size in sizes],
                "graph": fingerprint(graph),
                "files": {name: file_checksum(folder / name) for name in names},
            },
        )
    return sizes


class _Writer:
    def __init__(self, graph: Graph, assignment: Tensor, parts: int) -> None:
        self.graph = graph
        self.assignment = assignment
        self.parts = parts
        A = graph.adjacency
        self.symmetric = is_symmetric(A)
        # A row of A lists the nodes that a node reads; a row of the other lists the nodes that read
        # it.
        self.directions = (A,) if self.symmetric else (A, A.transposed)
        self.sums = row_sums(graph), column_sums(graph)
        self.place = torch.full((graph.num_nodes,), -1, dtype=torch.int64)

    def write(self, folder: Path, number: int) -> PartSize:
        own = (self.assignment == number).nonzero()[:, 0]
        if not len(own):
            raise InputError(f"part {number} of {self.parts} has no nodes: make fewer parts")
        halo, send = self._borders(own, number)
        owners = self.assignment[halo]
        order = torch.argsort(owners, stable=True)
        halo = halo[order]
        nodes = torch.cat([own, halo])
        self.place[nodes] = torch.arange(len(nodes))
        folder.mkdir()
        adjacency, edges, cut = self._adjacency(own, len(nodes))
        self._write_graph(folder, own, nodes, adjacency)
        target = torch.div(send, self.graph.num_nodes, rounding_mode="floor")
        _write_tensors(
            folder / ARRAYS,
            {
                "nodes": nodes,
                "row_sums": self.sums[0][nodes],
                "column_sums": self.sums[1][nodes],
                "halo_indptr": offsets(torch.bincount(owners, minlength=self.parts)),
                "send_indptr": offsets(torch.bincount(target, minlength=self.parts)),
                "send_indices": self.place[send - target * self.graph.num_nodes],
            },
        )
        training = int((self.assignment[self.graph.train] == number).sum())
        self.place[nodes] = -1
        return PartSize(len(own), len(halo), training, edges, cut, len(send))

    def _borders(self, own: Tensor, number: int) -> tuple[Tensor, Tensor]:
        """Return the halo, ascending; and part * nodes + node for each own node in a halo of
        others, ascending."""
        outside = torch.zeros(self.graph.num_nodes, dtype=torch.bool)
        keys = [own[:0]]
        for A in self.directions:
            for run in chunks(own, _unweighted(A)):
                indptr, entries = A.entries(run)
                others = A.indices.index_select(0, entries)
                rows = torch.repeat_interleave(run, indptr.diff())
                part = self.assignment.index_select(0, others)
                away = part != number
                outside[others[away]] = True
                keys.append(torch.unique(part[away] * self.graph.num_nodes + rows[away]))
        return outside.nonzero()[:, 0], torch.unique(torch.cat(keys))

    def _adjacency(self, own: Tensor, count: int) -> tuple[CSR, int, int]:
        """Return all edges with an end among the own nodes, how many of them lead into these, and
        how many of those come from other parts."""
        A, into = self.directions[0], self.directions[-1]
        mine, edges, cut = self._edges(A, own, count, turned=False)
        # Rows of the halo: the edges that leave the part, seen from the other end.
        theirs, _, _ = self._edges(into, own, count, turned=True)
        return _joined(mine, theirs, count, A.values is not None), edges, cut

    def _edges(
        self, A: CSR, own: Tensor, count: int, *, turned: bool
    ) -> tuple[list[tuple[Tensor, Tensor | None]], int, int]:
        """Return positions row * count + column, ascending, and values, of runs of own rows.
        turned: with rows and columns exchanged, and only entries whose row is then in the halo."""
        pieces, edges, cut = [], 0, 0
        for run in chunks(own, _unweighted(A)):
            indptr, entries = A.entries(run)
            rows = torch.repeat_interleave(self.place[run], indptr.diff())
            columns = self.place[A.indices.index_select(0, entries)]
            values = None if A.values is None else A.values.index_select(0, entries)
            away = columns >= len(own)
            edges, cut = edges + len(columns), cut + int(away.sum())
            if turned:
                rows, columns = columns[away], rows[away]
                values = None if values is None else values[away]
            key, order = torch.sort(rows * count + columns)
            pieces.append((key, None if values is None else values[order]))
        return pieces, edges, cut

    def _write_graph(self, folder: Path, own: Tensor, nodes: Tensor, A: CSR) -> None:
        graph = self.graph
        relation = RelationPlace(*ONLY, A.num_entries, A.values is not None, self.symmetric)
        block = BlockPlace(0, 0, len(nodes), graph.num_features, None)
        for name, array in relation_arrays([relation], [A]).items():
            write_array(folder, name, array.numpy())
        [name] = block.files(0)
        _write_rows(folder / f"{name}.npy", graph.features, nodes)
        if graph.labels is not None:
            write_array(folder, "labels", graph.labels[nodes].numpy())
        for name in SPLITS:
            ids = graph.split(name)
            mine = self.place[ids[self.assignment[ids] == self.assignment[own[0]]]]
            write_array(folder, name, mine.numpy())
        write_meta(
            folder,
            Kinds.one(len(nodes), graph.num_features),
            replace(graph.names, nodes=None),
            [relation],
            [block],
            num_classes=graph.num_classes,
            task=graph.task,
        )


def _joined(
    mine: list[tuple[Tensor, Tensor | None]],
    theirs: list[tuple[Tensor, Tensor | None]],
    count: int,
    weighted: bool,
) -> CSR:
    """Join the rows into a matrix (count, count), own rows first."""
    late = torch.cat([key for key, _ in theirs])
    late, order = torch.sort(late)
    key = torch.cat([*(key for key, _ in mine), late])
    values = None
    if weighted:
        last = torch.cat([value for _, value in theirs if value is not None])[order]
        values = torch.cat([*(value for _, value in mine if value is not None), last])
    rows = torch.div(key, count, rounding_mode="floor")
    indptr = offsets(torch.bincount(rows, minlength=count))
    return CSR(indptr, key - rows * count, values, count)


def _unweighted(A: CSR) -> Propagation:
    """Return the matrix that `chunks` asks for degrees."""
    return Propagation(0.0, None, A, None, torch.float32)


def _write_rows(file: Path, features: Tensor, nodes: Tensor) -> None:
    with GrowingArray(file, features.numpy().dtype, (features.shape[1],)) as out:
        for run in nodes.split(_ROWS):
            out.append(features.index_select(0, run).numpy())


def _shared(graph: Graph) -> dict[str, Tensor]:
    if not len(graph.train) or graph.labels is None:
        return {}
    scaling = Scaling.fit("standard", graph.features, graph.train)
    assert scaling.mean is not None
    assert scaling.deviation is not None
    labels = graph.labels[graph.train]
    shared = {"scaling.mean": scaling.mean, "scaling.deviation": scaling.deviation}
    return shared | find_task(graph.task).facts(labels, graph.num_classes)


def _write_tensors(path: Path, tensors: dict[str, Any]) -> None:
    with open(path, "xb") as file:
        write_tensors(file, tensors)
        file.flush()
        os.fsync(file.fileno())
