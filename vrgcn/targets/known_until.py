"""Facts that stop at a date: how well do predictions do that are made long before their time?

By default a row sees every fact until its own time. With `known_until` the rows after that date see
facts until then only, as if nothing more came in. Two things follow:

- validation rows that are earlier see facts until validation begins: what is chosen by them is
  chosen for such predictions
- training rows are repeated, each time with facts that stop as long before them as those of the
  rows after the date do: models learn from what is that old
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import torch
from numpy.typing import NDArray

from vrgcn.files.mistakes import InputError
from vrgcn.files.setting_names import Placeholder, setting
from vrgcn.graph.dated import Float64s, Lookback, TimedRows
from vrgcn.graph.graph import Graph
from vrgcn.graph.new_rows import with_rows
from vrgcn.graph.sparse import select_columns, select_rows
from vrgcn.graph.until import Until
from vrgcn.graph.validation import SPLITS

_COPIES = 4  # of each training row
Places = NDArray[np.int64]


def frozen(graph: Graph, known_until: str) -> Graph:
    """The graph whose rows after a date see facts until then only, and validation rows before it
    facts until validation begins."""
    rows = _Rows(graph, known_until)
    return rows.seeing(np.arange(len(rows.times)), rows.sight)


def repeated(graph: Graph, known_until: str) -> Graph:
    """The frozen graph for training: training rows follow again, with facts that stop earlier.

    graph: as it was before it was frozen
    """
    rows = _Rows(graph, known_until)
    gaps = np.quantile((rows.times - rows.end)[rows.after], (np.arange(_COPIES) + 0.5) / _COPIES)
    train = rows.within(graph.train.numpy())
    every = np.arange(len(rows.times))
    places = np.concatenate([every, *[train] * (_COPIES - 1)])
    sight = rows.sight.copy()
    # A training row after the date sees no more than the date allows.
    cut = [np.minimum(sight[train], rows.times[train] - gap) for gap in gaps]
    sight[train] = cut[0]
    return rows.seeing(places, np.concatenate([sight, *cut[1:]]))


class _Rows:
    """The rows of a graph, and until when each sees facts."""

    def __init__(self, graph: Graph, known_until: str) -> None:
        dated = graph.dated
        if dated is None:
            raise InputError(
                f"{setting('known_until', known_until)}: is for rows with a time of their own; "
                f"import them with {setting('rows', Placeholder('KIND=FILE'), command='import')}"
            )
        self.graph, self.until = graph, known_until
        self.span = graph.kinds.range(dated.rows)
        moments = dated.moments(graph).numpy()
        self.times: Float64s = moments[self.span.start : self.span.stop]
        self.end = Until(known_until, "known_until").end
        self.after = self.times >= self.end
        if not self.after.any():
            last = np.datetime64(int(self.times.max()), "s").astype("datetime64[D]")
            raise InputError(
                f"{setting('known_until', known_until)}: no row is later; the last one is of {last}"
            )
        # The facts of the date itself are known.
        self.sight = np.where(self.after, np.nextafter(self.end, -np.inf), self.times)
        val = self.within(graph.val.numpy())
        if len(val):
            self.sight[val] = np.minimum(self.sight[val], self.times[val].min())

    def within(self, nodes: Places) -> Places:
        return nodes - self.span.start

    def seeing(self, places: Places, sight: Float64s) -> Graph:
        """The graph with these rows, each of which sees facts until a moment.

        places: of the graph's own rows, each once and then some again
        """
        graph, count = self.graph, len(self.times)
        dated = graph.dated
        assert dated is not None
        split = self._split()
        past = None if dated.past is None else graph.kinds.range(dated.past)
        lookback = Lookback.on(graph)
        if past is not None and len(past) == count:  # as the import has them
            lookback.levels = np.zeros(graph.num_nodes, np.int8)
            lookback.levels[past.start : past.stop] = np.where(split < 0, 1, split)
        entities = {}
        for name in dict.fromkeys(path.entity for path in dated.paths):
            A = graph.relations[name].adjacency
            own = np.full(count, -1)
            own[self.within(A.row_of_entry.numpy())] = A.indices.numpy()
            entities[name] = own[places]
        levels = np.where(split < 0, 2, split).astype(np.int8)[places]
        asked = TimedRows(self.times[places], entities, levels, sight)
        found = with_rows(graph, asked, self._own_features()[places], lookback)
        named = self._named(found, places)
        return self._labelled(named, places).replace(dated=replace(dated, known_until=self.until))

    def _own_features(self) -> NDArray[np.float32]:
        """The features of the rows' own columns, which come before those of facts."""
        graph, dated = self.graph, self.graph.dated
        assert dated is not None
        columns = graph.kinds.columns(dated.rows)
        own = len(columns) - 2 * len(dated.paths)
        rows = torch.arange(self.span.start, self.span.stop)
        chosen = torch.arange(columns.start, columns.start + own)
        x = select_columns(select_rows(graph.features, rows), chosen)
        return x.to_dense().float().numpy()

    def _split(self) -> NDArray[np.int8]:
        """(rows,) 0, 1, 2 of training, validation and test; -1 of none."""
        split = np.full(len(self.times), -1, np.int8)
        for number, name in enumerate(SPLITS):
            split[self.within(self.graph.split(name).numpy())] = number
        return split

    def _named(self, found: Graph, places: Places) -> Graph:
        """The graph with the ids of its rows; rows that are there again have new ones."""
        dated, count = self.graph.dated, len(self.times)
        assert dated is not None
        ids = self.graph.names.by_kind.get(dated.rows)
        if ids is None:
            return found
        ids = ids.combine_chunks() if isinstance(ids, pa.ChunkedArray) else ids
        more = np.arange(len(places) - count)
        if pa.types.is_integer(ids.type):
            new = pa.array(more + 1 + (pc.max(ids).as_py() or 0))
        else:
            new = pa.array([f"again {number}" for number in more.tolist()], ids.type)
        by_kind = {**found.names.by_kind, dated.rows: pa.concat_arrays([ids, new.cast(ids.type)])}
        return found.replace(names=replace(found.names, by_kind=by_kind))

    def _labelled(self, found: Graph, places: Places) -> Graph:
        """The graph with the labels and the splits of the rows that it has again."""
        graph, start, count = self.graph, self.span.start, len(self.times)
        again = torch.from_numpy(places[count:]) + start
        later = torch.arange(start + count, start + len(places))
        moved = {"val": graph.val, "test": graph.test}
        moved["train"] = torch.cat([graph.train, later[torch.isin(again, graph.train)]])
        if graph.labels is None:
            return found
        labels = graph.labels
        labels = torch.cat([labels[: start + count], labels[again], labels[start + count :]])
        return found.replace(
            labels=labels,
            num_classes=graph.num_classes,
            task=graph.task,
            **moved,
        )
