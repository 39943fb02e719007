"""The nodes: one pass over their table, or what the edges tell where there is none."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from vrgcn.data.tables.columns import EdgeColumns, NodeColumns
from vrgcn.data.tables.features import FeatureColumns, FeatureFile, Features, open_features
from vrgcn.data.tables.ids import IdReader, NodeIds, ids_of_edges, whole_numbers
from vrgcn.data.tables.labels import Labels, label_reader
from vrgcn.data.tables.numbers import Numbers
from vrgcn.data.tables.problems import Problems
from vrgcn.data.tables.reading import Table
from vrgcn.data.tables.spec import ImportSpec
from vrgcn.data.tables.splits import SplitReader, draw_split


@dataclass(frozen=True)
class Nodes:
    """labels: None where there are none
    split: (nodes,) 0 train, 1 val, 2 test, -1 none; None where there is none
    features: None where they are still to be written
    """

    ids: NodeIds
    labels: Labels | Numbers | None = None
    split: NDArray[np.int8] | None = None
    features: Features | None = None


def read_nodes(
    table: Table,
    columns: NodeColumns,
    spec: ImportSpec,
    folder: Path,
    on_rows: Callable[[str, int], None],
) -> Nodes:
    """Ids, labels, split and features of all nodes; the features are written on the way."""
    problems = Problems(table)
    ids = IdReader(columns.id, problems)
    labels = label_reader(table, columns.label, spec, problems) if columns.label else None
    split = None
    if columns.split is not None and spec.ratio is None:
        split = SplitReader(columns.split, spec.missing, problems)
    features = FeatureColumns(table, columns.features, spec.fill, problems)
    with ExitStack() as stack:
        out = None
        if columns.features:
            out = stack.enter_context(FeatureFile(folder, len(features.names)))
        for start, batch in table.batches(columns.used):
            ids.add(start, batch)
            if labels is not None:
                labels.add(start, batch)
            if split is not None:
                split.add(start, batch)
            if out is not None:
                out.append(features.block(start, batch))
            on_rows(table.name, start + len(batch))
    known_ids = ids.finish()
    known_labels = labels.finish() if labels is not None else None
    codes = split.finish(known_labels) if split is not None else None
    problems.raise_if_any()
    if spec.ratio is not None and known_labels is not None:
        codes = draw_split(known_labels, spec.ratio, spec.split_seed)
    written = None
    if out is not None:
        written = Features(len(features.names), features.names, out.constant())
    return Nodes(known_ids, known_labels, codes, written)


def check_split(table: Table, columns: NodeColumns, spec: ImportSpec) -> None:
    """Refuse a task and a split without labels, before anything is read."""
    if columns.label:
        return
    if spec.task != "auto":
        raise ValueError(f"--task: {table.name} has no column 'label'; give --label COLUMN")
    if spec.ratio is not None:
        raise ValueError(f"--ratio: {table.name} has no label column to split by; give --label")
    if columns.split is not None:
        raise ValueError(
            f"{table.name} has the split column {columns.split!r} and no label column; say which "
            f"it is with --label, or leave the split aside with --drop {columns.split!r}"
        )


def nodes_of_edges(
    table: Table, columns: EdgeColumns, spec: ImportSpec, on_rows: Callable[[str, int], None]
) -> Nodes:
    """The nodes that the edges name, in the order of their ids.

    With a file of features, ids that are all numbers of its rows are just that, so that a node
    without an edge need not be named.
    """
    ids = ids_of_edges(table, columns, on_rows)
    if spec.features_file is not None:
        rows = len(open_features(spec.features_file))
        numbers = whole_numbers(ids.text)
        if numbers is not None and len(numbers):
            values = numbers.to_numpy()
            if values.min() >= 0 and values.max() < rows:
                ids = NodeIds(pa.array(np.arange(rows)).cast(pa.string()))
    return Nodes(ids)
