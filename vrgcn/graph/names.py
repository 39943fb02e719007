"""The user's own names: of nodes, of classes and of feature columns.

The engine counts nodes and classes from 0. Names are kept beside a graph so that predictions can
come back under the ids and labels that went in.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray


@dataclass(frozen=True)
class Names:
    """nodes: (nodes,) Arrow array of text or int64, all different; None: the nodes' numbers
    classes: a name for each class; None: their numbers
    features: a name for each feature column; None: their numbers
    """

    nodes: pa.Array | None = None
    classes: list[str] | None = None
    features: list[str] | None = None

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
                raise ValueError(f"names has {len(names)} {kind}, and the graph {count}")
            if isinstance(names, list) and len(set(names)) < count:
                [(twice, _)] = Counter(names).most_common(1)
                raise ValueError(f"names calls several {kind} {twice!r}; all must differ")

    def node_ids(self, places: NDArray[np.int64]) -> pa.Array:
        """The user's ids of the nodes at some places."""
        if self.nodes is None:
            return pa.array(places)
        return self.nodes.take(pa.array(places))

    def places(self, ids: list[Any], where: str, num_nodes: int) -> NDArray[np.int64]:
        """Places of the nodes with the user's ids; `where` names the source of the ids in errors.

        ids: as text or as numbers, whatever the graph's ids are
        """
        values = pa.array([str(i) for i in ids], type=pa.string())
        if self.nodes is None:
            own = pa.array(np.arange(num_nodes)).cast(pa.string())
        else:
            own = self.nodes.cast(pa.string())
        places = pc.index_in(values, value_set=own)
        missing = places.is_null().to_numpy(zero_copy_only=False)
        if missing.any():
            first = values[int(missing.nonzero()[0][0])].as_py()
            raise ValueError(
                f"{where}: {int(missing.sum())} nodes are not in the graph, first: {first!r}"
            )
        return places.to_numpy().astype(np.int64)
