"""Find the role of every column of every table of an import, and propose the features."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from vrgcn.data.databases.url import TableUrl
from vrgcn.data.tables.columns import (
    END_NAMES,
    EdgeColumns,
    asked_columns,
    check_asked_for,
    edge_columns,
    edge_features,
    is_called,
    node_columns,
    shown_columns,
)
from vrgcn.data.tables.dated.times import ReadingTimes, Times
from vrgcn.data.tables.encoders.encoder import Encoder
from vrgcn.data.tables.features import open_features
from vrgcn.data.tables.keeping import Keep
from vrgcn.data.tables.kept import kept_columns
from vrgcn.data.tables.narrowing import Narrowing, naming
from vrgcn.data.tables.nodes import check_split
from vrgcn.data.tables.overrides import matches
from vrgcn.data.tables.problems import Collected, KnownError
from vrgcn.data.tables.proposal import Proposal, propose, rows_of
from vrgcn.data.tables.reading import Table, keys_of
from vrgcn.data.tables.recipe import ImportRecipe
from vrgcn.data.tables.recipe_file import Recipes
from vrgcn.data.tables.rows import ROW, NumberedRows
from vrgcn.data.tables.schema import RelationFile
from vrgcn.data.tables.sources import KindSource, OpenedTables, RelationSource
from vrgcn.data.tables.spec import ImportSpec
from vrgcn.files.mistakes import InputError
from vrgcn.files.setting_names import COLUMN, setting

Plan = Callable[[str, list[tuple[str, str, str]]], None]
Key = tuple[str, str]  # "edges" and the title of a relation, or "nodes" and a kind


class Roles:
    """Finds the columns of all tables, and collects the errors."""

    def __init__(
        self,
        spec: ImportSpec,
        tables: Mapping[Key, Table],
        narrowing: Narrowing,
        recipes: Recipes | None,
        found: Collected,
        on_rows: Callable[[str, int], None],
    ) -> None:
        self._spec = spec
        self._on_rows = on_rows
        self._times: Times | None = None
        self._tables = tables
        self._narrowing = narrowing
        self._recipes = recipes
        self._found = found
        self._proposals: list[tuple[str, Proposal]] = []
        self._notes: list[str] = []
        self._left_out = False  # a relation that is made of the label

    def source(self, on_plan: Plan) -> OpenedTables:
        schema, found = self._spec.schema, self._found
        rows = {kind: self._ends_of_rows(kind) for kind in schema.rows}
        plain: list[RelationSource] = []
        for file in schema.relations:
            with found.step(), naming(schema.short(file)):
                plain.append(self._relation(file, rows))
        with found.step():
            plain = self._without_labels(plain)
        self._times = self._read_times(plain)
        relations = []
        for relation in plain:
            with found.step(), naming(schema.short(relation.file)):
                relations.append(self._with_features(self._keeping(relation), plain))
        kinds = []
        named = {kind for each in plain for kind in (each.file.source, each.file.target)}
        for kind in schema.kinds:
            if kind not in named and self._left_out:
                self._notes.append(f"{kind}: no relation leads to or from it now; it is left out")
                continue
            with found.step(), naming(kind):
                kinds.append(self._keeping_nodes(self._kind(kind, rows.get(kind), plain)))
        if kinds and not schema.named:
            self._spec = kinds[0].spec
        self._show(on_plan)
        found.raise_if_any()
        notes = [note for _, each in self._proposals for note in each.notes]
        source = OpenedTables(
            *(self._spec, kinds, relations, self._narrowing.labelled, self._recipes is not None),
            notes=[*self._notes, *notes, *(self._times.notes if self._times else ())],
            times=self._times,
        )
        self._check_kept(source)
        return source

    def _ends_of_rows(self, kind: str) -> EdgeColumns | None:
        """Return the ends in a table of edges whose rows become nodes."""
        title = self._spec.schema.rows[kind]
        source, *_, target = title.split("-")
        with self._found.step(), naming(kind):
            spec = self._narrowing.of_rows(kind)
            return edge_columns(self._tables["nodes", kind], spec, (source, target))
        return None

    def _relation(
        self, file: RelationFile, rows: Mapping[str, EdgeColumns | None]
    ) -> RelationSource:
        table = self._table("edges", file.title)
        made = next((kind for kind in (file.source, file.target) if kind in rows), None)
        if made is not None:
            ends = rows[made]
            if ends is None:
                raise KnownError
            numbered = NumberedRows(table)
            source = ROW if file.source == made else ends.source
            target = ROW if file.target == made else ends.target
            columns = EdgeColumns(source, target, None, [])
            return RelationSource(file, self._narrowing.of_rows(made), numbered, columns)
        spec = self._narrowing.of_relation(file.title)
        recipe = self._recipe(file.owner)
        column = self._narrowing.relation_column(file.title)
        if recipe is not None:
            column = column or recipe.relation_column
            spec = recipe.applied_to_edges(spec)
        if self._spec.schema.named:
            check_asked_for(spec)
        kind = next((k for k in (file.source, file.target) if self._is_table_of(k, file)), None)
        if kind is not None:
            table = NumberedRows(table) if self._is_numbered(kind) else table
            spec = self._with_ends(spec, file, kind, table)
        elif self._spec.task_rows is not None:
            spec = self._with_id_columns(spec, file, table)
        columns = edge_columns(table, spec, (file.source, file.target), column)
        return RelationSource(file, spec, table, columns, (), recipe, own=kind is not None)

    def _is_table_of(self, kind: str, file: RelationFile) -> bool:
        return self._spec.schema.named and self._spec.schema.kinds[kind] == file.path

    def _is_relation_of(self, kind: str, file: RelationFile) -> bool:
        """True if columns of a kind's table may be the ends of a relation: its edges are read from
        the same table, or from the same database if one of its ends is of the kind."""
        own, edges = self._spec.schema.kinds[kind], file.path
        if not (isinstance(own, TableUrl) and isinstance(edges, TableUrl)):
            return own == edges
        near = own.address == edges.address and kind in (file.source, file.target)
        return near or own == edges

    def _with_ends(
        self, spec: ImportSpec, file: RelationFile, kind: str, table: Table
    ) -> ImportSpec:
        """Return the settings in which the ids of a kind, whose table it is, are one end. Of a
        dated kind the other end is the column that is called as the other kind or as its ids are,
        and never one for being called `target`, as labels are."""
        end, other = ("source", "target") if file.source == kind else ("target", "source")
        ends: dict[str, Any] = {end: getattr(spec, end) or self._id_column(kind, table)}
        named = file.target if file.source == kind else file.source
        if self._spec.task_rows is not None and getattr(spec, other) is None:
            free = [column for column in table.columns if column not in ("id", ends[end])]
            id_column = self._id_column(named, self._tables.get(("nodes", named)))
            called = [column for column in free if is_called(column, named)]
            called = called or [column for column in free if column == id_column]
            ends |= {other: called[0]} if len(called) == 1 else {}
        return replace(spec, **ends)

    def _with_id_columns(self, spec: ImportSpec, file: RelationFile, table: Table) -> ImportSpec:
        """Return the settings in which columns of edges that are called as the ids of a kind are
        its ends, if none is called as the kind."""
        ends: dict[str, Any] = {}
        for end, kind in (("source", file.source), ("target", file.target)):
            column = self._id_column(kind, self._tables.get(("nodes", kind)))
            called = any(name == end or is_called(name, kind) for name in table.columns)
            if getattr(spec, end) is None and not called and column in table.columns:
                ends[end] = column
        return replace(spec, **ends) if len(set(ends.values())) == len(ends) else spec

    def _id_column(self, kind: str, table: Table | None) -> str:
        if table is None:
            return ""
        given = self._narrowing.of_kind(kind).id
        if given is None and self._is_numbered(kind):
            return ROW
        return given or ("id" if "id" in table.columns else table.columns[0])

    def _is_numbered(self, kind: str) -> bool:
        """True if the rows of a table of facts have no ids: its first column is their date or names
        another kind."""
        date, task = self._spec.dates.get(kind), self._spec.task_rows
        table = self._tables.get(("nodes", kind))
        if task is None or table is None or kind in self._spec.schema.rows:
            return False
        if self._narrowing.of_kind(kind).id is not None or "id" in table.columns:
            return kind == task.past
        if kind in task.kinds:
            return True
        first = table.columns[0]
        others = [other for other in self._spec.schema.kinds if other != kind]
        called = any(is_called(first, other) for other in others)
        dated = date is not None and first == date.column
        return dated or (called and not is_called(first, kind))

    def _read_times(self, relations: Sequence[RelationSource]) -> Times | None:
        """Read when the rows of dated tables became known, and how the task's rows are split."""
        task, found = self._spec.task_rows, self._found
        if task is None:
            return None
        tables = {
            kind: NumberedRows(table) if self._is_numbered(kind) else table
            for (name, kind), table in self._tables.items()
            if name == "nodes"
        }
        if self._narrowing.labelled is None and self._recipes is None:
            with found.step():
                raise InputError(
                    f"{task.path} has no column 'label'; give {setting('label', COLUMN)}, what is "
                    "to be predicted"
                )
        own = self._narrowing.of_kind(task.kind)
        split = own.split or next((c for c in tables[task.kind].columns if c == "split"), None)
        ids = {kind: self._id_column(kind, table) for kind, table in tables.items()}
        found.raise_if_any()
        reading = ReadingTimes(self._spec, tables, ids, self._on_rows, found)
        with found.step():
            return reading.read(relations, split)
        found.raise_if_any()
        return None

    def _is_dated(self, relation: RelationSource) -> bool:
        return self._times is not None and self._times.concerns(relation.file)

    def _without_labels(self, relations: Sequence[RelationSource]) -> list[RelationSource]:
        """Leave out the relations that are made of the label: their edges would tell it."""
        kind, left = self._narrowing.labelled, []
        spec = self._narrowing.of_kind(kind) if kind else None
        for each in relations:
            column = each.columns.target if each.file.source == kind else each.columns.source
            ours = spec is not None and kind in (each.file.source, each.file.target)
            if spec is None or not ours or column not in spec.label:
                left.append(each)
                continue
            title, told = each.file.title, f"its column {column!r} is the label of {kind!r}"
            if each.own:
                self._left_out = True
                self._notes.append(f"{title}: {told}, so that its edges would tell it: left out")
            else:
                left.append(each)
                self._notes.append(
                    f"{title}: {told}: if its edges tell the label, leave it out of "
                    f"{setting('edges')}"
                )
        if relations and not left:
            with self._found.step():
                raise InputError(
                    f"{setting('label')}: no relation is left without those that are made of the "
                    f"label; give {setting('edges')} with another"
                )
        return left

    def _keeping(self, relation: RelationSource) -> RelationSource:
        """Return the relation with the columns that are kept for each edge."""
        columns = relation.columns
        if isinstance(relation.table, NumberedRows):
            return relation
        ends = [columns.source, columns.target, *filter(None, [columns.relation])]
        keep = kept_columns(relation.table, relation.spec.keep, ends)
        if keep and self._is_dated(relation) and not relation.own:
            raise InputError(
                f"{setting('keep', keep[0].column)}: edges of dated kinds keep no columns; to make "
                f"each row a node, give {setting('rows_as_nodes')}"
            )
        keep = [] if self._is_dated(relation) else keep
        columns = replace(columns, kept=tuple(reader.column for reader in keep))
        return replace(relation, columns=columns, keep=keep)

    def _keeping_nodes(self, kind: KindSource) -> KindSource:
        """Return the kind with the columns that are kept for each node."""
        if kind.table is None or kind.columns is None:
            return kind
        return replace(kind, keep=kept_columns(kind.table, kind.spec.keep, [kind.columns.id]))

    def _check_kept(self, source: OpenedTables) -> None:
        """Refuse a setting that names a column that no table has."""
        tables = list(self._tables.values())
        for text in source.spec.keep if not source.named else ():
            if not any(Keep.parse(text).named(table.columns) for table in tables):
                have = "; ".join(f"{t.name} has {shown_columns(t.columns)}" for t in tables)
                raise InputError(f"{setting('keep', text)}: no table has such a column; {have}")

    def _with_features(
        self, relation: RelationSource, others: Sequence[RelationSource]
    ) -> RelationSource:
        """Return the relation with features of its columns. Ends of other relations in the same
        file make none, nor does the table of a kind, whose nodes have them already."""
        spec, columns, recipe = relation.spec, relation.columns, relation.recipe
        made = isinstance(relation.table, NumberedRows)
        if not self._spec.schema.named or made or (relation.own and not spec.features):
            return relation
        if self._is_dated(relation):  # a mean over all edges would tell of later ones
            return relation
        if recipe is not None:
            columns = columns.with_features([encoder.column for encoder in recipe.encoders])
            return replace(relation, columns=columns, encoders=recipe.encoders)
        same = [each for each in others if each.file.path == relation.file.path]
        ends = {end for each in same for end in (each.columns.source, each.columns.target)}
        chosen = edge_features(relation.table, columns, spec)
        chosen = [column for column in chosen if column not in ends or spec.features]
        splits = [reader.column for reader in relation.keep if reader.kind == "split"]
        chosen = [column for column in chosen if column not in splits]
        chosen = self._without_label(relation, chosen)
        keys = self._keys(relation.table, others)
        proposal = propose(relation.table, chosen, spec, edges=True, keys=keys)
        columns = columns.with_features([each.column for each in proposal.encoders])
        title = self._spec.schema.short(relation.file)
        dates = [each.column for each in proposal.encoders if each.kind == "date"]
        if self._times is not None and dates:
            raise InputError(
                f"{relation.table.name}: column {dates[0]!r} dates the edges, and rows would see "
                f"all of them at any time; make facts of them with "
                f"{setting('rows_as_nodes', title)} "
                f"{setting('dated', f'{relation.file.name}.{dates[0]}')}, or if they were always "
                f"known, give {setting('drop', dates[0])}"
            )
        self._proposals.append((title, proposal))
        return replace(relation, columns=columns, encoders=proposal.encoders)

    def _without_label(self, relation: RelationSource, chosen: Sequence[str]) -> list[str]:
        """Leave aside columns of edges that are called as the label of a node at an end."""
        kind, spec = self._narrowing.labelled, relation.spec
        if kind not in (relation.file.source, relation.file.target) or spec.features:
            return list(chosen)
        label = self._narrowing.of_kind(kind).label or ("label",)
        asked = asked_columns(spec)
        found = [column for column in chosen if column in label and column not in asked]
        for column in found:
            self._notes.append(
                f"{relation.table.name}: column {column!r} is called as the label of {kind!r} and "
                "could tell it: ignored"
            )
        return [column for column in chosen if column not in found]

    def _keys(self, table: Table, relations: Sequence[RelationSource]) -> set[str]:
        """Names of columns that are keys: those that a database names, and ends of relations."""
        ends = {end for each in relations for end in (each.columns.source, each.columns.target)}
        return (ends - END_NAMES) | keys_of(table)

    def _kind(
        self, kind: str, ends: EdgeColumns | None, relations: Sequence[RelationSource]
    ) -> KindSource:
        schema, recipe = self._spec.schema, self._recipe(kind)
        table = None if schema.kinds[kind] is None else self._table("nodes", kind)
        spec = self._narrowing.of_kind(kind)
        if spec.features_file is not None:
            open_features(spec.features_file)
        if table is not None and ends is not None:
            table = NumberedRows(table)
            spec = replace(spec, id=ROW, drop=(*spec.drop, ends.source, ends.target))
        elif table is not None and self._is_numbered(kind):
            table, spec = NumberedRows(table), replace(spec, id=ROW)
        if recipe is not None:
            spec = recipe.applied(spec)
        if table is None:
            return KindSource(kind, spec, recipe=recipe)
        spec = self._without_dates(kind, spec, table)
        labelled = kind == self._narrowing.labelled
        if schema.named:
            check_asked_for(spec)
            # A column that names nodes of another kind is a relation, and no feature.
            here = [each.columns for each in relations if self._is_relation_of(kind, each.file)]
            keys = {end for each in here for end in (each.source, each.target)} - {ROW}
            keys -= {
                spec.id,
                *END_NAMES,
                *asked_columns(spec),
                *spec.features,
                self._id_column(kind, table),
            }
            spec = replace(spec, drop=(*spec.drop, *sorted(keys)))
        chosen = None
        if recipe is not None:
            spec = recipe.with_columns(spec, table)
            chosen = [encoder.column for encoder in recipe.encoders]
        columns = node_columns(table, spec, chosen, labelled)
        if labelled:
            check_split(table, columns, spec)
        if recipe is not None:
            if columns.label:
                recipe.check_labels(table, columns.label, spec)
            return KindSource(kind, spec, table, columns, recipe.encoders, recipe.marked, recipe)
        learned = None
        if self._times is not None and columns.features:
            learned = self._times.learned(kind, table)
        keys = self._keys(table, relations)
        growing = self._times is not None and kind in self._times.values
        proposal = propose(learned or table, columns.features, spec, keys=keys, growing=growing)
        self._proposals.append((kind, proposal))
        encoders = proposal.encoders
        if self._times is not None:
            self._notes += self._times.later_columns(kind, table, encoders)
            self._check_always_known(kind, table, spec, encoders, relations)
        marked = spec.unknown_nodes == "add" and bool(encoders or spec.features_file)
        columns = columns.without(proposal.left_out)
        split = self._times.split if labelled and self._times and self._times.given_split else None
        return KindSource(
            *(kind, spec, table, columns, encoders, marked), learned=learned, split=split
        )

    def _check_always_known(
        self,
        kind: str,
        table: Table,
        spec: ImportSpec,
        encoders: Sequence[Encoder],
        relations: Sequence[RelationSource],
    ) -> None:
        """Refuse a kind that looks like one of facts, as it names others and has dates, and whose
        rows all rows of the task would see."""
        names = any(each.own and self._is_table_of(kind, each.file) for each in relations)
        asked = asked_columns(spec)
        dates = [each.column for each in encoders if each.kind == "date"]
        dates = [column for column in dates if column not in asked]
        if self._times is None or kind in self._times.values or not names or not dates:
            return
        raise InputError(
            f"{table.name}: column {dates[0]!r} dates the rows of {kind!r}, and rows of the task "
            f"would see all of them at any time; give {setting('dated', f'{kind}.{dates[0]}')}, or "
            f"if they were always known, {setting('column', f'{dates[0]}=date')}"
        )

    def _without_dates(self, kind: str, spec: ImportSpec, table: Table) -> ImportSpec:
        """Return the settings of a kind in which its date is no feature, and in which past targets
        have no other feature than the target."""
        task, date = self._spec.task_rows, self._spec.dates.get(kind)
        if task is None or date is None:
            return spec
        if kind == task.past:
            label = self._narrowing.of_kind(task.kind).label or ("label",)
            if not any(matches(column, name) for name in label for column in table.columns):
                raise KnownError  # the rows themselves lack it
            return replace(spec, features=label, fill=("mean",), column=(), drop=())
        aside = [date.column]
        if self._times is not None and self._times.given_split and kind == task.kind:
            aside += [column for column in table.columns if column == "split"]
        asked = {*asked_columns(spec), *spec.keep}
        return replace(spec, drop=(*spec.drop, *(c for c in aside if c not in asked)))

    def _table(self, name: str, owner: str) -> Table:
        if (name, owner) not in self._tables:
            raise KnownError
        return self._tables[name, owner]

    def _recipe(self, owner: str) -> ImportRecipe | None:
        return None if self._recipes is None else self._recipes[owner]

    def _show(self, on_plan: Plan) -> None:
        """Show the proposal: the columns of all tables, and the features that they become."""
        shown = [(owner, each) for owner, each in self._proposals if each.columns]
        if not self._spec.schema.named:
            for _, proposal in shown:
                on_plan(proposal.title, rows_of(proposal.columns))
            return
        order = {kind: place for place, kind in enumerate(self._spec.schema.kinds)}
        shown.sort(key=lambda item: order.get(item[0], len(order)))
        rows = [
            (f"{owner}.{column}", look, becomes)
            for owner, proposal in shown
            for column, look, becomes in rows_of(proposal.columns)
        ]
        if rows:
            on_plan("columns, by kind and relation", rows)
