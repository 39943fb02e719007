"""Checks the arrays of a graph on disk when they are opened.

A wrong index in a matrix does not raise an error in products but reads other memory: so every index
is checked once, in pieces, at the speed of memory. Features may be larger than memory and are
checked on request (`check_finite`), or when they are verified.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import torch
from torch import Tensor

from vrgcn.data.store_format import Matrix, Meta, kept_file
from vrgcn.files.mistakes import InputError
from vrgcn.graph.validation import SPLITS
from vrgcn.tasks import find_task

_PIECE = 1 << 22  # numbers at a time: temporaries of some megabytes

Arrays = dict[str, Tensor]


def check_arrays(path: Path, meta: Meta, arrays: Arrays) -> None:
    """Refuse arrays, mapped and of the right shapes, that are no graph."""
    for matrix in meta.matrices():
        _check_matrix(path, matrix, arrays)
        if matrix.ascending and matrix.valued:
            check_finite(path / f"{matrix.names[2]}.npy", arrays[matrix.names[2]])
    if "labels" in arrays:
        _check_labels(path / "labels.npy", meta, arrays["labels"])
    _check_splits(path, meta, arrays)
    _check_kept(path, meta, arrays)


def check_finite(file: Path, values: Tensor) -> None:
    """Refuse NaN and infinite numbers of a file. values: of any shape"""
    for start, piece in _pieces(values.view(-1)):
        # The sum of finite numbers may overflow; only then is it worth looking at each.
        if not torch.isfinite(piece.sum()):
            bad = ~torch.isfinite(piece)
            if bad.any():
                place = start + int(bad.nonzero()[0, 0])
                where = f"entry {place}"
                if values.dim() == 2:
                    row, column = divmod(place, values.shape[1])
                    where = f"node {row}, column {column}"
                raise InputError(f"{file} holds NaN or infinite numbers, first: {where}")


def check_different(file: Path, ids: pa.Array) -> None:
    """Refuse node ids of which two are the same: a prediction would not say whose it is."""
    if pa.types.is_integer(ids.type):  # sorted they take 8 bytes each, in a table of places 100
        values = np.sort(ids.to_numpy())
        if not (values[1:] == values[:-1]).any():
            return
    first = pc.index_in(ids, value_set=ids)  # the first place of each
    again = pc.not_equal(first, pa.array(np.arange(len(ids)), first.type))
    place = pc.index(again, True).as_py()
    if place >= 0:
        raise InputError(
            f"{file} gives node {place} the id {ids[place].as_py()!r}, which node "
            f"{first[place].as_py()} has too"
        )
    del first, again
    pa.default_memory_pool().release_unused()


def _check_matrix(path: Path, matrix: Matrix, arrays: Arrays) -> None:
    indptr, indices = arrays[matrix.indptr], arrays[matrix.indices]
    starts, places = (path / f"{name}.npy" for name in (matrix.indptr, matrix.indices))
    if int(indptr[0]) != 0 or int(indptr[-1]) != len(indices):
        raise InputError(
            f"{starts} must run from 0 to the number of entries, {len(indices)}, and runs from "
            f"{int(indptr[0])} to {int(indptr[-1])}"
        )
    for row, piece in _pieces(indptr, overlap=1):
        falls = piece[1:] < piece[:-1]
        if falls.any():
            at = row + int(falls.nonzero()[0, 0])
            raise InputError(
                f"{starts}: row {at} ends at {int(indptr[at + 1])}, before it starts, at "
                f"{int(indptr[at])}"
            )
    allowed = range(matrix.columns)
    if matrix.within is not None:
        rows, allowed = matrix.within
        if int(indptr[rows.start]) != 0 or int(indptr[rows.stop]) != len(indices):
            raise InputError(
                f"{starts} has entries outside of the rows {rows.start}..{rows.stop - 1} of the "
                "relation's target kind"
            )
    for start, piece in _pieces(indices):
        least, most = (int(x) for x in torch.aminmax(piece))
        if least < allowed.start or most >= allowed.stop:
            at = int(((piece < allowed.start) | (piece >= allowed.stop)).nonzero()[0, 0])
            raise InputError(
                f"{places}: entry {start + at} is {int(piece[at])}, outside "
                f"{allowed.start}..{allowed.stop - 1}"
            )
    if matrix.ascending:
        _check_ascending(places, indptr, indices)


def _check_ascending(file: Path, indptr: Tensor, indices: Tensor) -> None:
    """Only where a row begins may a column be no larger than the one before."""
    for start, piece in _pieces(indices, overlap=1):
        places = (piece[1:] <= piece[:-1]).nonzero()[:, 0] + (start + 1)
        wrong = indptr[torch.searchsorted(indptr, places)] != places
        if wrong.any():
            at = int(places[wrong][0])
            raise InputError(
                f"{file}: entry {at}, {int(indices[at])}, does not ascend from the one before, "
                f"{int(indices[at - 1])}, in the same row"
            )


def _check_labels(file: Path, meta: Meta, labels: Tensor) -> None:
    task = find_task(meta.task)
    rows = max(1, _PIECE // max(1, labels[:1].numel()))
    for start in range(0, len(labels), rows):
        part = labels[start : start + rows]
        wrong, wanted = task.wrong(part, meta.num_classes)
        if wrong.any():
            at = int(wrong.nonzero()[0, 0])
            raise InputError(f"{file}: node {start + at} has {part[at].tolist()}, not {wanted}")


def _check_splits(path: Path, meta: Meta, arrays: Arrays) -> None:
    owner = torch.full((meta.nodes,), -1, dtype=torch.int8)
    for number, name in enumerate(SPLITS):
        ids, file = arrays[name], path / f"{name}.npy"
        if not len(ids):
            continue
        if int(ids.min()) < 0 or int(ids.max()) >= meta.nodes:
            bad = int(ids[(ids < 0) | (ids >= meta.nodes)][0])
            raise InputError(f"{file} names node {bad}, outside 0..{meta.nodes - 1}")
        if (ids[1:] <= ids[:-1]).any():
            at = int((ids[1:] <= ids[:-1]).nonzero()[0, 0])
            raise InputError(
                f"{file} must ascend, no node twice: after node {int(ids[at])} comes "
                f"{int(ids[at + 1])}"
            )
        taken = owner[ids]
        if (taken >= 0).any():
            at = int((taken >= 0).nonzero()[0, 0])
            raise InputError(f"{file} has node {int(ids[at])}, and {SPLITS[int(taken[at])]} too")
        owner[ids] = number
        unknown = _unknown(meta, arrays.get("labels"), ids)
        if unknown.any():
            raise InputError(f"{file} has node {int(ids[unknown][0])}, which has no label")


def _check_kept(path: Path, meta: Meta, arrays: Arrays) -> None:
    """Refuse codes outside of their classes."""
    for number, place in enumerate(meta.kept):
        values = arrays[kept_file(number)]
        if values.dtype != torch.int64 or not len(values):
            continue
        most = 3 if place.kind == "split" else len(place.classes)
        least, largest = (int(x) for x in torch.aminmax(values))
        if least < -1 or largest >= most:
            raise InputError(
                f"{path / kept_file(number)}.npy holds {least} to {largest}, not -1 to {most - 1}"
            )


def _unknown(meta: Meta, labels: Tensor | None, ids: Tensor) -> Tensor:
    """(ids,) whether a node's label is not known."""
    if labels is None:
        return torch.ones(len(ids), dtype=torch.bool)
    if not labels.numel():  # several classes per node, of none
        return ids < 0
    return ~find_task(meta.task).labelled(labels, ids)


def _pieces(values: Tensor, overlap: int = 0) -> Iterator[tuple[int, Tensor]]:
    """Runs of a one-dimensional tensor and where each begins, each with the first of the next."""
    for start in range(0, len(values) - overlap, _PIECE):
        yield start, values[start : start + _PIECE + overlap]
