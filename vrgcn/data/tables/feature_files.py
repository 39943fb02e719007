"""The arrays of a graph's features while a table is read: dense columns, then sparse ones.

Each batch of rows goes to the files as it comes, sparse columns as CSR: never as a dense matrix.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from vrgcn.data.store_format import SPARSE_FEATURES, BlockPlace
from vrgcn.data.tables.growing import GrowingArray
from vrgcn.files.npy import map_array
from vrgcn.graph.kinds import Kinds

FEATURES = "features.npy"
_ROWS = 65_536


@dataclass(frozen=True)
class Features:
    """Description of the features that were written.

    names: names of the columns; None if they have none
    constant: the columns that are the same for all nodes
    mean: (width,) mean of each column
    sparse: how many of the columns, the last ones, are sparse
    entries: numbers that are stored of them
    """

    width: int
    names: list[str] | None
    constant: NDArray[np.int64]
    mean: NDArray[np.float32]
    sparse: int = 0
    entries: int = 0

    @property
    def dense(self) -> int:
        """How many of the columns, the first ones, are dense."""
        return self.width - self.sparse

    def label(self, column: int) -> str:
        return self.names[column] if self.names is not None else str(column)


@dataclass(frozen=True)
class FeatureRows:
    """Features of some nodes.

    dense: (rows, dense columns)
    counts: (rows,) entries of each row in sparse columns
    indices: (entries,) their columns, ascending in each row; all values are 1
    """

    dense: NDArray[np.float32]
    counts: NDArray[np.int64]
    indices: NDArray[np.int64]


class FeatureFiles:
    """The arrays of features while they are written, and the range and mean of each column.

    dense, sparse: how many columns of each layout
    """

    def __init__(self, folder: Path, dense: int, sparse: int = 0) -> None:
        self._low = np.full(dense, np.inf, np.float32)
        self._high = np.full(dense, -np.inf, np.float32)
        self._sum = np.zeros(dense)
        self._ones = np.zeros(sparse, np.int64)
        self._rows = self._entries = 0
        self._stack = ExitStack()
        self._files: dict[str, GrowingArray] = {}
        if dense:
            self._open(folder, "features", np.float32, (dense,))
        if sparse:
            for name, kind in zip(SPARSE_FEATURES, (np.int64, np.int64, np.float32), strict=True):
                self._open(folder, name, kind)
            self._files["feature_indptr"].append(np.zeros(1, np.int64))

    def _open(self, folder: Path, name: str, kind: type, row: tuple[int, ...] = ()) -> None:
        file = GrowingArray(folder / f"{name}.npy", kind, row)
        self._files[name] = self._stack.enter_context(file)

    def __enter__(self) -> FeatureFiles:
        return self

    def __exit__(self, kind: type[BaseException] | None, *error: object) -> None:
        self._stack.__exit__(kind, *error)  # type: ignore[arg-type]

    def append(self, rows: FeatureRows) -> None:
        self._rows += len(rows.dense)
        if "features" in self._files:
            np.fmin(self._low, rows.dense.min(0), out=self._low)
            np.fmax(self._high, rows.dense.max(0), out=self._high)
            self._sum += rows.dense.sum(0, dtype=np.float64)
            self._files["features"].append(rows.dense)
        if len(self._ones):
            self._files["feature_indptr"].append(self._entries + np.cumsum(rows.counts))
            self._files["feature_indices"].append(rows.indices)
            self._files["feature_values"].append(np.ones(len(rows.indices), np.float32))
            self._ones += np.bincount(rows.indices, minlength=len(self._ones))
            self._entries += len(rows.indices)

    def written(self, names: list[str] | None) -> Features:
        """Describe the features in the files; call it after the last `append`."""
        dense, sparse = len(self._sum), len(self._ones)
        mean = np.append(self._sum, self._ones) / max(self._rows, 1)
        constant = np.append(
            self._low == self._high, (self._ones == 0) | (self._ones == self._rows)
        )
        return Features(
            dense + sparse,
            names,
            np.flatnonzero(constant),
            mean.astype(np.float32),
            sparse,
            self._entries,
        )


def add_rows(folder: Path, features: Features, row: NDArray[np.float32], count: int) -> None:
    """Give `count` more nodes the features `row`, (dense columns,), and none of the sparse ones."""
    for name in ("features", "feature_indptr"):
        if name not in _names(features):
            continue
        with GrowingArray.reopened(folder / f"{name}.npy") as file:
            more = row if name == "features" else np.int64(features.entries)
            for start in range(0, count, _ROWS):
                some = min(_ROWS, count - start)
                file.append(np.tile(more, (some, 1) if name == "features" else some))


def append_columns(
    folder: Path, features: Features | None, names: list[str], columns: NDArray[np.float32]
) -> Features:
    """Write further dense columns, (nodes, width), after the dense features in a folder, and
    describe all of them.

    features: in the folder already; None if there are none
    """
    low, high = columns.min(0), columns.max(0)
    mean = columns.mean(0, dtype=np.float64).astype(np.float32)
    before = features.dense if features is not None else 0
    wider = folder / "wider-features.npy"
    held = map_array(folder / FEATURES, read_only=True) if before else columns[:, :0]
    with GrowingArray(wider, np.float32, (before + columns.shape[1],)) as out:
        for start in range(0, len(columns), _ROWS):
            rows = slice(start, start + _ROWS)
            out.append(np.concatenate([held[rows], columns[rows]], axis=1))
    wider.replace(folder / FEATURES)
    constant = np.flatnonzero(low == high)
    if features is None:
        return Features(len(names), names, constant, mean)
    own = features.names or [features.label(place) for place in range(features.width)]
    moved = np.where(features.constant < before, 0, len(names))
    return replace(
        features,
        width=features.width + len(names),
        names=[*own[:before], *names, *own[before:]],
        constant=np.sort(np.concatenate([features.constant + moved, constant + before])),
        mean=np.concatenate([features.mean[:before], mean, features.mean[before:]]),
    )


def join_features(
    parts: Mapping[str, tuple[Path, Features | None]], kinds: Kinds, folder: Path
) -> list[BlockPlace]:
    """Move the features of each kind to the graph's folder, as blocks of those of all nodes.

    parts: where the features of a kind are, by its name, and what they are; folders are removed
    """
    blocks: list[BlockPlace] = []
    for kind, (own, features) in parts.items():
        rows, columns = kinds.range(kind), kinds.columns(kind)
        if features is not None:
            place = rows.start, columns.start, len(blocks)
            blocks += _moved(own, folder, features, len(rows), *place)
        own.rmdir()
    return blocks


def _moved(
    own: Path, folder: Path, features: Features, rows: int, row: int, column: int, number: int
) -> list[BlockPlace]:
    """Move features to another folder, as blocks from `number` on at a row and column."""
    sparse = column + features.dense
    blocks = [
        *[BlockPlace(row, column, rows, features.dense, None)] * bool(features.dense),
        *[BlockPlace(row, sparse, rows, features.sparse, features.entries)] * bool(features.sparse),
    ]
    files = [name for place, block in enumerate(blocks, number) for name in block.files(place)]
    for name, file in zip(_names(features), files, strict=True):
        (own / f"{name}.npy").replace(folder / f"{file}.npy")
    return blocks


def _names(features: Features) -> list[str]:
    """Names of the arrays that features have while they are written."""
    return [*["features"] * bool(features.dense), *SPARSE_FEATURES * bool(features.sparse)]
