"""Parts of a graph: nodes that are neighbours together, equal shares of the work in each.

Two kinds of work are balanced at once: the edges into a part's nodes, which decide what a step of
them costs and how much memory they take, and its training nodes, which decide how many steps an
epoch of the part has.

`metis` (Karypis and Kumar, 1998) cuts the fewest edges and needs the graph in memory several times.
`ldg`, linear deterministic greedy (Stanton and Kliot, KDD 2012), streams the adjacency and keeps
a few numbers for each node: node v goes to the part p with the largest

    |N(v) ∩ p| · (1 − load of p / capacity),

and the stream is read again, each node leaving its part and choosing anew (restreaming: Nishimura
and Ugander, KDD 2013). Nodes are taken a batch at a time, which choose at the same moment.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from vrgcn.files.memory import free_memory
from vrgcn.files.mistakes import InputError
from vrgcn.graph.graph import Graph
from vrgcn.graph.mapped import Tell
from vrgcn.graph.propagation import is_symmetric
from vrgcn.graph.sparse import CSR

Method = Literal["auto", "metis", "ldg"]
SLACK = 0.05  # how much more than its share a part may have of each kind of work
_PASSES = 10  # over the stream; later ones move few nodes
_BATCH = 4096  # nodes that choose at the same moment, at most
_CELLS = 1 << 22  # entries of a batch's table of scores
_ROUNDS = 16  # in which nodes of a batch whose part is full choose another
_METIS_BYTES = 40  # for each directed edge, its copies for METIS and its coarser graphs included
_UNASSIGNED = -1


def partition(
    graph: Graph,
    parts: int,
    method: Method = "auto",
    *,
    slack: float = SLACK,
    tell: Tell | None = None,
) -> Tensor:
    """The part of every node: (nodes,) int64, 0 to parts − 1. The same for the same graph.

    graph: perhaps of memory-mapped files; "ldg" copies nothing of the size of the edges
    method: "metis", "ldg" or "auto": METIS where pymetis is installed and the graph fits in memory
    slack: no part has more than 1 + slack times its share of the edges, or of the training nodes,
        unless single nodes are larger than that
    tell: told the share of the passes over the stream that is done, which may end before all are
    """
    if parts < 1:
        raise InputError(f"a graph has at least 1 part, not {parts}")
    if parts > max(graph.num_nodes, 1):
        raise InputError(f"{parts} parts of a graph of {graph.num_nodes} nodes: some had none")
    if method not in ("auto", "metis", "ldg"):
        raise InputError(f"method {method!r} is none of auto, metis, ldg")
    if parts == 1:
        return torch.zeros(graph.num_nodes, dtype=torch.int64)
    matrices = _directions(graph.adjacency)
    work = _work(graph)
    if method == "metis" or (method == "auto" and _metis_fits(graph)):
        # METIS balances one number for each node: the stream balances both kinds.
        assignment = _metis(matrices, work, parts)
    else:
        assignment = np.full(graph.num_nodes, _UNASSIGNED)
    stream = _Stream(matrices, work, parts, slack, assignment)
    for number in range(0 if stream.balanced else _PASSES):
        changed = 0
        for end, moved in stream.restream():
            changed += moved
            if tell is not None:
                tell((number + end / graph.num_nodes) / _PASSES)
        if changed <= graph.num_nodes // 1000:
            break
    return torch.from_numpy(stream.assignment)


def _directions(A: CSR) -> tuple[CSR, ...]:
    """Matrices whose rows together name all neighbours: A alone where it is symmetric."""
    return (A,) if is_symmetric(A) else (A, A.transposed)


def _work(graph: Graph) -> NDArray[Any]:
    """(nodes, 2): each node's share of the edges (and of the nodes), and of the training nodes."""
    work = np.zeros((graph.num_nodes, 2))
    edges = graph.adjacency.counts.numpy() + 1  # a node without edges is some work too
    work[:, 0] = edges / edges.sum()
    if len(graph.train):
        work[graph.train.numpy(), 1] = 1 / len(graph.train)
    return work


def _metis_fits(graph: Graph) -> bool:
    try:
        import pymetis  # noqa: F401
    except ImportError:
        return False
    return graph.num_edges * _METIS_BYTES < free_memory() / 2


def _metis(matrices: tuple[CSR, ...], work: NDArray[Any], parts: int) -> NDArray[Any]:
    try:
        import pymetis
    except ImportError:
        raise ImportError(
            "partitions by METIS need pymetis: pip install 'vrgcn[partition]', or choose ldg"
        ) from None
    indptr, indices = _undirected(matrices)
    share = work.sum(1) * (len(work) * 500)
    weights = np.maximum(share.round(), 1).astype(np.int64)
    _, assignment = pymetis.part_graph(
        parts,
        pymetis.CSRAdjacency(indptr, indices),
        vweights=weights,
        options=pymetis.Options(seed=0),
    )
    return np.asarray(assignment, dtype=np.int64)


def _undirected(matrices: tuple[CSR, ...]) -> tuple[NDArray[Any], NDArray[Any]]:
    """indptr and indices of the graph without directions, repeated edges and loops."""
    rows = torch.cat([A.row_of_entry for A in matrices])
    columns = torch.cat([A.indices for A in matrices])
    nodes = matrices[0].num_rows
    key = rows.mul_(nodes).add_(columns)[rows.div(nodes, rounding_mode="floor") != columns]
    key = torch.unique(key) if len(matrices) > 1 else key
    rows = key.div(nodes, rounding_mode="floor")
    indptr = np.zeros(nodes + 1, dtype=np.int64)
    np.cumsum(torch.bincount(rows, minlength=nodes).numpy(), out=indptr[1:])
    return indptr, (key - rows * nodes).numpy()


class _Stream:
    """Nodes in their order, a batch at a time, each batch choosing parts by the assignment so far.

    work: (nodes, 2) of each kind, the sum over all nodes 1
    assignment: (nodes,) parts, or _UNASSIGNED; changed in place
    """

    def __init__(
        self,
        matrices: tuple[CSR, ...],
        work: NDArray[Any],
        parts: int,
        slack: float,
        assignment: NDArray[Any],
    ) -> None:
        self.matrices, self.work, self.parts, self.assignment = matrices, work, parts, assignment
        nodes = len(assignment)
        self.capacity = (1 + slack) / parts
        self.loads = np.zeros((parts, work.shape[1]))
        placed = assignment != _UNASSIGNED
        for kind in range(work.shape[1]):
            self.loads[:, kind] = np.bincount(
                assignment[placed], work[placed, kind], minlength=parts
            )
        # Few enough that a batch does not fill a part with nodes that see nothing of each other.
        self.batch = max(1, min(_BATCH, _CELLS // parts, nodes // (4 * parts) + 1))

    @property
    def balanced(self) -> bool:
        """Whether every node has its part, and none is overfull."""
        return bool((self.assignment != _UNASSIGNED).all() and (self.loads <= self.capacity).all())

    def restream(self) -> Iterator[tuple[int, int]]:
        """One pass over all nodes: of each batch where it ends, and how many changed their part."""
        for start in range(0, len(self.assignment), self.batch):
            batch = slice(start, min(start + self.batch, len(self.assignment)))
            before = self.assignment[batch].copy()
            work = self.work[batch]
            here = before != _UNASSIGNED
            np.subtract.at(self.loads, before[here], work[here])
            # Neighbours inside the batch count where they were; a node keeps ties with its part.
            counts, inside = self._neighbours(batch)
            counts[np.flatnonzero(here), before[here]] += 0.5
            after = self._choose(counts, work, inside)
            self.assignment[batch] = after
            yield batch.stop, int((before != after).sum())

    def _neighbours(self, batch: slice) -> tuple[NDArray[Any], float]:
        """(batch, parts) how many neighbours each node has in each part; and the share of all its
        neighbours that are in the batch themselves."""
        rows, width = batch.stop - batch.start, self.parts + 1
        counts = np.zeros(rows * width, dtype=np.int64)
        inside = total = 0
        for A in self.matrices:
            indptr = A.indptr[batch.start : batch.stop + 1].numpy()
            neighbours = A.indices[indptr[0] : indptr[-1]].numpy()
            place = np.repeat(np.arange(rows), np.diff(indptr))
            part = self.assignment[neighbours]  # _UNASSIGNED counts in a column of its own
            counts += np.bincount(place * width + part + 1, minlength=rows * width)
            inside += int(((neighbours >= batch.start) & (neighbours < batch.stop)).sum())
            total += len(neighbours)
        return counts.reshape(rows, width)[:, 1:].astype(np.float64), inside / max(total, 1)

    def _choose(self, counts: NDArray[Any], work: NDArray[Any], inside: float) -> NDArray[Any]:
        """(batch,) parts; the loads have the batch from then on."""
        chosen = np.full(len(work), _UNASSIGNED)
        lonely = np.flatnonzero(~counts.any(1))
        # Nodes that no part attracts yet stay together if they are neighbours of each other.
        self._spread(lonely, work, chosen, runs=1 if inside > 0.5 else self.parts)
        left = np.flatnonzero(chosen == _UNASSIGNED)
        for _ in range(_ROUNDS):
            if not len(left):
                break
            scores = self._scores(counts[left], work[left])
            best = scores.argmax(1)
            score = scores[np.arange(len(left)), best]
            taken = self._take(best, score, work[left])
            chosen[left[taken]] = best[taken]
            left = left[~taken]
        self._spread(left, work, chosen, runs=len(left))
        return chosen

    def _scores(self, counts: NDArray[Any], work: NDArray[Any]) -> NDArray[Any]:
        """(nodes, parts): neighbours there times the room there; −inf where a node has no room.

        Only the kinds of work that a node brings with it count.
        """
        room = np.full(counts.shape, np.inf)
        for kind in range(work.shape[1]):
            brings = work[:, kind] > 0
            after = self.loads[:, kind] + work[brings, kind, None]
            fits = np.where(after <= self.capacity, 1 - self.loads[:, kind] / self.capacity, -1)
            room[brings] = np.minimum(room[brings], fits)
        # Without neighbours there, the emptier part: less than half a neighbour weighs.
        return np.where(room < 0, -np.inf, (counts + 1e-3) * room)

    def _take(self, best: NDArray[Any], score: NDArray[Any], work: NDArray[Any]) -> NDArray[Any]:
        """(nodes,) bool: those that fit into the part they chose, the surest first."""
        order = np.lexsort((-score, best))
        sums = np.cumsum(work[order], axis=0)
        first = np.searchsorted(best[order], best[order])  # the first place of each part
        within = sums - sums[first] + work[order][first]
        fits = (self.loads[best[order]] + within <= self.capacity) | (work[order] == 0)
        taken = np.zeros(len(best), dtype=bool)
        taken[order] = fits.all(1) & np.isfinite(score[order])
        np.add.at(self.loads, best[taken], work[taken])
        return taken

    def _spread(
        self, nodes: NDArray[Any], work: NDArray[Any], chosen: NDArray[Any], runs: int
    ) -> None:
        """Nodes that no part attracts, or has room for: each run of them to the emptiest part."""
        if not len(nodes):
            return
        for run in np.array_split(nodes, min(runs, len(nodes))):
            brings = work[run].any(0)
            part = int(self.loads[:, brings].max(1).argmin())
            chosen[run] = part
            self.loads[part] += work[run].sum(0)
