"""P X: the neighbour averages of the features, each row computed once."""

from __future__ import annotations

from functools import cached_property
from pathlib import Path

import torch
from torch import Tensor

from vrgcn.graph.blocks import Blocks
from vrgcn.graph.mapped import Derived, Tell, zeros
from vrgcn.graph.propagation import Propagation, chunks
from vrgcn.graph.sparse import (
    for_rows,
    full_precision,
    is_dense,
    is_sparse,
    num_entries,
    scale_rows,
    select_rows,
)

_COUNTED = 256  # nodes whose rows of P X are counted
FULL = 1 / 3  # share of non-zeros from which dense rows are less memory, and less work


class AveragedFeatures:
    """Rows of P X, (nodes, features), made when they are first needed.

    They have the layout of X, unless X is sparse and P X is not: then they are dense.

    file: keep them there instead of in memory
    derived: keep them beside the graph, all of them at once, under the name `rule` of P

    Features never change, so their averages are exact forever: training reads them at random,
    exact sweeps chunk by chunk. They lie with the features, which may be larger than the model's
    device holds.
    """

    def __init__(
        self,
        P: Propagation,
        features: Tensor,
        file: Path | None = None,
        *,
        derived: Derived | None = None,
        rule: object = None,
    ) -> None:
        self.P = P
        self.features = features
        self.file = file
        kept = isinstance(rule, str) and is_dense(features) and P.spans is None
        self.derived = derived if kept else None
        self.rule = rule
        self.values: Tensor | None = None
        self._known: Tensor | None = None

    @cached_property
    def dense(self) -> bool:
        """Whether there is a dense table, filled row by row, whatever the features are."""
        if self.P.spans or not is_sparse(self.features):
            return is_dense(self.features) and self.P.spans is None
        nodes, columns = self.features.shape
        some = torch.arange(0, nodes, max(1, nodes // _COUNTED))
        counted = num_entries(self.P.product(self.features, some))
        return counted > FULL * len(some) * columns

    @property
    def table(self) -> Tensor:
        """(nodes, features), what was filled in before."""
        assert self.values is not None
        return self.values

    def fill(self, nodes: Tensor | None = None) -> None:
        """Compute all rows, or those of some nodes; others stay zero until they are asked for."""
        if not self.dense:
            if self.values is None:
                self.values = self._part() if self.P.spans else self.P @ self.features
                self.values = for_rows(self.values)
            return
        if self.find():
            return
        for chunk in chunks(torch.arange(self.P.num_nodes) if nodes is None else nodes, self.P):
            self._keep(chunk)

    def find(self) -> bool:
        """Load all rows from beside the graph if they can be kept there, computing them if needed,
        for a caller that needs most of them. Return False if each row is to be computed when
        needed."""
        if self.derived is not None and self.values is None:
            shape, dtype = tuple(self.features.shape), self.features.dtype
            self.values = self.derived.table(f"averages {self.rule}", shape, dtype, self._fill)
            self._known = torch.ones(shape[0], dtype=torch.bool)
        return self.derived is not None

    def rows(self, nodes: Tensor, *, keep: bool) -> Tensor:
        """(len(nodes), features): known, or computed; then kept for the next time if asked to.

        Computed rows that are sparse are not kept.
        """
        if self.values is None and not (self.dense and keep):
            rows = self._product(nodes)
        else:
            if self.dense:
                self._keep(nodes)
            rows = select_rows(self.table, nodes)
        return rows.to(full_precision(rows.dtype))

    def know(self, nodes: Tensor) -> None:
        """Compute the rows of some nodes, where they are not known yet."""
        if self.dense:
            self._keep(nodes)

    def _part(self) -> Tensor:
        """P X of a relation that only some nodes have: a block of their rows."""
        nodes = torch.arange(self.P.num_nodes)
        reached = self.P.reached(nodes)
        assert reached is not None
        product = Blocks.of(self._product(reached)).spread_rows(reached, len(nodes))
        filled = [block for block in product.blocks if block.num_rows]
        return Blocks(product.shape, filled or product.blocks[:1])

    def _keep(self, nodes: Tensor) -> None:
        """Compute dense rows that are not known yet."""
        if self.values is None:
            shape = tuple(self.features.shape)
            self.values = zeros(shape, self.features.dtype, self.file)
            self._known = torch.zeros(shape[0], dtype=torch.bool)
        assert self._known is not None
        missing = nodes[~self._known[nodes]]
        if len(missing):
            self.values[missing] = self._product(missing)
            self._known[missing] = True

    def _fill(self, out: Tensor, tell: Tell) -> None:
        done = 0
        for chunk in chunks(torch.arange(self.P.num_nodes), self.P):
            out[chunk] = self._product(chunk)
            done += len(chunk)
            tell(done / self.P.num_nodes)

    def _product(self, nodes: Tensor) -> Tensor:
        """Rows in the precision of the features, whether they are then kept or not."""
        if self.dense and is_sparse(self.features):
            return self._dense_product(nodes)
        return self.P.product(self.features, nodes).to(self.features.dtype)

    def _dense_product(self, nodes: Tensor) -> Tensor:
        """Dense rows of sparse features: the product of sparse ones takes four times as long."""
        rows, own = self.P.rows(nodes), self.P.own_rows(nodes)
        near, places = torch.unique(rows.indices, return_inverse=True)
        neighbours = select_rows(self.features, near).to_dense()
        averaged = rows.with_columns(places, len(near)) @ neighbours
        if not isinstance(own, Tensor) and own == 0:
            return averaged
        return averaged + scale_rows(own, select_rows(self.features, nodes).to_dense())
