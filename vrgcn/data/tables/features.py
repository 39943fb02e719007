"""Features of nodes: from columns, from a `.npy` file, or from the edges alone.

All three end in the arrays of the graph's features (feature_files.py), a chunk of rows at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from vrgcn.data.tables.adjacency import Adjacency
from vrgcn.data.tables.encoders.encoder import Encoder
from vrgcn.data.tables.feature_files import FeatureFiles, FeatureRows, Features
from vrgcn.data.tables.problems import Problems
from vrgcn.data.tables.reading import Table
from vrgcn.files.mistakes import InputError
from vrgcn.files.npy import map_array
from vrgcn.files.setting_names import Placeholder, setting
from vrgcn.files.wording import counted

UNKNOWN_NODE = "(not in the nodes table)"  # the feature that marks nodes that only edges name
_CHUNK = 1 << 22


class FeatureColumns:
    """Encodes the columns of a table as features, side by side: dense ones first, then sparse ones.

    marked: the last dense feature is 1 for nodes that the table lacks and 0 for the others
    learned: the rows that encoders learn from; None for all of the table
    """

    def __init__(
        self,
        table: Table,
        encoders: Sequence[Encoder],
        problems: Problems,
        marked: bool,
        learned: Table | None = None,
    ) -> None:
        self._table = table
        self._learned = learned or table
        self._encoders = encoders
        self._problems = problems
        self._marked = marked

    @property
    def columns(self) -> list[str]:
        return [encoder.column for encoder in self._encoders]

    @property
    def _ordered(self) -> list[Encoder]:
        """The encoders in the order of their features."""
        return sorted(self._encoders, key=lambda encoder: encoder.sparse)

    @cached_property
    def names(self) -> list[str]:
        """Names of the features; known once the encoders are fitted."""
        own = [name for encoder in self._ordered for name in encoder.names]
        if not self._marked:
            return distinct(own)
        mark, *names = distinct([UNKNOWN_NODE, *own])
        return [*names[: self.dense - 1], mark, *names[self.dense - 1 :]]

    @cached_property
    def dense(self) -> int:
        """How many of the features, the first ones, are dense."""
        return self._marked + sum(len(e.names) for e in self._encoders if not e.sparse)

    def fit(self, on_rows: Callable[[str, int], None]) -> None:
        """Fit the encoders that must see their whole column before they can encode it."""
        unfitted = [encoder for encoder in self._encoders if not encoder.fitted]
        if not unfitted:
            return
        for start, batch in self._learned.batches([encoder.column for encoder in unfitted]):
            for encoder in unfitted:
                encoder.fit(batch.column(encoder.column))
            on_rows(self._table.name, start + len(batch))
        for encoder in unfitted:
            try:
                encoder.finish()
            except InputError as error:
                raise InputError(f"{self._table.name}: {error}") from None

    def files(self, folder: Path) -> FeatureFiles:
        """Return the files of the features, to append rows to."""
        return FeatureFiles(folder, self.dense, len(self.names) - self.dense)

    def block(self, start: int, batch: pa.RecordBatch) -> NDArray[np.float32]:
        """Return the features of a batch whose first row is `start`, all dense: (rows, width)."""
        block = np.zeros((len(batch), len(self.names)), np.float32)
        place = 0
        for encoder in self._ordered:
            end = place + len(encoder.names)
            tell = partial(self._tell, start, encoder.column)
            encoder.encode(batch.column(encoder.column), block[:, place:end], tell)
            place = end
        return block

    def rows(self, start: int, batch: pa.RecordBatch) -> FeatureRows:
        """Return the features of a batch whose first row is `start`."""
        dense = np.zeros((len(batch), self.dense), np.float32)
        keys, place, width = [np.empty(0, np.int64)], 0, len(self.names) - self.dense
        for encoder in self._ordered:
            end = place + len(encoder.names)
            cells, tell = batch.column(encoder.column), partial(self._tell, start, encoder.column)
            if encoder.sparse:
                rows, columns = encoder.ones(cells, tell)
                first = place - (self.dense - self._marked)
                keys.append(rows * width + (first + columns))
            else:
                encoder.encode(cells, dense[:, place:end], tell)
            place = end
        key = np.sort(np.concatenate(keys))
        counts = np.bincount(key // width if width else key, minlength=len(batch))
        return FeatureRows(dense, counts, key % width if width else key)

    def notes(self) -> list[str]:
        """Return remarks for the user: renamed features, and the notes of the encoders."""
        return [
            *self._renamed(),
            *(
                f"{self._table.name}: column {encoder.column!r}: {note}"
                for encoder in self._encoders
                for note in encoder.notes()
            ),
        ]

    def _renamed(self) -> Iterator[str]:
        """Yield a remark for each feature that was renamed because an earlier one has its name."""
        owner = {UNKNOWN_NODE: "the mark of nodes that edges alone name"}
        made = [(name, encoder.column) for encoder in self._ordered for name in encoder.names]
        given = [name for name in self.names if name != UNKNOWN_NODE or not self._marked]
        for (name, column), own in zip(made, given, strict=False):
            if own != name:
                yield (
                    f"{self._table.name}: column {column!r}: a feature would be called {name!r}, "
                    f"as {owner[name]} is; it is called {own!r}"
                )
            owner[own] = f"that of column {column!r}"

    def _tell(
        self,
        start: int,
        column: str,
        what: str,
        rows: NDArray[np.int64],
        values: pa.Array | None,
        advice: str,
    ) -> None:
        doubt = self._table.header_doubt if "text" in what else ""
        advice = "; ".join(filter(None, [advice, doubt]))
        self._problems.add(what, column, start + rows, values, advice)


def distinct(names: Sequence[str]) -> list[str]:
    """Return the names with a number added to each that repeats an earlier one: `x=a` may be a
    column, and also the category a of column x. A model finds its features by their names."""
    taken: dict[str, None] = {}
    for name in names:
        own, number = name, 1
        while own in taken:
            number += 1
            own = f"{name} ({number})"
        taken[own] = None
    return list(taken)


def copy_features(
    file: Path,
    nodes: int,
    folder: Path,
    fill: float | None,
    added: int = 0,
    marked: bool = False,
    mean: NDArray[np.float32] | None = None,
) -> Features:
    """Copy the features of a `.npy` file, (nodes, width), to the graph's folder.

    added: number of further nodes, which get the mean of each column
    marked: a last column is 1 for the added nodes and 0 for the others
    mean: (width,) means of the columns; None to compute them from this file
    """
    array = open_features(file)
    if len(array) != nodes:
        raise InputError(
            f"{setting('features_file')}: {file} has {counted(len(array), 'row')} for "
            f"{counted(nodes, 'node')}"
        )
    width = array.shape[1] + marked
    step = max(1, _CHUNK // width)
    wrong = 0
    first: tuple[int, int] | None = None
    with FeatureFiles(folder, width) as out:
        for start in range(0, nodes, step):
            with np.errstate(over="ignore"):
                block = array[start : start + step].astype(np.float32)
            bad = ~np.isfinite(block)
            if bad.any():
                if fill is None and first is None:
                    row, column = np.argwhere(bad)[0]
                    first = (start + int(row), int(column))
                wrong += int(bad.sum())
                block[bad] = fill or 0
            out.append(_dense(np.pad(block, ((0, 0), (0, int(marked))))))
        if added:
            if mean is None or len(mean) != width:  # the caller refuses another width later
                mean = out.written(None).mean
            row = mean.copy()
            row[array.shape[1] :] = 1
            out.append(_dense(np.tile(row, (added, 1))))
    if first is not None:
        raise InputError(
            f"{setting('features_file')}: {file} holds "
            f"{counted(wrong, 'value that is', 'values that are')} NaN, infinite or too large for "
            f"32 bits, first: row {first[0]:,}, column {first[1]:,}, both counted from 0; give "
            f"{setting('fill', Placeholder('VALUE'))}"
        )
    return out.written(None)


def _dense(rows: NDArray[np.float32]) -> FeatureRows:
    return FeatureRows(rows, _NOTHING, _NOTHING)


_NOTHING = np.empty(0, np.int64)


def open_features(file: Path) -> NDArray[Any]:
    """Map a `.npy` file of features, (nodes, width), into memory; refuse any other array."""
    if not file.is_file():
        raise FileNotFoundError(f"{setting('features_file')}: there is no file {file}")
    try:
        array = map_array(file)
    except (ValueError, OSError) as error:
        raise InputError(
            f"{setting('features_file')}: {file} is not an array of numbers: {error}"
        ) from None
    if array.ndim != 2 or 0 in array.shape:
        raise InputError(
            f"{setting('features_file')}: {file} must be (nodes, width), not {array.shape}"
        )
    if array.dtype.kind not in "fiub":
        raise InputError(f"{setting('features_file')}: {file} holds {array.dtype}, not numbers")
    return array


def structural_features(adjacency: Adjacency, folder: Path) -> Features:
    """Write features made from the edges alone: degrees of a node and of its neighbours one and two
    steps away.

    All are logarithms, log(1 + degree). The features of neighbours are 0 for a node without any.
    """
    into = np.log1p(adjacency.degree)
    mean, largest = adjacency.over_neighbours(into)
    mean_of_mean, _ = adjacency.over_neighbours(mean)
    columns = {
        "log_degree": into,
        "mean_neighbour_log_degree": mean,
        "max_neighbour_log_degree": largest,
        "mean_second_neighbour_log_degree": mean_of_mean,
    }
    if adjacency.directed:
        columns["log_out_degree"] = np.log1p(adjacency.out_degree)
    with FeatureFiles(folder, len(columns)) as out:
        out.append(_dense(np.stack(list(columns.values()), axis=1).astype(np.float32)))
    return out.written(list(columns))
