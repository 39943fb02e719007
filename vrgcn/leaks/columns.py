"""Feature columns as the user named them, and the values of each for some nodes.

A column of the user's table may have become several features: a category has one for each value,
a date one for the seconds and more for its places in the year. Values of a feature are put into
bins, so that a number, a code and a mark are all asked the same question: which bin goes with
which label?
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from vrgcn.graph.block import all_rows
from vrgcn.graph.blocks import Blocks
from vrgcn.graph.graph import Graph
from vrgcn.graph.names import user_column
from vrgcn.graph.sparse import select_columns, select_rows

BINS = 64


@dataclass(frozen=True, eq=False)
class DenseFeature:
    """title: the user's column, with the feature's own part where it has several
    column: the user's column
    values: (nodes,)
    """

    title: str
    column: str
    values: NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class SparseColumns:
    """Many features of which a node has few; all that counts is whether a value is 0.

    titles, columns: of each, as in `DenseFeature`
    present: (nodes, features) scipy CSR of ones
    """

    titles: list[str]
    columns: list[str]
    present: Any


def columns_of(graph: Graph, kind: str | None) -> range:
    """The feature columns of a kind; of all nodes where there are no kinds."""
    if kind is None:
        return range(graph.num_features)
    return graph.kinds.columns(kind)


def titles_of(graph: Graph, columns: range) -> list[str]:
    """The names of features; their numbers where they have none."""
    if graph.names.features is None:
        return [f"feature {place}" for place in columns]
    return [graph.names.features[place] for place in columns]


def sample(nodes: Tensor, most: int) -> Tensor:
    """At most so many of some nodes, the same in every audit, ascending."""
    if len(nodes) <= most:
        return nodes
    order = torch.randperm(len(nodes), generator=torch.Generator().manual_seed(0))
    return nodes[order[:most]].sort().values


def rows_within(cells: int, width: int, least: int = 400) -> int:
    """How many nodes can be read if a table may have so many cells."""
    return max(cells // max(width, 1), least)


def dense_width(graph: Graph, kind: str | None) -> int:
    """How many feature columns of a kind lie in dense blocks."""
    span = columns_of(graph, kind)
    return sum(
        len(range(max(block.columns.start, span.start), min(block.columns.stop, span.stop)))
        for block in Blocks.of(graph.features).blocks
        if not block.sparse
    )


def dense_features(graph: Graph, kind: str | None, nodes: Tensor) -> Iterator[DenseFeature]:
    """The features in dense blocks of some nodes, and categories with their values as one code."""
    for span, values in _blocks(graph, kind, nodes, sparse=False):
        titles = titles_of(graph, span)
        table = values.to_dense().double().numpy()
        yield from _coded(titles, table)
        for index, title in enumerate(titles):
            yield DenseFeature(title, user_column(title), table[:, index])


def _coded(titles: list[str], table: NDArray[np.float64]) -> Iterator[DenseFeature]:
    """Categories as one code: neighbouring features COLUMN=VALUE of which a node has one at
    most."""
    groups: dict[str, list[int]] = {}
    for index, title in enumerate(titles):
        if "=" in title:
            groups.setdefault(user_column(title), []).append(index)
    for column, places in groups.items():
        own = table[:, places] != table[:, places].min(0)
        if 1 < len(places) <= BINS and own.sum(1).max(initial=0) <= 1:
            yield DenseFeature(column, column, np.where(own.any(1), own.argmax(1) + 1.0, 0.0))


def sparse_features(graph: Graph, kind: str | None, nodes: Tensor) -> Iterator[SparseColumns]:
    """The features in sparse blocks of some nodes."""
    for span, values in _blocks(graph, kind, nodes, sparse=True):
        from scipy.sparse import csr_matrix  # here: most graphs have no such block

        titles = titles_of(graph, span)
        indptr, indices = values.crow_indices().numpy(), values.col_indices().numpy()
        ones = np.ones(len(indices))
        present = csr_matrix((ones, indices, indptr), shape=tuple(values.shape))
        present.data[values.values().numpy() == 0] = 0
        yield SparseColumns(titles, [user_column(title) for title in titles], present)


def _blocks(
    graph: Graph, kind: str | None, nodes: Tensor, *, sparse: bool
) -> Iterator[tuple[range, Tensor]]:
    """The columns and the rows (nodes, width) of each block that a kind has, dense or sparse."""
    span = columns_of(graph, kind)
    for block in Blocks.of(graph.features).blocks:
        start, stop = max(block.columns.start, span.start), min(block.columns.stop, span.stop)
        if block.sparse != sparse or start >= stop:
            continue
        rows = select_rows(Blocks((graph.num_nodes, block.columns.stop), [block]), nodes)
        assert isinstance(rows, Blocks)
        values = all_rows(rows.blocks[0], len(nodes)).values
        places = torch.arange(start - block.column, stop - block.column)
        yield range(start, stop), select_columns(values, places)


def bins(values: NDArray[np.float64], fitted: NDArray[np.bool_]) -> NDArray[np.int64]:
    """(nodes,) the bin of each value, fewer than BINS + 1: one for each different value, or
    quantiles where there are many.

    fitted: (nodes,) bool, the nodes that the bins are made of
    """
    known = np.unique(values[fitted])
    if len(known) > BINS:
        known = np.unique(np.quantile(values[fitted], np.arange(1, BINS) / BINS))
    else:
        known = (known[1:] + known[:-1]) / 2
    codes: NDArray[np.int64] = np.searchsorted(known, values, side="right")
    return codes
