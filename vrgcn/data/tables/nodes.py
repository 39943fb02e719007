"""Read the nodes: in one pass over their table, or from the edges if there is no such table."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from vrgcn.data.tables.columns import NodeColumns
from vrgcn.data.tables.feature_files import Features, add_rows
from vrgcn.data.tables.features import UNKNOWN_NODE, FeatureColumns, open_features
from vrgcn.data.tables.ids import EndColumns, IdReader, NodeIds, ids_of_edges, whole_numbers
from vrgcn.data.tables.labels import ClassLabels, label_reader
from vrgcn.data.tables.numbers import Numbers
from vrgcn.data.tables.problems import Problems
from vrgcn.data.tables.reading import Table
from vrgcn.data.tables.spec import ImportSpec
from vrgcn.data.tables.splits import NONE, SplitReader, draw_split
from vrgcn.files.mistakes import InputError
from vrgcn.files.setting_names import COLUMN, setting
from vrgcn.files.wording import counted


@dataclass(frozen=True)
class Nodes:
    """The nodes of a graph.

    labels: None if there are none
    split: (nodes,) 0 train, 1 val, 2 test, -1 none; None if there is no split
    features: None if they are still to be written
    added: number of nodes, at the end, that only the edges name
    notes: remarks about the nodes for the user
    """

    ids: NodeIds
    labels: ClassLabels | Numbers | None = None
    split: NDArray[np.int8] | None = None
    features: Features | None = None
    added: int = 0
    notes: list[str] = field(default_factory=list)


def read_nodes(
    table: Table,
    columns: NodeColumns,
    features: FeatureColumns,
    classes: list[str] | None,
    spec: ImportSpec,
    folder: Path,
    on_rows: Callable[[str, int], None],
    problems: Problems,
    given_split: NDArray[np.int64] | None = None,
) -> Nodes:
    """Read ids, labels, split and features of all nodes, and write the features to `folder`.

    classes: the classes that count; None for all that the labels hold
    problems: collects the errors of the table, while reading continues
    given_split: of the nodes, in place of a column
    """
    ids = IdReader(table, columns.id, spec.tidy_ids, problems)
    labels = label_reader(table, columns.label, spec, problems) if columns.label else None
    split = None
    if columns.split is not None and spec.ratio is None and given_split is None:
        split = SplitReader(table, columns.split, spec.missing, problems)
    features.fit(on_rows)
    with ExitStack() as stack:
        out = None
        if features.columns:
            out = stack.enter_context(features.files(folder))
        for start, batch in table.batches(columns.used):
            ids.add(start, batch)
            if labels is not None:
                labels.add(start, batch)
            if split is not None:
                split.add(start, batch)
            if out is not None:
                out.append(features.rows(start, batch))
            on_rows(table.name, start + len(batch))
    known_ids = ids.finish()
    known_labels = labels.finish() if labels is not None else None
    if isinstance(known_labels, ClassLabels) and classes is None:
        known_labels = known_labels.known_of_some()
    codes, notes = split.finish(known_labels) if split is not None else (None, [])
    if given_split is not None and known_labels is not None:
        codes = np.where(known_labels.known, given_split, NONE).astype(np.int8)
    notes += features.notes()
    if isinstance(known_labels, ClassLabels) and classes is not None:
        known_labels, strange = known_labels.under(classes)
        notes += _strange_classes(table, columns, strange)
        if codes is not None:
            codes[~known_labels.known] = NONE
    if spec.ratio is not None and known_labels is not None:
        codes = draw_split(known_labels, spec.ratio, spec.split_seed)
    written = out.written(features.names) if out is not None else None
    return Nodes(known_ids, known_labels, codes, written, notes=notes)


def add_unknown(
    nodes: Nodes,
    ends: Sequence[EndColumns],
    spec: ImportSpec,
    mean: NDArray[np.float32] | None,
    folder: Path,
    on_rows: Callable[[str, int], None],
) -> Nodes:
    """Add the nodes that only the edges name: without labels, in no split, with the mean of every
    dense feature and none of the sparse ones.

    mean: (width,) means of the features; None to use those of `nodes`
    """
    named = ids_of_edges(ends, spec.tidy_ids, on_rows)
    new = named.chosen(pa.array(np.flatnonzero(nodes.ids.places(named.text) < 0)))
    if not len(new):
        return nodes
    features = nodes.features
    if features is not None:
        row = (features.mean if mean is None else mean)[: features.dense].copy()
        last = features.dense - 1
        if features.names is not None and last >= 0 and features.names[last] == UNKNOWN_NODE:
            row[-1] = 1
            varying = features.constant != last
            features = replace(features, constant=features.constant[varying])
        add_rows(folder, features, row, len(new))
    split = nodes.split
    tables = ", ".join(dict.fromkeys(end.table.name for end in ends))
    return replace(
        nodes,
        ids=nodes.ids.with_more(new),
        labels=None if nodes.labels is None else nodes.labels.with_more(len(new)),
        split=None if split is None else np.append(split, np.full(len(new), NONE, np.int8)),
        features=features,
        added=len(new),
        notes=[
            *nodes.notes,
            f"{tables}: {'name' if len(ends) > 1 else 'names'} {counted(len(new), 'node')} that "
            f"{spec.nodes} does not have, "
            f"added without labels: {', '.join(map(repr, new.own[:3].to_pylist()))}"
            f"{', ...' if len(new) > 3 else ''}",
        ],
    )


def _strange_classes(table: Table, columns: NodeColumns, strange: dict[str, int]) -> list[str]:
    if not strange:
        return []
    shown = ", ".join(map(repr, list(strange)[:3])) + (", ..." if len(strange) > 3 else "")
    nodes = counted(sum(strange.values()), "label")
    return [
        f"{table.name}: column {columns.label[0]!r}: {nodes} of classes that the graph of "
        f"{setting('like')} does not have count as unknown: {shown}"
    ]


def check_split(table: Table, columns: NodeColumns, spec: ImportSpec) -> None:
    """Refuse a split, and settings about labels, if there is no label column."""
    if columns.label:
        return
    if spec.task != "auto":
        raise InputError(
            f"{setting('task')}: {table.name} has no column 'label'; give "
            f"{setting('label', COLUMN)}"
        )
    if spec.label_delimiter is not None:
        raise InputError(
            f"{setting('label_delimiter')}: {table.name} has no column 'label'; give "
            f"{setting('label', COLUMN)}"
        )
    if spec.ratio is not None:
        raise InputError(
            f"{setting('ratio')}: {table.name} has no label column to split by; give "
            f"{setting('label')}"
        )
    if spec.missing and columns.split is None:
        raise InputError(
            f"{setting('missing')}: is about labels and splits, and {table.name} has no column of "
            f"either; give {setting('label', COLUMN)}"
        )
    if columns.split is not None:
        raise InputError(
            f"{table.name} has the split column {columns.split!r} and no label column; say which "
            f"it is with {setting('label')}, or leave the split aside with "
            f"{setting('drop', columns.split, typed=repr(columns.split))}"
        )


def nodes_of_edges(
    ends: Sequence[EndColumns], spec: ImportSpec, on_rows: Callable[[str, int], None]
) -> Nodes:
    """Return the nodes that the edges name, in the order of their ids.

    With a file of features, ids that are all valid row numbers of the file are taken as row
    numbers. Every row is then a node, even one that no edge names.
    """
    ids = ids_of_edges(ends, spec.tidy_ids, on_rows)
    if spec.features_file is not None:
        rows = len(open_features(spec.features_file))
        numbers = whole_numbers(ids.text)
        if numbers is not None and len(numbers):
            values = numbers.to_numpy()
            if values.min() >= 0 and values.max() < rows:
                ids = NodeIds(pa.array(np.arange(rows)).cast(pa.string()))
    return Nodes(ids)
