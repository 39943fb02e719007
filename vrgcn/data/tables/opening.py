"""Open the tables of an import, and find the role of each of their columns (`roles`).

A single table of nodes and one of edges are one kind and one relation, both called "". All errors
that the first rows show are reported at once, before the long reading begins.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from vrgcn.data.databases.url import Place
from vrgcn.data.tables.columns import (
    check_asked_for,
    check_dropped,
)
from vrgcn.data.tables.narrowing import Narrowing, naming_file
from vrgcn.data.tables.problems import Collected
from vrgcn.data.tables.reading import Table, check_headerless
from vrgcn.data.tables.recipe_file import Recipes, read_recipes
from vrgcn.data.tables.roles import Key, Plan, Roles
from vrgcn.data.tables.sources import OpenedTables
from vrgcn.data.tables.spec import ImportSpec
from vrgcn.files.mistakes import InputError
from vrgcn.files.setting_names import setting

Opener = Callable[[Place, str, str | None, bool], Table]  # called like `open_table`
ONE_TABLE = "one table of nodes and one of edges"
_READING = ("delimiter", "headerless", "headerless_nodes", "decimal", "tidy_ids", "unknown_nodes")


def open_source(
    spec: ImportSpec, on_plan: Plan, opener: Opener, on_rows: Callable[[str, int], None]
) -> OpenedTables:
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
    return Roles(spec, tables, narrowing, recipes, found, on_rows).source(on_plan)


def _owner(key: Key) -> str:
    return key[1]


def _open_tables(spec: ImportSpec, opener: Opener, found: Collected) -> dict[Key, Table]:
    schema, tables = spec.schema, {}
    opened: dict[Place, Table] = {}
    own = [path for kind, path in schema.kinds.items() if kind not in schema.rows]
    for relation in schema.relations:
        with found.step():
            table = opened.get(relation.path)
            if table is None:
                nodes = schema.named and relation.path in own
                name, headerless = ("nodes" if nodes else "edges"), spec.headerless
                header = not (spec.headerless_nodes if nodes else headerless)
                with naming_file("edges", relation.title, relation.path):
                    table = opener(relation.path, name, spec.delimiter, header)
                opened[relation.path] = table
            tables["edges", relation.title] = table
    for kind, path in schema.kinds.items():
        if path is None:
            continue
        with found.step():
            if schema.named and path in opened:
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
    """Return the settings about reading with the values of an earlier import for those that were
    not given."""
    schema = spec.schema
    own = {*schema.kinds, *(relation.owner for relation in schema.relations)}
    first = next(iter(recipes.values()))
    if own != set(recipes):
        had = ", ".join(sorted(recipes)) if "" not in recipes else ONE_TABLE
        given = ", ".join(sorted(own)) if schema.named else "tables without names"
        raise InputError(
            f"{setting('like')}: {first.origin} was made of {had}; name the same kinds and "
            f"relations, and not {given}"
        )
    if not schema.named:
        recipes[""].check_files(spec)
    usual = {name: ImportSpec.__dataclass_fields__[name].default for name in _READING}
    taken = {name: first.options[name] for name in _READING if getattr(spec, name) == usual[name]}
    return replace(spec, **taken)
