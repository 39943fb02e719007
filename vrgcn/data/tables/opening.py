"""Open the tables of an import and find the role of each of their columns.

A single table of nodes and one of edges are one kind and one relation, both called "". All errors
that the first rows show are reported at once, before the long reading begins.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from vrgcn.data.tables.columns import (
    EdgeColumns,
    NodeColumns,
    check_asked_for,
    check_dropped,
    edge_columns,
    edge_features,
    node_columns,
)
from vrgcn.data.tables.encoders.encoder import Encoder
from vrgcn.data.tables.features import open_features
from vrgcn.data.tables.narrowing import Narrowing, naming, naming_file
from vrgcn.data.tables.nodes import check_split
from vrgcn.data.tables.problems import Collected, KnownError
from vrgcn.data.tables.proposal import Proposal, propose, rows_of
from vrgcn.data.tables.reading import Table, check_headerless, open_table
from vrgcn.data.tables.recipe import Recipe
from vrgcn.data.tables.recipe_file import Recipes, read_recipes
from vrgcn.data.tables.rows import ROW, NumberedRows
from vrgcn.data.tables.schema import RelationFile
from vrgcn.data.tables.spec import ImportSpec
from vrgcn.files.setting_names import setting

Plan = Callable[[str, list[tuple[str, str, str]]], None]
Opener = Callable[[Path, str, str | None, bool], Table]  # called like `open_table`
_READING = ("delimiter", "headerless", "headerless_nodes", "decimal", "tidy_ids", "unknown_nodes")


@dataclass(frozen=True)
class KindSource:
    """The nodes of one kind.

    spec: the settings of its table alone
    table, columns: None if the nodes are those that the edges name
    encoders: encoders of the feature columns
    marked: a feature marks the nodes that the table lacks
    recipe: how the same kind was imported before; None without --like
    """

    name: str
    spec: ImportSpec
    table: Table | None = None
    columns: NodeColumns | None = None
    encoders: Sequence[Encoder] = ()
    marked: bool = False
    recipe: Recipe | None = None

    @property
    def owner(self) -> str:
        """The file that has the ids, for errors."""
        return str(self.spec.nodes or self.spec.features_file)


@dataclass(frozen=True)
class RelationSource:
    """A table of edges.

    file: the kinds at its ends, and the name of its relation
    encoders: encoders of the columns that become features of the nodes at the ends
    """

    file: RelationFile
    spec: ImportSpec
    table: Table
    columns: EdgeColumns
    encoders: Sequence[Encoder] = ()
    recipe: Recipe | None = None


@dataclass(frozen=True)
class Source:
    """The opened tables.

    labelled: the kind that has the labels; None if there are none
    like: whether the features are those of an earlier import
    """

    spec: ImportSpec
    kinds: Sequence[KindSource]
    relations: Sequence[RelationSource]
    labelled: str | None
    like: bool

    @property
    def named(self) -> bool:
        return self.spec.schema.named

    def tables(self) -> Iterator[Table]:
        """All tables, those of nodes first; each once."""
        every = [kind.table for kind in self.kinds] + [each.table for each in self.relations]
        found = {table.name: table for table in every if table is not None}
        return iter(found.values())


def open_source(spec: ImportSpec, on_plan: Plan, opener: Opener = open_table) -> Source:
    """Open the tables and find the roles of their columns; report all their errors at once."""
    recipes = read_recipes(spec.like, spec.decimal) if spec.like is not None else None
    asked = spec  # the user's settings, without those that --like adds
    if recipes is not None:
        spec = _with_recipes(spec, recipes)
    found = Collected()
    with found.step():
        if not spec.schema.named:
            check_asked_for(asked)
    tables = _open_tables(spec, opener, found)
    narrowing = None
    if len(tables) == len(spec.schema.relations) + sum(
        path is not None for path in spec.schema.kinds.values()
    ):
        with found.step():
            if not spec.schema.named:
                check_dropped(list(tables.values()), asked.drop)
        with found.step():
            _check_headers(asked)
        with found.step():
            narrowing = Narrowing(spec, {_owner(key): table for key, table in tables.items()})
    elif not spec.schema.named:
        narrowing = Narrowing(spec, {})
    if narrowing is None:
        found.raise_if_any()
        raise AssertionError("errors were raised")
    return _Roles(spec, tables, narrowing, recipes, found).source(on_plan)


Key = tuple[str, str]  # "edges" and the title of a relation, or "nodes" and a kind


def _owner(key: Key) -> str:
    return key[1]


def _open_tables(spec: ImportSpec, opener: Opener, found: Collected) -> dict[Key, Table]:
    schema, tables = spec.schema, {}
    opened: dict[Path, Table] = {}
    for relation in schema.relations:
        with found.step():
            table = opened.get(relation.path)
            if table is None:
                with naming_file("edges", relation.title, relation.path):
                    table = opener(relation.path, "edges", spec.delimiter, not spec.headerless)
                opened[relation.path] = table
            tables["edges", relation.title] = table
    for kind, path in schema.kinds.items():
        if path is None:
            continue
        with found.step():
            if kind in schema.rows:
                tables["nodes", kind] = opened[path]
            else:
                header = not spec.headerless_nodes
                with naming_file("nodes", kind, path):
                    tables["nodes", kind] = opener(path, "nodes", spec.delimiter, header)
    return tables


def _check_headers(spec: ImportSpec) -> None:
    files = [("headerless", spec.headerless, each.path) for each in spec.schema.relations]
    files += [
        ("headerless_nodes", spec.headerless_nodes, path)
        for path in spec.schema.kinds.values()
        if path is not None
    ]
    for name, said, path in files:
        if said:
            check_headerless(path, name)


def _with_recipes(spec: ImportSpec, recipes: Recipes) -> ImportSpec:
    """Return the settings with the values of an earlier import for those that were not given."""
    if not spec.schema.named and list(recipes) == [""]:
        return recipes[""].applied(spec)
    own = {*spec.schema.kinds, *(relation.title for relation in spec.schema.relations)}
    origin = next(iter(recipes.values())).origin
    if own != set(recipes):
        had = ", ".join(sorted(set(recipes) - {""})) or "one table of nodes and one of edges"
        raise ValueError(
            f"{setting('like')}: {origin} was made of {had}; name the same kinds and relations, "
            f"and not {', '.join(sorted(own - {''})) or 'tables without names'}"
        )
    first = next(iter(recipes.values()))
    usual = {name: ImportSpec.__dataclass_fields__[name].default for name in _READING}
    taken = {name: first.options[name] for name in _READING if getattr(spec, name) == usual[name]}
    return replace(spec, **taken)


class _Roles:
    """Finds the columns of all tables, and collects the errors."""

    def __init__(
        self,
        spec: ImportSpec,
        tables: Mapping[Key, Table],
        narrowing: Narrowing,
        recipes: Recipes | None,
        found: Collected,
    ) -> None:
        self._spec = spec
        self._tables = tables
        self._narrowing = narrowing
        self._recipes = recipes
        self._found = found
        self._proposals: list[tuple[str, Proposal]] = []

    def source(self, on_plan: Plan) -> Source:
        schema, found = self._spec.schema, self._found
        rows = {kind: self._ends_of_rows(kind) for kind in schema.rows}
        relations = []
        for file in schema.relations:
            with found.step(), naming(schema.short(file)):
                relations.append(self._relation(file, rows))
        kinds = []
        for kind in schema.kinds:
            with found.step(), naming(kind):
                kinds.append(self._kind(kind, rows.get(kind)))
        if len(schema.kinds) == len(kinds) == 1 and not schema.named:
            self._spec = kinds[0].spec
        self._show(on_plan)
        found.raise_if_any()
        labelled = self._narrowing.labelled if schema.named else ""
        return Source(self._spec, kinds, relations, labelled, self._recipes is not None)

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
        recipe = self._recipe(file.title)
        if not self._spec.schema.named:
            for_edges = recipe.for_edges(spec) if recipe is not None else spec
            return RelationSource(file, spec, table, edge_columns(table, for_edges), (), recipe)
        if recipe is not None:
            column = spec.relation_column or recipe.relation_column
            spec = recipe.applied_to_edges(spec)
            object.__setattr__(spec, "relation_column", column)
        check_asked_for(spec)
        columns = edge_columns(table, spec, (file.source, file.target))
        if recipe is not None:
            columns = columns.with_features([encoder.column for encoder in recipe.encoders])
            return RelationSource(file, spec, table, columns, recipe.encoders, recipe)
        proposal = propose(table, edge_features(table, columns, spec), spec, edges=True)
        columns = columns.with_features([each.column for each in proposal.encoders])
        self._proposals.append((self._spec.schema.short(file), proposal))
        return RelationSource(file, spec, table, columns, proposal.encoders)

    def _kind(self, kind: str, ends: EdgeColumns | None) -> KindSource:
        schema, recipe = self._spec.schema, self._recipe(kind)
        if schema.kinds[kind] is None:
            spec = self._narrowing.of_kind(kind)
            if spec.features_file is not None:
                open_features(spec.features_file)
            return KindSource(kind, spec, recipe=recipe)
        table = self._table("nodes", kind)
        spec = self._narrowing.of_kind(kind)
        if ends is not None:
            table = NumberedRows(table)
            spec = replace(spec, id=ROW, drop=(*spec.drop, ends.source, ends.target))
        if spec.features_file is not None:
            open_features(spec.features_file)
        labelled = not schema.named or kind == self._narrowing.labelled
        if schema.named and recipe is not None:
            spec = recipe.applied(spec)
        if schema.named:
            check_asked_for(spec)
        if recipe is not None:
            spec = recipe.with_columns(spec, table)
            own = [encoder.column for encoder in recipe.encoders]
            columns = node_columns(table, spec, own, labelled)
            if labelled:
                check_split(table, columns, spec)
            if columns.label:
                recipe.check_labels(table, columns.label, spec)
            return KindSource(kind, spec, table, columns, recipe.encoders, recipe.marked, recipe)
        columns = node_columns(table, spec, labelled=labelled)
        if labelled:
            check_split(table, columns, spec)
        proposal = propose(table, columns.features, spec)
        self._proposals.append((kind, proposal))
        encoders = proposal.encoders
        marked = spec.unknown_nodes == "add" and bool(encoders or spec.features_file)
        return KindSource(kind, spec, table, columns.without(proposal.left_out), encoders, marked)

    def _table(self, name: str, owner: str) -> Table:
        if (name, owner) not in self._tables:
            raise KnownError
        return self._tables[name, owner]

    def _recipe(self, owner: str) -> Recipe | None:
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
