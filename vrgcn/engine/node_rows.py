"""The nodes behind the rows that a model has at hand, and averages over tables of all nodes.

A table has a row for every node of the graph: learned rows, or labels that are known. Its averages
over neighbours need no history: the table itself is exact.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from vrgcn.engine.plan import Relation
from vrgcn.engine.second_hop import second_hop
from vrgcn.files.mistakes import InputError
from vrgcn.graph.propagation import Propagation
from vrgcn.graph.relations import Schema
from vrgcn.graph.sparse import CSR, offsets, stacked


class NodeRows(Protocol):
    """The nodes of each level of a pass, and what their neighbours have."""

    def ids(self, level: int) -> Tensor:
        """(nodes of the level,) on the model's device."""

    def degrees(self, level: int, over: Relation) -> Tensor:
        """(nodes of the level,): how many other nodes each one averages."""

    def sums(self, level: int, over: Relation) -> Tensor:
        """(nodes of the level,): sums of the rows of P, its diagonal included."""

    def average(self, level: int, table: Tensor, over: Relation, *, own: bool = False) -> Tensor:
        """P times a table (all nodes, width): (nodes of the level, width).

        own: with its diagonal, by which a node's own row counts
        """

    def second(self, level: int, table: Tensor, over: Relation) -> Tensor:
        """P without its diagonal, twice, times a table, without the part of a node's own row that
        returns to it: (nodes of the level, width)."""

    def reached(self, level: int, over: Relation) -> Tensor | None:
        """(rows,) which nodes of the level have neighbours over a relation, ascending; None where
        the relation is one that all nodes have."""

    def averages(self, level: int, table: Tensor, relations: Sequence[str]) -> list[Tensor]:
        """Averages over each relation, only for the nodes that it reaches; edges of a node to
        itself count.

        table: (nodes of one kind, width), the kind that the relations come from
        """

    @property
    def schema(self) -> Schema:
        """The kinds and relations of the graph."""


class LonelyRows:
    """Rows of nodes without neighbours, for looking at a model.

    sizes: of the levels
    asked: the relations that tables and degrees are asked for
    twice: those of them that tables are averaged over twice
    """

    def __init__(
        self,
        sizes: Sequence[int],
        device: torch.device,
        schema: Schema | None = None,
        asked: set[Relation] | None = None,
        twice: set[Relation] | None = None,
    ) -> None:
        self._sizes = sizes
        self._device = device
        self.schema = schema or Schema()
        self.asked = set() if asked is None else asked
        self.twice = set() if twice is None else twice

    def ids(self, level: int) -> Tensor:
        return torch.zeros(self._sizes[level], dtype=torch.int64, device=self._device)

    def degrees(self, level: int, over: Relation) -> Tensor:
        self.asked.add(over)
        return self.ids(level)

    def sums(self, level: int, over: Relation) -> Tensor:
        self.asked.add(over)
        return torch.ones(self._sizes[level], device=self._device)

    def average(self, level: int, table: Tensor, over: Relation, *, own: bool = False) -> Tensor:
        self.asked.add(over)
        return table.new_zeros((self._sizes[level], table.shape[1]))

    def second(self, level: int, table: Tensor, over: Relation) -> Tensor:
        self.twice.add(over)
        return self.average(level, table, over)

    def reached(self, level: int, over: Relation) -> Tensor | None:
        if over not in self.schema.ends:
            return None
        return torch.arange(self._sizes[level], device=self._device)

    def averages(self, level: int, table: Tensor, relations: Sequence[str]) -> list[Tensor]:
        return [self.average(level, table, over) for over in relations]


class GraphRows:
    """Rows of P for the nodes of each level of a pass.

    levels: (nodes of the level,) ids, from the input up
    P: the matrices by relation
    device: of the model
    schema: kinds and relations of the graph
    known: rows of the next level that a plan's hops have, by level and relation
    """

    def __init__(
        self,
        levels: Sequence[Tensor],
        P: Mapping[Relation, Propagation],
        device: torch.device,
        schema: Schema | None = None,
        known: Mapping[tuple[int, Relation], Tensor | None] | None = None,
    ) -> None:
        self._levels = levels
        self._P = P
        self._device = device
        self._rows: dict[tuple[int, Relation], CSR] = {}
        self._reached = dict(known or {})
        self.schema = schema or Schema()

    def ids(self, level: int) -> Tensor:
        return self._levels[level].to(self._device)

    def degrees(self, level: int, over: Relation) -> Tensor:
        return self._rows_of(level, over).indptr.diff()

    def sums(self, level: int, over: Relation) -> Tensor:
        rows, own = self._rows_of(level, over), self._P[over].own_rows(self._levels[level])
        weights = rows.weights(self._P[over].dtype)
        sums = weights.new_zeros(rows.num_rows).index_add_(0, rows.row_of_entry, weights)
        return sums + (own.to(sums.device) if isinstance(own, Tensor) else own)

    def average(self, level: int, table: Tensor, over: Relation, *, own: bool = False) -> Tensor:
        if own and self._P[over].has_own:
            rows = self._P[over].whole_rows(self._levels[level]).to(self._device)
        else:
            rows = self._rows_of(level, over)
        _check_table(table, rows.columns)
        if not (table.requires_grad and torch.is_grad_enabled()):
            return rows @ table
        if not table.is_leaf:  # its sources may take no sparse gradient
            return rows @ table
        averaged: Tensor = _TableProduct.apply(table, rows)
        return averaged

    def second(self, level: int, table: Tensor, over: Relation) -> Tensor:
        _check_table(table, self._P[over].num_nodes)
        averaged = second_hop(self._P[over], self._levels[level], table.detach())
        return averaged.to(self._device, table.dtype)

    def reached(self, level: int, over: Relation) -> Tensor | None:
        if (level, over) not in self._reached:
            found = self._P[over].reached(self._levels[level])
            self._reached[level, over] = None if found is None else found.to(self._device)
        return self._reached[level, over]

    def averages(self, level: int, table: Tensor, relations: Sequence[str]) -> list[Tensor]:
        parts = []
        for over in relations:
            places, nodes = self.reached(level, over), self._levels[level]
            assert places is not None
            rows = self._P[over].whole_rows(nodes[places.to(nodes.device)])
            first = self._first(over, table)
            parts.append(rows.with_columns(rows.indices - first, table.shape[0]))
        if not parts:
            return []
        # One product for all: its gradient is one sparse tensor, however many relations there are.
        matrix = stacked(parts).to(self._device)
        if table.requires_grad and table.is_leaf and torch.is_grad_enabled():
            averaged: Tensor = _TableProduct.apply(table, matrix)
        else:
            averaged = matrix @ table
        return list(averaged.split([part.num_rows for part in parts]))

    def _first(self, over: str, table: Tensor) -> int:
        """The first node of the kind that a relation comes from, whose rows the table has."""
        source = self.schema.ends[over][0]
        own = self.schema.kinds.range(source)
        if table.shape[0] != len(own):
            raise InputError(
                f"propagate.tables over {over!r} takes a table with a row for each of the "
                f"{len(own):,} nodes of kind {source!r}, not {table.shape[0]:,}"
            )
        return own.start

    def _rows_of(self, level: int, over: Relation) -> CSR:
        # The nodes of a level start with those of the next: rows are drawn once for a level.
        if (level, over) not in self._rows:
            nodes = self._levels[level]
            same = (k for k in range(len(self._levels)) if self._levels[k] is nodes)
            known = next((self._rows[k, over] for k in same if (k, over) in self._rows), None)
            rows = self._P[over].rows(nodes).to(self._device) if known is None else known
            self._rows[level, over] = rows
        return self._rows[level, over]


def _check_table(table: Tensor, nodes: int) -> None:
    if table.shape[0] != nodes:
        raise InputError(
            f"propagate.table takes a table with a row for each of the graph's {nodes:,} nodes, "
            f"not {table.shape[0]:,}"
        )


class _TableProduct(torch.autograd.Function):
    """The product of a few rows of P with a table, whose gradient is sparse: it has the rows of
    those nodes alone that the product reads."""

    @staticmethod
    def forward(ctx, table: Tensor, matrix: CSR) -> Tensor:  # type: ignore[no-untyped-def]
        ctx.matrix, ctx.shape = matrix, table.shape
        return matrix @ table.detach()

    @staticmethod
    @once_differentiable
    def backward(ctx, grad: Tensor) -> tuple[Tensor, None]:  # type: ignore[no-untyped-def]
        matrix: CSR = ctx.matrix
        columns, order = torch.sort(matrix.indices, stable=True)
        nodes, counts = torch.unique_consecutive(columns, return_counts=True)
        plain = matrix.values is None and matrix.scale is None
        weights = None if plain else matrix.weights(grad.dtype)[order]
        back = CSR(offsets(counts), matrix.row_of_entry[order], weights, matrix.num_rows)
        rows = back @ grad.contiguous()
        sparse = torch.sparse_coo_tensor(
            nodes[None], rows, ctx.shape, is_coalesced=True, check_invariants=False
        )
        return sparse, None
