"""Features of nodes: from columns, from a `.npy` file, or from the edges alone.

All three end in the graph's `features.npy`, (nodes, width) float32, a chunk of rows at a time.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from vrgcn.data.tables.adjacency import Adjacency
from vrgcn.data.tables.growing import GrowingArray
from vrgcn.data.tables.problems import Problems
from vrgcn.data.tables.reading import Table
from vrgcn.data.tables.values import is_list, to_matrix, to_numbers
from vrgcn.data.tables.wording import counted

FEATURES = "features.npy"
_CHUNK = 1 << 22


@dataclass(frozen=True)
class Features:
    """What was written.

    names: of the columns; None where they have none
    constant: the columns that are the same for all nodes
    """

    width: int
    names: list[str] | None
    constant: NDArray[np.int64]

    def label(self, column: int) -> str:
        return self.names[column] if self.names is not None else str(column)


class FeatureFile:
    """`features.npy` while it is written, and the range of each of its columns."""

    def __init__(self, folder: Path, width: int) -> None:
        self._file = GrowingArray(folder / FEATURES, np.float32, (width,))
        self._low = np.full(width, np.inf, np.float32)
        self._high = np.full(width, -np.inf, np.float32)

    def __enter__(self) -> FeatureFile:
        return self

    def __exit__(self, kind: type[BaseException] | None, *error: object) -> None:
        self._file.__exit__(kind, *error)

    def append(self, block: NDArray[np.float32]) -> None:
        np.fmin(self._low, block.min(0), out=self._low)
        np.fmax(self._high, block.max(0), out=self._high)
        self._file.append(block)

    def constant(self) -> NDArray[np.int64]:
        return np.flatnonzero(self._low == self._high)


class FeatureColumns:
    """The feature columns of a table, one beside the other.

    names: of the features; a list column `x` becomes `x[0]`, `x[1]`, ...
    """

    def __init__(
        self, table: Table, columns: list[str], fill: float | None, problems: Problems
    ) -> None:
        self._columns = columns
        self._widths = [_list_width(table, name) for name in columns]
        self._header_doubt = table.header_doubt
        self._fill = fill
        self._problems = problems
        self.names: list[str] = []
        for name, width in zip(columns, self._widths, strict=True):
            self.names += [name] if width is None else [f"{name}[{i}]" for i in range(width)]

    def block(self, start: int, batch: pa.RecordBatch) -> NDArray[np.float32]:
        """The features of the rows from `start` on: (rows, width)."""
        block = np.empty((len(batch), len(self.names)), np.float32)
        parts = {}
        place = 0
        for name, width in zip(self._columns, self._widths, strict=True):
            part = parts[name] = block[:, place : place + (1 if width is None else width)]
            wrong = _convert(batch.column(name), part)
            if len(wrong):
                self._tell_wrong(start, name, batch.column(name), wrong, width)
                part[wrong] = 0  # told already: not to be told as missing too
            place += part.shape[1]
        finite = np.isfinite(block)
        if not finite.all() and self._fill is not None:
            block[~finite] = self._fill
        elif not finite.all():
            for name, part in parts.items():
                self._tell_not_finite(start, name, batch.column(name), part)
        return block

    def _tell_wrong(
        self, start: int, name: str, column: pa.Array, wrong: NDArray[np.int64], width: int | None
    ) -> None:
        if width is None:
            what, cells = "holds text where numbers should be", column
            advice = "; ".join(filter(None, [_drop(name), self._header_doubt]))
        else:
            what = f"holds a list of another length than {width}"
            cells = pc.list_value_length(column)
            advice = _drop(name)
        self._problems.add(what, name, start + wrong, cells.take(wrong), advice)

    def _tell_not_finite(
        self, start: int, name: str, column: pa.Array, part: NDArray[np.float32]
    ) -> None:
        advice = f"give --fill VALUE, or {_drop(name)}"
        empty = np.flatnonzero(np.isnan(part).any(1))
        self._problems.add("is missing or NaN", name, start + empty, None, advice)
        infinite = np.flatnonzero(np.isinf(part).any(1))
        what = "is infinite, or too large for 32 bits"
        self._problems.add(what, name, start + infinite, column.take(infinite), advice)


def _drop(name: str) -> str:
    return f"leave the column out with --drop {name!r}"


def _convert(column: pa.Array, part: NDArray[np.float32]) -> NDArray[np.int64]:
    """Put a column's numbers into (rows, width); gives the rows that have none or too many."""
    if is_list(column.type):
        part[:], wrong = to_matrix(column, part.shape[1])
    else:
        part[:, 0], wrong = to_numbers(column)
    return wrong


def _list_width(table: Table, column: str) -> int | None:
    """How many numbers the lists of a column have; None for a column of single numbers."""
    kind = table.kind(column)
    if not is_list(kind):
        return None
    if pa.types.is_fixed_size_list(kind):
        return int(kind.list_size)
    for _, batch in table.batches([column]):
        lengths = pc.list_value_length(batch.column(column)).drop_null()
        if len(lengths) and lengths[0].as_py():
            return int(lengths[0].as_py())
    raise ValueError(f"{table.name}: column {column!r} holds no list with anything in it")


def copy_features(file: Path, nodes: int, folder: Path, fill: float | None) -> Features:
    """The features of a `.npy` file, (nodes, width)."""
    array = open_features(file)
    if len(array) != nodes:
        raise ValueError(
            f"--features-file: {file} has {counted(len(array), 'row')} for {counted(nodes, 'node')}"
        )
    step = max(1, _CHUNK // array.shape[1])
    wrong = 0
    first: tuple[int, int] | None = None
    with FeatureFile(folder, array.shape[1]) as out:
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
            out.append(block)
    if first is not None:
        raise ValueError(
            f"--features-file: {file} holds {counted(wrong, 'value that is', 'values that are')} "
            f"NaN, infinite or too large for 32 bits, first: row {first[0]:,}, column "
            f"{first[1]:,}, both counted from 0; give --fill VALUE"
        )
    return Features(array.shape[1], None, out.constant())


def open_features(file: Path) -> NDArray[Any]:
    """A `.npy` file of features, mapped into memory."""
    if not file.is_file():
        raise FileNotFoundError(f"--features-file: there is no file {file}")
    try:
        array: NDArray[Any] = np.load(file, mmap_mode="r")
    except (ValueError, EOFError, OSError) as error:
        raise ValueError(f"--features-file: {file} is not an array of numbers: {error}") from None
    if not isinstance(array, np.ndarray) or array.ndim != 2 or 0 in array.shape:
        shape = getattr(array, "shape", "several arrays")
        raise ValueError(f"--features-file: {file} must be (nodes, width), not {shape}")
    if array.dtype.kind not in "fiub":
        raise ValueError(f"--features-file: {file} holds {array.dtype}, not numbers")
    return array


def structural_features(adjacency: Adjacency, folder: Path) -> Features:
    """Features from the edges alone: degrees, and the degrees of neighbours one and two steps off.

    All are logarithms, log(1 + degree); a node without neighbours has 0 for theirs.
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
    return Features(len(columns), list(columns), out.constant())
