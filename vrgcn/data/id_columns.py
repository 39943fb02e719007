"""Columns of ids in a table about nodes: `id`, and before it `kind` where nodes are of several."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
import pyarrow as pa
from torch import Tensor

from vrgcn.graph.names import Names


class NamingColumns(Protocol):
    """Columns that say of which node, or row, each row of a table is."""

    @property
    def fields(self) -> list[tuple[str, pa.DataType]]:
        """Names and types of the columns."""

    def arrays(self, nodes: Tensor) -> list[pa.Array]:
        """The columns of some nodes, (nodes,) each."""


@dataclass(frozen=True)
class IdColumns:
    """names: the user's ids of all nodes
    kind: of all nodes of the table; None if they are of several kinds, or there are no kinds
    """

    names: Names
    kind: str | None = None

    @staticmethod
    def about(names: Names, nodes: Tensor) -> IdColumns:
        """Return the columns for some nodes: without their kind if all are of one."""
        if not names.kinds.named or not len(nodes):
            return IdColumns(names, names.kinds.target)
        number = names.kinds.of(nodes)
        one = bool((number == number[0]).all())
        return IdColumns(names, names.kinds.names[int(number[0])] if one else None)

    @property
    def fields(self) -> list[tuple[str, pa.DataType]]:
        """Names and types of the columns."""
        if not self.names.kinds.named:
            return [("id", self.names.node_ids(np.empty(0, dtype=np.int64)).type)]
        if self.kind is not None:
            return [("id", self.names.ids_of(self.kind).type)]
        return [("kind", pa.string()), ("id", pa.string())]

    def arrays(self, nodes: Tensor) -> list[pa.Array]:
        """The columns of some nodes, (nodes,) each."""
        kinds = self.names.kinds
        if not kinds.named:
            return [self.names.node_ids(nodes.numpy())]
        if self.kind is not None:
            own = kinds.within(self.kind, nodes)
            return [self.names.ids_of(self.kind).take(pa.array(own.numpy()))]
        number = kinds.of(nodes).numpy()
        ids = np.empty(len(nodes), dtype=object)
        for place in np.unique(number):
            kind, mine = kinds.names[place], np.flatnonzero(number == place)
            places = kinds.within(kind, nodes).numpy()[mine]
            ids[mine] = self.names.ids_of(kind).take(pa.array(places)).cast(pa.string()).to_pylist()
        names = pa.array(kinds.names, pa.string()).take(pa.array(number))
        return [names, pa.array(ids.tolist(), pa.string())]
