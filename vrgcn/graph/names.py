"""The user's own names: of nodes, of classes and of feature columns.

The engine counts nodes and classes from 0. Names are kept beside a graph so that predictions can
come back under the ids and labels that went in.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import torch
from numpy.typing import NDArray

from vrgcn.files.kinds import is_text
from vrgcn.files.mistakes import InputError
from vrgcn.graph.kinds import BETWEEN, Kinds


@dataclass(frozen=True)
class Names:
    """nodes: (nodes,) Arrow array of text or int64, all different; None: the nodes' numbers
    classes: a name for each class; None: their numbers
    features: a name for each feature column; None: their numbers
    kinds: in a graph of several kinds of nodes, which has no `nodes`
    by_kind: ids of the nodes of each kind; a kind that is not there has numbers from 0
    """

    nodes: pa.Array | None = None
    classes: list[str] | None = None
    features: list[str] | None = None
    kinds: Kinds = field(default_factory=Kinds.one)
    by_kind: Mapping[str, pa.Array] = field(default_factory=dict)

    def check(self, nodes: int, classes: int, features: int) -> None:
        """Refuse names that are too many or too few, and two classes or features of one name.

        That ids of nodes differ is for those who make them to see to: there may be very many.
        """
        for kind, names, count in (
            ("nodes", self.nodes, nodes),
            ("classes", self.classes, classes),
            ("features", self.features, features),
        ):
            if names is None:
                continue
            if len(names) != count:
                raise InputError(f"names has {len(names)} {kind}, and the graph {count}")
            if isinstance(names, list) and not all(map(is_text, names)):
                odd = next(name for name in names if not is_text(name))
                raise InputError(f"names of {kind} must be texts, not {odd!r}")
            if isinstance(names, list) and len(set(names)) < count:
                [(twice, _)] = Counter(names).most_common(1)
                raise InputError(f"names calls several {kind} {twice!r}; all must differ")
        for name, ids in self.by_kind.items():
            if len(ids) != self.kinds.sizes.get(name):
                raise InputError(f"names has {len(ids)} ids of kind {name!r}, and the graph others")

    def node_ids(self, places: NDArray[np.int64]) -> pa.Array:
        """The user's ids of the nodes at some places; where they are of several kinds, texts that
        begin with the kind: "user 5"."""
        if self.kinds.named:
            return self._ids_by_kind(self.kinds, places)
        if self.nodes is None:
            return pa.array(places)
        return self.nodes.take(pa.array(places))

    def _ids_by_kind(self, kinds: Kinds, places: NDArray[np.int64]) -> pa.Array:
        nodes = torch.from_numpy(np.asarray(places, dtype=np.int64))
        number = kinds.of(nodes)
        if len(number) and bool((number == number[0]).all()):
            kind = kinds.names[int(number[0])]
            return self.ids_of(kind).take(pa.array(kinds.within(kind, nodes).numpy()))
        texts = np.empty(len(nodes), dtype=object)
        for place, kind in enumerate(kinds.names):
            own = (number == place).nonzero()[:, 0]
            ids = self.ids_of(kind).take(pa.array(kinds.within(kind, nodes[own]).numpy()))
            texts[own.numpy()] = [f"{kind} {node}" for node in ids.to_pylist()]
        return pa.array(texts.tolist(), pa.string())

    def unique(self) -> pa.Array | None:
        """An id of each node that no other has: `nodes`, or where nodes are of several kinds texts
        of the kind and the id; None if nodes have numbers alone."""
        if not self.kinds.named:
            return self.nodes
        parts = [
            pc.binary_join_element_wise(kind, self.ids_of(kind).cast(pa.string()), BETWEEN)
            for kind in self.kinds.names
        ]
        return pa.concat_arrays(parts)

    def ids_of(self, kind: str) -> pa.Array:
        """The user's ids of all nodes of a kind."""
        self.kinds.check(kind)
        own = self.by_kind.get(kind)
        return pa.array(np.arange(self.kinds.sizes[kind])) if own is None else own

    def places(
        self, ids: list[Any], where: str, num_nodes: int, kind: str | None = None
    ) -> NDArray[np.int64]:
        """Places of the nodes with the user's ids; `where` names the source of the ids in errors.

        ids: as text or as numbers, whatever the graph's ids are
        kind: of the nodes, where there are several; None: the kind that has labels
        """
        values = pa.array([str(i) for i in ids], type=pa.string())
        first = 0
        if self.kinds.named:
            kind = kind or self.kinds.target
            if kind is None:
                raise InputError(
                    f"{where}: nodes are of several kinds ({', '.join(self.kinds.names)}): say "
                    "which kind the ids are of"
                )
            own, first = self.ids_of(kind).cast(pa.string()), self.kinds.range(kind).start
        elif kind:
            raise InputError(f"{where}: the graph has no kinds of nodes, and {kind!r} is asked for")
        elif self.nodes is None:
            own = pa.array(np.arange(num_nodes)).cast(pa.string())
        else:
            own = self.nodes.cast(pa.string())
        places = pc.index_in(values, value_set=own)
        missing = places.is_null().to_numpy(zero_copy_only=False)
        if missing.any():
            lacking = values[int(missing.nonzero()[0][0])].as_py()
            of = f" of kind {kind!r}" if self.kinds.named else ""
            raise InputError(
                f"{where}: {int(missing.sum())} nodes are not in the graph{of}, first: {lacking!r}"
            )
        return places.to_numpy().astype(np.int64) + first


_PARTS = re.compile(r"(=|~|\[|\.(seconds|year\.\w+|week\.\w+|day\.\w+|missing)$).*")


def user_column(title: str) -> str:
    """The column of the user's table that a feature was made of."""
    return _PARTS.sub("", title) or title
