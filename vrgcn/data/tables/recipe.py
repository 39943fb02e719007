"""The recipe of an import, stored beside its graph (`recipe_file`), so that later tables are
imported the same way."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vrgcn.data.tables.columns import EdgeColumns, NodeColumns, dropped
from vrgcn.data.tables.encoders.encoder import Encoder
from vrgcn.data.tables.labels import column_per_class, label_task
from vrgcn.data.tables.reading import Table
from vrgcn.data.tables.spec import ImportSpec
from vrgcn.files.mistakes import InputError
from vrgcn.files.setting_names import setting
from vrgcn.files.wording import counted
from vrgcn.tasks import find_task

# Options that also apply to a later import, unless it is given others.
OPTIONS = (
    *("delimiter", "headerless", "headerless_nodes", "decimal", "tidy_ids", "unknown_nodes"),
    *("drop", "missing", "label_delimiter", "task", "directed", "fill"),
)
_NODE_OPTIONS = ("headerless_nodes", "unknown_nodes", "label_delimiter", "task")


@dataclass(frozen=True)
class ImportRecipe:
    """How the tables of an import became a graph.

    origin: the folder of the graph, for errors
    options: values of options by their names in `ImportSpec`
    id, label, split: columns of the nodes; id is None if there was no table of nodes
    source, target, weight: columns of the edges
    features: source of the features: "columns", "file" or "edges"
    encoders: encoders of the feature columns, in their order
    marked: a last feature marks nodes that the table lacks
    mean: (width,) means of the features
    classes, task: classes and task of the labels, see `Graph`
    relation_column: column that names the relation of each edge
    relations: names of the relations in a table of edges of several kinds
    marks: for each of them whether nodes without edges have a mark, see `EdgeMeans`
    """

    origin: str
    options: dict[str, Any]
    id: str | None
    label: tuple[str, ...]
    split: str | None
    source: str
    target: str
    weight: str | None
    features: str
    encoders: Sequence[Encoder]
    marked: bool
    mean: NDArray[np.float32]
    classes: list[str] | None
    task: str
    relation_column: str | None = None
    relations: Sequence[str] = ()
    marks: dict[str, list[bool]] = field(default_factory=dict)

    @staticmethod
    def of(
        spec: ImportSpec,
        node: NodeColumns | None,
        edge: EdgeColumns | None,
        encoders: Sequence[Encoder],
        marked: bool,
        mean: NDArray[np.float32],
        classes: list[str] | None,
        task: str,
    ) -> ImportRecipe:
        """Make the recipe of an import."""
        features = "file" if spec.features_file is not None else "columns" if encoders else "edges"
        options = {name: getattr(spec, name) for name in OPTIONS}
        if features != "file":
            options["fill"] = ()  # the encoder of a column stores its fill
        return ImportRecipe(
            origin=str(spec.out),
            options=options,
            id=node.id if node is not None else None,
            label=tuple(node.label) if node is not None else (),
            split=node.split if node is not None else None,
            source=edge.source if edge is not None else "",
            target=edge.target if edge is not None else "",
            weight=edge.weight if edge is not None else None,
            features=features,
            encoders=encoders,
            marked=marked,
            mean=mean,
            classes=classes,
            task=task,
        )

    def check_files(self, spec: ImportSpec) -> None:
        """Refuse an import with a table of nodes or a file of features where there was none, or the
        other way round."""
        if (spec.nodes is None) != (self.id is None):
            nodes = setting("nodes")
            had, give = (
                ("had no", f"leave {nodes} out") if spec.nodes else ("had a", f"give {nodes}")
            )
            raise InputError(
                f"{setting('like')}: the import of {self.origin} {had} table of nodes; {give}"
            )
        if (spec.features_file is None) != (self.features != "file"):
            how = "did not take" if spec.features_file else "took"
            raise InputError(
                f"{setting('like')}: the import of {self.origin} {how} its features from a "
                f"{setting('features_file')}"
            )

    def applied(self, spec: ImportSpec) -> ImportSpec:
        """Return the options of a kind's table, with the recipe's values for options that were not
        given."""
        self.check_files(spec)
        defaults = {field.name: field.default for field in fields(ImportSpec)}
        stored = self.options | {"id": self.id}
        if spec.nodes is None:
            stored = {name: value for name, value in stored.items() if name not in _NODE_OPTIONS}
        taken = {n: v for n, v in stored.items() if getattr(spec, n) == defaults[n]}
        return replace(spec, like=None, **taken)

    def applied_to_edges(self, spec: ImportSpec) -> ImportSpec:
        """Return the options of one relation's table, with the recipe's values for options that
        were not given."""
        columns = {"source": self.source, "target": self.target, "weight": self.weight}
        taken: dict[str, Any] = {n: getattr(spec, n) or value for n, value in columns.items()}
        drop = spec.drop or self.options["drop"]
        if taken["weight"] is None:  # not so in the table of nodes, whose `weight` may be a label
            drop = (*drop, "weight")
        return replace(spec, like=None, drop=drop, **taken)

    def with_columns(self, spec: ImportSpec, table: Table) -> ImportSpec:
        """Return the options with the recipe's label and split columns, if `table` has them.

        The nodes of a later table need no labels, but they need every column that features are made
        of.
        """
        missing = [e.column for e in self.encoders if e.column not in table.columns]
        if missing:
            shown = ", ".join(map(repr, missing[:10])) + (", ..." if len(missing) > 10 else "")
            raise InputError(
                f"{table.name} lacks {len(missing)} of the {len(self.encoders)} columns that the "
                f"features of {self.origin} were made of: {shown}"
            )
        changed = [
            f"{table.name}: column {e.column!r} holds {table.kind(e.column)}, which cannot be read "
            f"as {e.kind}, as the features of {self.origin} were made of it"
            for e in self.encoders
            if not e.reads(table.kind(e.column))
        ]
        if changed:
            raise InputError("\n".join(changed))
        label, split, drop = spec.label, spec.split, spec.drop
        if not label and all(c in table.columns and not dropped(c, drop) for c in self.label):
            label = self.label
        if split is None and spec.ratio is None:
            found = self.split in table.columns and not dropped(str(self.split), drop)
            split = self.split if label and found else None
        if not label:
            # Without labels a split says nothing, and there is no task to name.
            drop = (*drop, *filter(None, [self.split, "split"]))
            # A feature column that is called `label` is no label.
            drop += ("label",) if any(e.column == "label" for e in self.encoders) else ()
            spec = replace(spec, task="auto", label_delimiter=None, missing=())
        return replace(spec, label=label, split=split, drop=drop)

    def check_labels(self, table: Table, columns: Sequence[str], spec: ImportSpec) -> None:
        """Refuse label columns of another task, and columns for only some of the classes: every
        node would count as not in the others."""
        if not self.label:  # the recipe has no labels, so any labels are allowed
            return
        task = label_task(table, columns, spec)
        if task != self.task:
            ours, theirs = find_task(self.task).label, find_task(task).label
            raise InputError(
                f"{setting('label')}: {self.origin} has {ours}, and {_shown(columns)} of "
                f"{table.name} would be {theirs}; its label columns are "
                f"{_shown(self.label)}"
            )
        gone = [name for name in self.classes or [] if name not in columns]
        if gone and column_per_class(table, columns, spec):
            raise InputError(
                f"{setting('label')}: {self.origin} has the classes {_shown(self.classes or [])}, "
                f"and of {table.name} {setting('label')} names {_shown(columns)}, without "
                f"{_shown(gone)}; name a column for each class, or leave {setting('label')} out"
            )

    def lacking_labels(self, table: Table, drop: Sequence[str]) -> list[str]:
        """Return a note if some, but not all, of the recipe's label columns are missing: none is
        used then."""
        gone = [c for c in self.label if c not in table.columns or dropped(c, drop)]
        if len(gone) in (0, len(self.label)):
            return []
        left = [c for c in self.label if c not in gone]
        return [
            f"{table.name}: without {_shown(gone)}, {counted(len(gone), 'label column')} of "
            f"{len(self.label)} that {self.origin} has, the others are ignored and no node is "
            f"labelled: {_shown(left)}"
        ]


def _shown(names: Sequence[str]) -> str:
    return ", ".join(map(repr, names[:5])) + (", ..." if len(names) > 5 else "")
