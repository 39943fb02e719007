"""Write pairs of nodes as a sorted adjacency matrix on disk, holding one part in memory at a time.

An edge from node s to node t is the number t·nodes + s, so that sorting numbers sorts the entries
of the matrix A[t, s] by row and column. The numbers wait in a file. Rows of A are then divided into
ranges of a bounded number of entries, the numbers into a file for each range, and one range after
the other is sorted, merged and appended to the relation's `indices`. A row with more entries than
that is a range of its own, and is merged while it is read.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vrgcn.data.store import write_array
from vrgcn.data.store_format import MATRIX, numbered
from vrgcn.data.tables.growing import GrowingArray
from vrgcn.files.mistakes import InputError

RANGE_ENTRIES = 1 << 22
MOST_RANGES = 128  # an approximate limit; each range is one or two open files
_CHUNK = 1 << 21
_KINDS: tuple[type, type] = (np.int64, np.float64)  # dtypes of the entries' keys and weights

Int64s = NDArray[np.int64]
Float64s = NDArray[np.float64]


class EdgeFile:
    """Edges in a temporary file; memory holds only counts, since there may be many relations.

    name: the file that the edges come from, for errors
    notes: remarks about the edges for the user
    folder: of the graph, where the matrix is written too
    number: of the relation, in the names of the files
    """

    def __init__(
        self, name: str, folder: Path, nodes: int, weighted: bool, number: int = 0
    ) -> None:
        self.name = name
        self.folder = folder
        self.number = number
        self.nodes = nodes
        self.weighted = weighted
        self.notes: list[str] = []
        self.rows = self.skipped = self.loops = self.zero = self.negative = 0
        parts = numbered(("pairs", "pair-weights"), number)
        self._names = [folder / part for part in parts[: 1 + weighted]]
        for file in self._names:
            file.touch(exist_ok=False)

    def append(self, source: Int64s, target: Int64s, weight: Float64s | None) -> None:
        """Append edges, given by their nodes; edges with an unknown node, -1, are counted as
        skipped."""
        right = (source >= 0) & (target >= 0)
        if not right.all():
            self.skipped += int((~right).sum())
            source, target = source[right], target[right]
            weight = None if weight is None else weight[right]
        loop = source == target
        self.rows += len(source)
        self.loops += int(loop.sum())
        self._write(0, target * self.nodes + source)
        if weight is not None:
            self.zero += int((weight == 0).sum())
            self.negative += int((weight < 0).sum())
            self._write(1, np.ascontiguousarray(weight))

    def _write(self, place: int, values: NDArray[Any]) -> None:
        # Opened each time: hundreds of relations would be more files than a process may have open.
        with open(self._names[place], "ab") as file:
            file.write(values.data)

    def chunks(self) -> Iterator[tuple[Int64s, Int64s, Float64s | None]]:
        """Yield sources, targets and weights in the order in which they were appended."""
        with ExitStack() as stack:
            files = [stack.enter_context(open(name, "rb")) for name in self._names]
            while len(keys := np.fromfile(files[0], np.int64, _CHUNK)):
                target, source = np.divmod(keys, self.nodes)
                weight = np.fromfile(files[1], np.float64, _CHUNK) if self.weighted else None
                yield source, target, weight

    def ends(self) -> tuple[Int64s, Int64s]:
        """(nodes,) edges into each node, and (nodes,) edges out of it, self-loops left out."""
        into, out_of = np.zeros(self.nodes, np.int64), np.zeros(self.nodes, np.int64)
        for source, target, _ in self.chunks():
            into += np.bincount(target, minlength=self.nodes)
            out_of += np.bincount(source[source != target], minlength=self.nodes)
        return into, out_of

    def remove(self) -> None:
        for name in self._names:
            name.unlink()


@dataclass(frozen=True)
class Adjacency:
    """The adjacency matrix on disk, and the counts made while it was written.

    entries: of the matrix
    degree: (nodes,) entries in each row, the edges into a node
    out_degree: (nodes,) entries in each column
    loops: (nodes,) 1 for a node with an edge to itself
    duplicates: edges that repeat an earlier one
    reciprocal: edges given in both directions, where each should count for both
    """

    folder: Path
    number: int
    directed: bool
    entries: int
    degree: Int64s
    out_degree: Int64s
    loops: Int64s
    duplicates: int
    reciprocal: int

    def without_degrees(self) -> Adjacency:
        """The same without the arrays that are as long as there are nodes."""
        none = self.degree[:0].copy()
        return replace(self, degree=none, out_degree=none, loops=none)

    def over_neighbours(self, value: Float64s) -> tuple[Float64s, Float64s]:
        """Return the mean and the maximum of `value`, (nodes,), over the edges into each node; 0
        for a node without such edges."""
        indptr = np.load(self.folder / f"indptr_{self.number}.npy")
        indices = np.load(self.folder / f"indices_{self.number}.npy", mmap_mode="r")
        mean, largest = np.zeros_like(value), np.zeros_like(value)
        for first, end in _ranges(self.degree, _CHUNK):
            rows = first + np.flatnonzero(self.degree[first:end])
            if len(rows):
                values = value[indices[indptr[first] : indptr[end]]]
                starts = indptr[rows] - indptr[first]
                mean[rows] = np.add.reduceat(values, starts) / self.degree[rows]
                largest[rows] = np.maximum.reduceat(values, starts)
        return mean, largest


def write_adjacency(pairs: EdgeFile, directed: bool) -> Adjacency:
    """Write the pairs as CSR: `indptr`, `indices` and for weighted edges `weights`. For a directed
    graph, also write the matrix of the reversed edges, which the gradients follow.

    For an undirected graph, the reverse of every edge that is no self-loop is added first. Entries
    at the same place are merged; their weights are summed, as `Graph` does.
    """
    into, out_of = pairs.ends()
    merged = _write_matrix(pairs, directed, into if directed else into + out_of)
    if directed:  # `out_of` leaves self-loops out; an upper bound is enough
        _write_matrix(pairs, directed, out_of + 1, reverse=True)
    pairs.remove()
    degree = merged.degree
    return Adjacency(
        pairs.folder,
        pairs.number,
        directed,
        int(degree.sum()),
        degree,
        merged.out_degree,
        merged.loop,
        duplicates=pairs.rows - merged.given,
        reciprocal=merged.reciprocal // 2,
    )


def _write_matrix(
    pairs: EdgeFile, directed: bool, counts: Int64s, *, reverse: bool = False
) -> _Merged:
    """Write one matrix in CSR form, and return its counts.

    counts: (nodes,) entries of each row at most
    reverse: write the matrix of the reversed edges, its arrays named `reverse_...`
    """
    prefix = "reverse_" if reverse else ""
    names = numbered(tuple(prefix + part for part in MATRIX), pairs.number)
    indptr_name, indices_name, weights_name = names
    most = max(RANGE_ENTRIES, int(counts.sum()) // MOST_RANGES)
    ranges = _ranges(counts, most)
    merged = _Merged(pairs.nodes)
    with ExitStack() as stack:
        indices = stack.enter_context(GrowingArray(pairs.folder / f"{indices_name}.npy", np.int64))
        weights = None
        if pairs.weighted:
            name = pairs.folder / f"{weights_name}.npy"
            weights = stack.enter_context(GrowingArray(name, np.float32))
        for parts in _divided(pairs, ranges, directed, reverse):
            keys, weight = _read_range(parts, most)
            columns, values = merged.add(keys, weight)
            indices.append(columns)
            if weights is not None and values is not None:
                if not np.isfinite(values).all():
                    raise InputError(
                        f"{pairs.name}: the weights of repeated edges sum to more than 32 bits hold"
                    )
                weights.append(values)
    indptr = np.concatenate([[0], np.cumsum(merged.degree)]).astype(np.int64)
    write_array(pairs.folder, indptr_name, indptr)
    return merged


def _ranges(counts: Int64s, most: int) -> list[tuple[int, int]]:
    """Divide the rows into ranges of at most `most` entries; a row with more is a range of its
    own."""
    ends = np.cumsum(counts)
    ranges, first = [], 0
    while first < len(counts):
        before = ends[first - 1] if first else 0
        end = max(first + 1, int(np.searchsorted(ends, before + most, side="right")))
        ranges.append((first, end))
        first = end
    return ranges


def _divided(
    pairs: EdgeFile, ranges: list[tuple[int, int]], directed: bool, reverse: bool
) -> Iterator[list[Path]]:
    """Yield the files of each range of rows, and remove them afterwards. They hold the range's
    entries, unsorted: the keys 2·(t·nodes + s) + reversed, and the weights if there are any.

    The last bit of a key is 1 for an edge that was added as the reverse of a given one.
    """
    names = [
        [pairs.folder / f"range-{place}-{kind.__name__}" for kind in _KINDS[: 1 + pairs.weighted]]
        for place in range(len(ranges))
    ]
    starts = np.array([first for first, _ in ranges])
    with ExitStack() as stack:
        files = [[stack.enter_context(open(name, "wb")) for name in row] for row in names]
        for keys, weight in _entries(pairs, directed, reverse):
            home = np.searchsorted(starts, keys // (2 * pairs.nodes), side="right") - 1
            order = np.argsort(home.astype(np.uint16), kind="stable")
            ends = np.cumsum(np.bincount(home, minlength=len(ranges)))
            for row, part in zip(files, np.split(order, ends[:-1]), strict=True):
                row[0].write(keys[part].data)
                if weight is not None:
                    row[1].write(weight[part].data)
    for parts in names:
        yield parts
        for name in parts:
            name.unlink()


def _read_range(parts: list[Path], most: int) -> tuple[Int64s, Float64s | None]:
    """Read the keys of a range, and the weights if there are any.

    A range of more than `most` entries is one row, whose edges may repeat many times. Repeated
    edges are merged while they are read, so that memory holds at most twice as many keys as are
    different.
    """
    count = parts[0].stat().st_size // np.dtype(np.int64).itemsize
    keys, weight = np.empty(0, np.int64), np.empty(0) if len(parts) > 1 else None
    with ExitStack() as stack:
        files = [stack.enter_context(open(name, "rb")) for name in parts]
        while len(more := np.fromfile(files[0], np.int64, max(most, len(keys)))):
            keys = np.concatenate([keys, more])
            if weight is not None:
                weight = np.concatenate([weight, np.fromfile(files[1], np.float64, len(more))])
            if count > most:
                keys, weight = _without_repeats(keys, weight)
    return keys, weight


def _without_repeats(keys: Int64s, weight: Float64s | None) -> tuple[Int64s, Float64s | None]:
    """Return each key once, in ascending order, with the weights of equal keys summed."""
    if weight is None:
        return np.unique(keys), None
    keys, place = np.unique(keys, return_inverse=True)
    return keys, np.bincount(place, weight, len(keys)).astype(np.float64, copy=False)


def _entries(
    pairs: EdgeFile, directed: bool, reverse: bool
) -> Iterator[tuple[Int64s, Float64s | None]]:
    """Yield the keys and weights of all entries, two for an undirected edge; with `reverse`, those
    of the reversed edges."""
    for start, end, weight in pairs.chunks():
        source, target = (end, start) if reverse else (start, end)
        yield 2 * (target * pairs.nodes + source), weight
        if not directed:
            other = source != target
            keys = 2 * (source[other] * pairs.nodes + target[other]) + 1
            yield keys, None if weight is None else weight[other]


class _Merged:
    """Sorts and merges one range of entries after the other, and counts degrees and repeated
    edges."""

    def __init__(self, nodes: int) -> None:
        self._nodes = nodes
        self.degree = np.zeros(nodes, np.int64)
        self.out_degree = np.zeros(nodes, np.int64)
        self.loop = np.zeros(nodes, np.int64)
        self.given = self.reciprocal = 0

    def add(
        self, keys: Int64s, weight: Float64s | None
    ) -> tuple[Int64s, NDArray[np.float32] | None]:
        """Sort and merge the entries of a range; return their columns and values in sorted
        order."""
        if weight is None:
            keys.sort()
        else:
            order = np.argsort(keys, kind="stable")
            keys, weight = keys[order], weight[order]
        step = np.diff(keys, prepend=-2)
        given = (keys & 1) == 0
        self.given += int((given & (step > 0)).sum())
        # A given entry followed by a reversed one at the same place: the table lists the edge both
        # ways.
        self.reciprocal += int((~given & (step == 1)).sum())
        starts = np.flatnonzero(np.diff(keys >> 1, prepend=-1))
        row, column = np.divmod(keys[starts] >> 1, self._nodes)
        self.degree += np.bincount(row, minlength=self._nodes)
        self.out_degree += np.bincount(column, minlength=self._nodes)
        self.loop[row[row == column]] = 1
        if weight is None or not len(keys):
            return column, None if weight is None else weight.astype(np.float32)
        with np.errstate(over="ignore"):
            return column, np.add.reduceat(weight, starts).astype(np.float32)
