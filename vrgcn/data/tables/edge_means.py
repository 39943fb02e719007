"""Columns of edges as features of nodes: the mean over the edges of each node, per relation.

The mean is computed once, here, so that a step of training costs nothing extra. The node that an
edge enters gets it as a feature of the relation, `bought.rating`, the node that it leaves as one of
the reverse, `rev_bought.rating`. A node without such edges gets the mean over all edges, and where
there are such nodes a last feature, `bought.none`, marks them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from vrgcn.data.tables.encoders.encoder import Encoder
from vrgcn.data.tables.features import FeatureColumns
from vrgcn.data.tables.problems import Problems
from vrgcn.data.tables.reading import Table
from vrgcn.data.tables.schema import REVERSE

NONE = "none"  # the feature that marks nodes without an edge of the relation


@dataclass(frozen=True)
class NodeMeans:
    """Means over the edges of the nodes of one kind.

    names: of the features
    values: (nodes of the kind, width)
    marked: the last feature marks nodes without such edges
    """

    names: list[str]
    values: NDArray[np.float32]
    marked: bool


@dataclass
class _Sums:
    """Sums of the encoded columns, (nodes, width), and edges of each node, at one end."""

    values: NDArray[np.float64]
    edges: NDArray[np.int64]


class EdgeMeans:
    """Sums the encoded columns of a table of edges for the nodes at both ends.

    sizes: numbers of nodes of the source kind and of the target kind
    marks: for each relation whether the nodes at its source and at its target have a mark; None to
        mark where there are nodes without edges
    usual: (width,) what nodes without edges get; None for the mean over the edges of this table
    """

    def __init__(
        self,
        table: Table,
        encoders: Sequence[Encoder],
        sizes: tuple[int, int],
        marks: Mapping[str, Sequence[bool]] | None = None,
        usual: NDArray[np.float32] | None = None,
    ) -> None:
        self.problems = Problems(table)
        self._columns = FeatureColumns(table, encoders, self.problems, marked=False)
        self._sizes = sizes
        self._marks = marks
        self._usual = usual
        self._relations: dict[str, tuple[_Sums, _Sums]] = {}

    def fit(self, on_rows: Callable[[str, int], None]) -> None:
        """Fit the encoders that must see their whole column before they can encode it."""
        self._columns.fit(on_rows)

    def block(self, start: int, batch: pa.Table) -> NDArray[np.float32]:
        """Return the encoded columns of a batch whose first row is `start`, (rows, width)."""
        return self._columns.block(start, batch.combine_chunks().to_batches()[0])

    def add(
        self,
        relation: str,
        block: NDArray[np.float32],
        source: NDArray[np.int64],
        target: NDArray[np.int64],
    ) -> None:
        """Add edges of a relation.

        block: (edges, width) their encoded columns
        source, target: (edges,) places within their kinds, -1 if unknown
        """
        right = (source >= 0) & (target >= 0)
        ends = self._relations.get(relation) or self._start(relation)
        for sums, places in zip(ends, (source[right], target[right]), strict=True):
            count = len(sums.edges)
            sums.edges += np.bincount(places, minlength=count)
            for column in range(block.shape[1]):
                weights = block[right, column]
                sums.values[:, column] += np.bincount(places, weights, count)

    def finish(self, relation: str) -> tuple[NodeMeans, NodeMeans]:
        """Return the features of the source kind and those of the target kind."""
        ends = self._relations.get(relation) or self._start(relation)
        marks = self._marks[relation] if self._marks is not None else (None, None)
        prefixes = (f"{REVERSE}{relation}", relation)
        source, target = map(self._means, prefixes, ends, marks)
        return source, target

    @property
    def usual(self) -> NDArray[np.float32]:
        """(width,) the mean over all edges."""
        if self._usual is None:
            targets = [target for _, target in self._relations.values()]
            edges = sum(int(sums.edges.sum()) for sums in targets)
            total = np.sum([sums.values.sum(0) for sums in targets], axis=0)
            self._usual = (total / max(edges, 1)).astype(np.float32)
        return self._usual

    def notes(self) -> list[str]:
        return self._columns.notes()

    def _start(self, relation: str) -> tuple[_Sums, _Sums]:
        width = len(self._columns.names)
        source, target = (
            _Sums(np.zeros((size, width)), np.zeros(size, np.int64)) for size in self._sizes
        )
        self._relations[relation] = source, target
        return source, target

    def _means(self, prefix: str, sums: _Sums, marked: bool | None) -> NodeMeans:
        none = sums.edges == 0
        values = sums.values / np.maximum(sums.edges, 1)[:, None]
        values[none] = self.usual
        names = [f"{prefix}.{name}" for name in self._columns.names]
        marked = bool(none.any()) if marked is None else marked
        if marked:
            values = np.column_stack([values, none])
            names.append(f"{prefix}.{NONE}")
        return NodeMeans(names, values.astype(np.float32), marked)
