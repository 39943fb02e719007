"""Features of nodes: from columns, from a `.npy` file, or from the edges alone.

All three end in the graph's `features.npy`, (nodes, width) float32, a chunk of rows at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from vrgcn.data.store import write_array
from vrgcn.data.store_format import BlockPlace
from vrgcn.data.tables.adjacency import Adjacency
from vrgcn.data.tables.encoders.encoder import Encoder
from vrgcn.data.tables.growing import GrowingArray
from vrgcn.data.tables.problems import Problems
from vrgcn.data.tables.reading import Table
from vrgcn.data.tables.wording import counted
from vrgcn.files.npy import map_array
from vrgcn.files.setting_names import Placeholder, setting
from vrgcn.graph.kinds import Kinds

FEATURES = "features.npy"
UNKNOWN_NODE = "(not in the nodes table)"  # the feature that marks nodes that only edges name
_CHUNK = 1 << 22
_ROWS = 65_536


@dataclass(frozen=True)
class Features:
    """Description of the features that were written to `features.npy`.

    names: names of the columns; None if they have none
    constant: the columns that are the same for all nodes
    mean: (width,) mean of each column
    """

    width: int
    names: list[str] | None
    constant: NDArray[np.int64]
    mean: NDArray[np.float32]

    def label(self, column: int) -> str:
        return self.names[column] if self.names is not None else str(column)


class FeatureFile:
    """`features.npy` while it is written, and the range and mean of each of its columns."""

    def __init__(self, folder: Path, width: int) -> None:
        self._file = GrowingArray(folder / FEATURES, np.float32, (width,))
        self._low = np.full(width, np.inf, np.float32)
        self._high = np.full(width, -np.inf, np.float32)
        self._sum = np.zeros(width)

    def __enter__(self) -> FeatureFile:
        return self

    def __exit__(self, kind: type[BaseException] | None, *error: object) -> None:
        self._file.__exit__(kind, *error)

    def append(self, block: NDArray[np.float32]) -> None:
        np.fmin(self._low, block.min(0), out=self._low)
        np.fmax(self._high, block.max(0), out=self._high)
        self._sum += block.sum(0, dtype=np.float64)
        self._file.append(block)

    def written(self, names: list[str] | None) -> Features:
        """Describe the features in the file; call it after the last `append`."""
        mean = (self._sum / max(self._file.rows, 1)).astype(np.float32)
        constant = np.flatnonzero(self._low == self._high)
        return Features(len(mean), names, constant, mean)


class FeatureColumns:
    """Encodes the columns of a table as features, side by side.

    marked: a last feature is 1 for nodes that the table lacks and 0 for the others
    """

    def __init__(
        self, table: Table, encoders: Sequence[Encoder], problems: Problems, marked: bool
    ) -> None:
        self._table = table
        self._encoders = encoders
        self._problems = problems
        self._marked = marked

    @property
    def columns(self) -> list[str]:
        return [encoder.column for encoder in self._encoders]

    @property
    def names(self) -> list[str]:
        own = [name for encoder in self._encoders for name in encoder.names]
        if not self._marked:
            return distinct(own)
        mark, *names = distinct([UNKNOWN_NODE, *own])
        return [*names, mark]

    def fit(self, on_rows: Callable[[str, int], None]) -> None:
        """Fit the encoders that must see their whole column before they can encode it."""
        unfitted = [encoder for encoder in self._encoders if not encoder.fitted]
        if not unfitted:
            return
        for start, batch in self._table.batches([encoder.column for encoder in unfitted]):
            for encoder in unfitted:
                encoder.fit(batch.column(encoder.column))
            on_rows(self._table.name, start + len(batch))
        for encoder in unfitted:
            try:
                encoder.finish()
            except ValueError as error:
                raise ValueError(f"{self._table.name}: {error}") from None

    def block(self, start: int, batch: pa.RecordBatch) -> NDArray[np.float32]:
        """Return the features of a batch whose first row is `start`: (rows, width)."""
        block = np.zeros((len(batch), len(self.names)), np.float32)
        place = 0
        for encoder in self._encoders:
            width = len(encoder.names)
            tell = partial(self._tell, start, encoder.column)
            encoder.encode(batch.column(encoder.column), block[:, place : place + width], tell)
            place += width
        return block

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
        made = [(name, encoder.column) for encoder in self._encoders for name in encoder.names]
        for (name, column), own in zip(made, self.names, strict=False):
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


def add_rows(folder: Path, row: NDArray[np.float32], count: int) -> None:
    """Give `count` more nodes the features `row`, (width,)."""
    with GrowingArray.reopened(folder / FEATURES) as file:
        for start in range(0, count, _ROWS):
            file.append(np.tile(row, (min(_ROWS, count - start), 1)))


def append_columns(folder: Path, columns: NDArray[np.float32]) -> None:
    """Write further columns, (nodes, width), after the features in a folder, which may have none
    yet."""
    file, width = folder / FEATURES, columns.shape[1]
    if not file.exists():
        with GrowingArray(file, np.float32, (width,)) as out:
            out.append(columns)
        return
    before = map_array(file, read_only=True)
    wider = folder / f"wider-{FEATURES}"
    with GrowingArray(wider, np.float32, (before.shape[1] + width,)) as out:
        for start in range(0, len(columns), _ROWS):
            rows = slice(start, start + _ROWS)
            out.append(np.concatenate([before[rows], columns[rows]], axis=1))
    wider.replace(file)


def join_features(
    folders: Mapping[str, Path], kinds: Kinds, folder: Path
) -> list[BlockPlace] | None:
    """Move the features of each kind to the graph's folder, as a block of those of all nodes.

    folders: where the features of a kind are, by its name; they are removed
    Returns the places of the blocks; None if the features are one matrix.
    """
    blocks: list[BlockPlace] = []
    for kind, own in folders.items():
        rows, columns = kinds.range(kind), kinds.columns(kind)
        if len(columns):
            block = BlockPlace(rows.start, columns.start, len(rows), len(columns), None)
            [name] = block.files(len(blocks))
            one = len(rows) == kinds.num_nodes
            (own / FEATURES).replace(folder / (FEATURES if one else f"{name}.npy"))
            blocks += [] if one else [block]
        own.rmdir()
    if not sum(kinds.widths.values()):
        write_array(folder, "features", np.empty((kinds.num_nodes, 0), np.float32))
    return blocks or None


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
        raise ValueError(
            f"{setting('features_file')}: {file} has {counted(len(array), 'row')} for "
            f"{counted(nodes, 'node')}"
        )
    width = array.shape[1] + marked
    step = max(1, _CHUNK // width)
    wrong = 0
    first: tuple[int, int] | None = None
    with FeatureFile(folder, width) as out:
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
            out.append(np.pad(block, ((0, 0), (0, int(marked)))))
        if added:
            if mean is None or len(mean) != width:  # the caller refuses another width later
                mean = out.written(None).mean
            row = mean.copy()
            row[array.shape[1] :] = 1
            out.append(np.tile(row, (added, 1)))
    if first is not None:
        raise ValueError(
            f"{setting('features_file')}: {file} holds "
            f"{counted(wrong, 'value that is', 'values that are')} NaN, infinite or too large for "
            f"32 bits, first: row {first[0]:,}, column {first[1]:,}, both counted from 0; give "
            f"{setting('fill', Placeholder('VALUE'))}"
        )
    return out.written(None)


def open_features(file: Path) -> NDArray[Any]:
    """Map a `.npy` file of features, (nodes, width), into memory; refuse any other array."""
    if not file.is_file():
        raise FileNotFoundError(f"{setting('features_file')}: there is no file {file}")
    try:
        array = map_array(file)
    except (ValueError, OSError) as error:
        raise ValueError(
            f"{setting('features_file')}: {file} is not an array of numbers: {error}"
        ) from None
    if array.ndim != 2 or 0 in array.shape:
        raise ValueError(
            f"{setting('features_file')}: {file} must be (nodes, width), not {array.shape}"
        )
    if array.dtype.kind not in "fiub":
        raise ValueError(f"{setting('features_file')}: {file} holds {array.dtype}, not numbers")
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
    with FeatureFile(folder, len(columns)) as out:
        out.append(np.stack(list(columns.values()), axis=1).astype(np.float32))
    return out.written(list(columns))
