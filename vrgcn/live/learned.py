"""Rows that a model has learned, or knows, of single nodes: in the order of slots, and found again
by the ids of nodes that come back."""

from __future__ import annotations

import copy

import pyarrow as pa
import pyarrow.compute as pc
import torch
from torch import Tensor, nn

from vrgcn.graph.graph import Graph
from vrgcn.graph.kinds import BETWEEN
from vrgcn.inference.node_tables import on_nodes
from vrgcn.live.ids import IdIndex
from vrgcn.live.slots import ONLY, Slots, Undo
from vrgcn.models.node_table import node_tables


class LearnedRows:
    """The tables of a model with a row for each slot. A node that the model has not seen has a row
    of zeros; one that it has seen has its own, also when it comes back.

    model: itself where it has no such tables, else a copy with tables of slots
    """

    def __init__(
        self, model: nn.Module, nodes: pa.Array | None, graph: Graph, slots: Slots
    ) -> None:
        self._slots = slots
        self._given = node_tables(model)
        self.model = model
        if not self._given:
            return
        moved = on_nodes(model, nodes, graph)
        self.model = copy.deepcopy(moved) if moved is model else moved
        for table in node_tables(self.model).values():
            rows = table.rows.detach()
            count = slots.total if table.kind is None else slots.room[table.kind]
            places = slots.of_graph() if table.kind is None else torch.arange(len(rows))
            table.set(rows.new_zeros((count, rows.shape[1])).index_copy(0, places, rows))
        self._index: dict[str, IdIndex] = {}
        for name, table in self._given.items():
            self._index[name] = _index(nodes, table.kind, len(table.rows))

    def set(self, kind: str, key: int | str, slot: int, undo: Undo) -> None:
        """Give a new node its rows."""
        if not self._given:
            return
        for name, table in node_tables(self.model).items():
            if table.kind is not None and table.kind != kind:
                continue
            first = 0 if table.kind is None else self._slots.first(kind)
            row = self._known(name, kind, key)
            if row is not None:
                undo.write(table.rows.detach(), torch.tensor([slot - first]), row[None])

    def _known(self, name: str, kind: str, key: int | str) -> Tensor | None:
        index, table = self._index[name], self._given[name]
        whole = f"{kind}{BETWEEN}{key}" if table.kind is None and kind != ONLY else key
        wanted = index.key(whole)
        place = None if wanted is None else index.find(wanted)
        return None if place is None else table.rows.detach()[place]


def _index(nodes: pa.Array | None, kind: str | None, count: int) -> IdIndex:
    """Places of ids in a table of the nodes of a kind."""
    if nodes is None or kind is None:
        return IdIndex(nodes, count)
    start = kind + BETWEEN
    own = nodes.filter(pc.starts_with(nodes, start))
    return IdIndex(pc.utf8_slice_codeunits(own, len(start)), count)
