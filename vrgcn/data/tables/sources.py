"""The opened tables of an import, with the role of each of their columns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from vrgcn.data.tables.columns import EdgeColumns, NodeColumns
from vrgcn.data.tables.encoders.encoder import Encoder
from vrgcn.data.tables.kept import KeptReader
from vrgcn.data.tables.reading import Table
from vrgcn.data.tables.recipe import ImportRecipe
from vrgcn.data.tables.schema import RelationFile
from vrgcn.data.tables.spec import ImportSpec

if TYPE_CHECKING:
    from vrgcn.data.tables.dated.times import Times


@dataclass(frozen=True)
class KindSource:
    """The nodes of one kind.

    spec: the settings of its table alone
    table, columns: None if the nodes are those that the edges name
    encoders: encoders of the feature columns
    marked: a feature marks the nodes that the table lacks
    recipe: how the same kind was imported before; None without --like
    keep: readers of the columns that are kept for each node
    learned: the rows of the table that encoders may learn from
    split: of the nodes, where no column of the table says it
    """

    name: str
    spec: ImportSpec
    table: Table | None = None
    columns: NodeColumns | None = None
    encoders: Sequence[Encoder] = ()
    marked: bool = False
    recipe: ImportRecipe | None = None
    keep: Sequence[KeptReader] = ()
    learned: Table | None = None
    split: NDArray[np.int64] | None = None

    @property
    def owner(self) -> str:
        """The file that has the ids, for errors."""
        return str(self.spec.nodes or self.spec.features_file)


@dataclass(frozen=True)
class RelationSource:
    """A table of edges.

    file: the kinds at its ends, and the name of its relation
    encoders: encoders of the columns that become features of the nodes at the ends
    own: the table is that of a kind, and a column of it names nodes of another: an empty cell is no
        edge
    keep: readers of the columns that are kept for each edge
    """

    file: RelationFile
    spec: ImportSpec
    table: Table
    columns: EdgeColumns
    encoders: Sequence[Encoder] = ()
    recipe: ImportRecipe | None = None
    own: bool = False
    keep: Sequence[KeptReader] = ()


@dataclass(frozen=True)
class OpenedTables:
    """The opened tables.

    labelled: the kind that has the labels; None if there are none
    like: whether the features are those of an earlier import
    notes: warnings about what is made of the tables, and what not
    times: when rows became known; None if no table is dated
    """

    spec: ImportSpec
    kinds: Sequence[KindSource]
    relations: Sequence[RelationSource]
    labelled: str | None
    like: bool
    notes: Sequence[str] = ()
    times: Times | None = None

    @property
    def named(self) -> bool:
        return self.spec.schema.named

    def tables(self) -> Iterator[Table]:
        """All tables, those of nodes first; each once."""
        every = [kind.table for kind in self.kinds] + [each.table for each in self.relations]
        found = {table.name: table for table in every if table is not None}
        return iter(found.values())
