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
from vrgcn.graph.propagation import Propagation
from vrgcn.graph.sparse import CSR, offsets


class NodeRows(Protocol):
    """The nodes of each level of a pass, and what their neighbours have."""

    def ids(self, level: int) -> Tensor:
        """(nodes of the level,) on the model's device."""

    def degrees(self, level: int, over: Relation) -> Tensor:
        """(nodes of the level,): how many other nodes each one averages."""

    def average(self, level: int, table: Tensor, over: Relation) -> Tensor:
        """P without its diagonal times a table (all nodes, width): (nodes of the level, width)."""


class LonelyRows:
    """Rows of nodes without neighbours, for looking at a model.

    sizes: of the levels
    """

    def __init__(self, sizes: Sequence[int], device: torch.device) -> None:
        self._sizes = sizes
        self._device = device

    def ids(self, level: int) -> Tensor:
        return torch.zeros(self._sizes[level], dtype=torch.int64, device=self._device)

    def degrees(self, level: int, over: Relation) -> Tensor:
        return self.ids(level)

    def average(self, level: int, table: Tensor, over: Relation) -> Tensor:
        return table.new_zeros((self._sizes[level], table.shape[1]))


class GraphRows:
    """Rows of P for the nodes of each level of a pass.

    levels: (nodes of the level,) ids, from the input up
    P: the matrices by relation
    device: of the model
    """

    def __init__(
        self,
        levels: Sequence[Tensor],
        P: Mapping[Relation, Propagation],
        device: torch.device,
    ) -> None:
        self._levels = levels
        self._P = P
        self._device = device
        self._rows: dict[tuple[int, Relation], CSR] = {}

    def ids(self, level: int) -> Tensor:
        return self._levels[level].to(self._device)

    def degrees(self, level: int, over: Relation) -> Tensor:
        return self._rows_of(level, over).indptr.diff()

    def average(self, level: int, table: Tensor, over: Relation) -> Tensor:
        rows = self._rows_of(level, over)
        if table.shape[0] != rows.columns:
            raise ValueError(
                f"propagate.table takes a table with a row for each of the graph's "
                f"{rows.columns:,} nodes, not {table.shape[0]:,}"
            )
        if not (table.requires_grad and torch.is_grad_enabled()):
            return rows @ table
        if not table.is_leaf:  # its sources may take no sparse gradient
            return rows @ table
        averaged: Tensor = _TableProduct.apply(table, rows)
        return averaged

    def _rows_of(self, level: int, over: Relation) -> CSR:
        # The nodes of a level start with those of the next: rows are drawn once for a level.
        if (level, over) not in self._rows:
            nodes = self._levels[level]
            same = (k for k in range(len(self._levels)) if self._levels[k] is nodes)
            known = next((self._rows[k, over] for k in same if (k, over) in self._rows), None)
            rows = self._P[over].rows(nodes).to(self._device) if known is None else known
            self._rows[level, over] = rows
        return self._rows[level, over]


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
