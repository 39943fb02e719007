"""Features of a DataFrame with categories, dates, texts and gaps, as `vrgcn import` makes them."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from vrgcn.data.any_frame import AnyFrame
from vrgcn.data.frames import column_array, graph_from_pandas
from vrgcn.data.tables.recipe_file import ARRAYS, FILE
from vrgcn.files.mistakes import InputError
from vrgcn.graph.graph import Graph

_ROW = "(row of X)"
_ROLES = ("label", "split")  # the import takes columns with these names for something else
_NO_EDGES = AnyFrame(["source", "target"], [np.zeros(1, np.int64)] * 2, range(1))


def needs_encoding(frame: AnyFrame) -> bool:
    """Return True if some column is not of numbers, or has gaps."""
    return not all(map(_is_plain, frame.values))


class FrameFeatures:
    """The encoders of the columns that `fit` saw; they can be pickled."""

    def __init__(self) -> None:
        self._recipe: dict[str, bytes] = {}  # the files of the import's recipe, by name

    def learn(self, frame: AnyFrame) -> Graph:
        """Return a graph without edges whose features are the encoded columns; keep the
        encoders."""
        with tempfile.TemporaryDirectory() as folder:
            place = Path(folder) / "graph"
            graph = _encoded(frame, out=place)
            self._recipe = {
                name: (place / name).read_bytes()
                for name in (FILE, ARRAYS)
                if (place / name).is_file()
            }
            return graph

    def apply(self, frame: AnyFrame) -> Graph:
        """Return the same for other rows, encoded as the first ones were."""
        with tempfile.TemporaryDirectory() as folder:
            for name, held in self._recipe.items():
                (Path(folder) / name).write_bytes(held)
            return _encoded(frame, like=folder)


def _encoded(frame: AnyFrame, **options: Any) -> Graph:
    for name in _ROLES:
        if name in frame.names:
            raise InputError(
                f"X has a column {name!r}: if it is what to predict, give it as y and leave it out "
                "of X; if not, rename it"
            )
    rows = AnyFrame([_ROW, *frame.names], [np.arange(len(frame)), *frame.values], frame.rows)
    return graph_from_pandas(rows, _NO_EDGES, verbose=False, id=_ROW, **{"out": None} | options)


def _is_plain(values: Any) -> bool:
    """Return True for a column of numbers without gaps."""
    array = column_array(values)
    kind = array.type
    numeric = pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind)
    return bool(numeric) and not pc.any(array.is_null(nan_is_null=True)).as_py()
