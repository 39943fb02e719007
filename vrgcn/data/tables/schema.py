"""The kinds of nodes and the relations that the settings of an import name.

    --nodes user=users.csv item=items.parquet --edges user-bought-item=orders.csv

Without names there is one kind and one relation, both called "". A kind that only relations name
has no table: its nodes are the ids that edges name. This file imports no Arrow: the command line
checks the names before loading anything.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from vrgcn.data.databases.url import Place, TableUrl, is_url, place
from vrgcn.files.mistakes import InputError
from vrgcn.files.setting_names import FILE, Placeholder, setting

EDGES = "edges"  # the relation of a graph of one table
NODE = "node"  # the kind of a single table whose edges name their relations
REVERSE = "rev_"  # before the name of a relation: its reverse
_KIND = re.compile(r"\w+")
_EXAMPLE = "user-bought-item"
_SIMILAR = 0.75  # a kind without a table is taken for a misspelt one from here on


@dataclass(frozen=True)
class RelationFile:
    """A file of edges.

    source, target: kinds of the ends
    name: of the relation; None if a column of the file names the relation of each edge
    """

    source: str
    name: str | None
    target: str
    path: Place

    @property
    def title(self) -> str:
        """The name as the user writes it, such as user-bought-item; "" of the unnamed one."""
        return "-".join(part for part in (self.source, self.name, self.target) if part)

    @property
    def owner(self) -> str:
        """The name of its recipe; that of the relation in a graph of one table."""
        return self.title or EDGES


@dataclass(frozen=True)
class ImportSchema:
    """kinds: file of each kind by name, None if it has no table
    relations: the files of edges
    rows: kinds whose nodes are the rows of a file of edges, and the title of that file
    """

    kinds: dict[str, Place | None]
    relations: tuple[RelationFile, ...]
    rows: dict[str, str] = field(default_factory=dict)

    @property
    def named(self) -> bool:
        """True if there are kinds; False for one table of nodes and one of edges."""
        return "" not in self.kinds

    def owners(self) -> dict[str, str]:
        """Names by which settings name a table -> the kind, or the title of a file of edges.

        A relation may be called by its middle name where no kind and no other relation has it.
        """
        titles = [relation.title for relation in self.relations]
        middle = [relation.name or relation.title for relation in self.relations]
        short = {
            name: title
            for name, title in zip(middle, titles, strict=True)
            if middle.count(name) == 1
        }
        return short | {title: title for title in titles} | {kind: kind for kind in self.kinds}

    def short(self, relation: RelationFile) -> str:
        """The shortest name by which settings may name a file of edges."""
        title = relation.title
        name = relation.name or title
        return name if self.owners().get(name) == title else title


def parse_schema(
    nodes: Any, edges: Any, relation_column: str | None, rows_as_nodes: Sequence[str]
) -> ImportSchema:
    """Return the kinds and relations that the settings name, all mistakes in them as one error."""
    node_files, edge_files = files_of("nodes", nodes), files_of("edges", edges)
    if not edge_files:
        raise InputError(f"{setting('edges')}: needs a file of edges: {setting('edges', FILE)}")
    wrong = [*_twice("nodes", node_files), *_twice("edges", edge_files)]
    if set(node_files) | set(edge_files) <= {""}:
        if rows_as_nodes:
            wrong.append(f"{setting('rows_as_nodes')}: needs relations with names: {_give_names()}")
        if wrong:
            raise InputError("\n".join(wrong))
        path = node_files[""][0] if node_files else None
        if relation_column is None:
            return ImportSchema({"": path}, (RelationFile("", None, "", edge_files[""][0]),))
        return ImportSchema({NODE: path}, (RelationFile(NODE, None, NODE, edge_files[""][0]),))
    wrong += _unnamed(node_files, edge_files)
    named = {name: paths[0] for name, paths in node_files.items() if name}
    kinds: dict[str, Place | None] = {**named}
    wrong += [
        f"{setting('nodes')}: {kind!r} is no name for a kind: letters, digits and _ alone"
        for kind in kinds
        if not _KIND.fullmatch(kind)
    ]
    relations = []
    for name, paths in edge_files.items():
        try:
            relations += [_relation(name, paths[0], relation_column)] if name else []
        except InputError as error:
            wrong.append(str(error))
    wrong += _strangers(relations, kinds)
    for relation in relations:
        for kind in (relation.source, relation.target):
            kinds.setdefault(kind, None)
    wrong += _clashes(relations)
    wrong += [] if wrong else _alone(kinds, relations)
    if relation_column is not None and all(relation.name for relation in relations) and relations:
        wrong.append(
            f"{setting('relation_column')}: is for files that hold several relations, named by "
            f"their ends alone, such as {setting('edges', 'user-item=events.csv')}"
        )
    if wrong:
        raise InputError("\n".join(wrong))
    return _with_rows(ImportSchema(kinds, tuple(relations)), rows_as_nodes)


def files_of(name: str, given: Any) -> dict[str, list[Place]]:
    """The files of a setting by the names before `=`; "" for a file without one.

    given: a path or the address of a table, several words NAME=FILE, or names and files in a dict
    """
    if given is None:
        return {}
    if isinstance(given, Mapping):
        words: list[Any] = [f"{key}={path}" for key, path in given.items()]
    else:
        words = list(given) if isinstance(given, tuple | list) else [given]
    for word in words:
        if not isinstance(word, str | Path | TableUrl):
            raise TypeError(f"{name}: {word!r} is not the path of a file or folder")
    files: dict[str, list[Place]] = {}
    for word in words:
        owner, equals, path = str(word).partition("=")
        # A single file may have = in its name, and so may an address.
        if not equals or is_url(str(word)) or (len(words) == 1 and Path(str(word)).is_file()):
            owner, path = "", word
        if equals and not path:
            raise InputError(f"{setting(name)}: there is no file after {word}")
        with named_setting(name):
            files.setdefault(owner.strip(), []).append(place(path))
    return files


def arrays_of(given: Any) -> dict[str, Path]:
    """The files of features of a setting by the names before `=`; refuse tables of databases."""
    files = {owner: paths[0] for owner, paths in files_of("features_file", given).items()}
    for path in files.values():
        if isinstance(path, TableUrl):
            raise InputError(f"{setting('features_file')}: {path} is no .npy file")
    return {owner: path for owner, path in files.items() if isinstance(path, Path)}


@contextmanager
def named_setting(name: str) -> Iterator[None]:
    """Put the setting that names a table before errors about its address."""
    try:
        yield
    except InputError as error:
        raise InputError(f"{setting(name)}: {error}") from None


def _twice(name: str, files: Mapping[str, list[Place]]) -> Iterator[str]:
    for owner, paths in files.items():
        if len(paths) == 1:
            continue
        shown = " and ".join(map(str, paths))
        if owner:
            what = "kind" if name == "nodes" else "relation"
            yield f"{setting(name)}: names the {what} {owner} twice, as {shown}; join the files"
        else:
            yield f"{setting(name)}: {shown}: give each file a name: {_give_names()}"


def _unnamed(nodes: Mapping[str, list[Place]], edges: Mapping[str, list[Place]]) -> Iterator[str]:
    """Yield an error for a file without a name beside files that have one."""
    kind = next(filter(None, nodes), "KIND")
    for name, files, example in (("nodes", nodes, "KIND"), ("edges", edges, f"{kind}-NAME-{kind}")):
        if len(files.get("", [])) == 1:
            path = files[""][0]
            yield (
                f"{setting(name)}: {path} has no name, and other files have one; give "
                f"{setting(name, f'{example}={path}')}"
            )


def _give_names() -> str:
    nodes = setting("nodes", ("user=users.csv", "item=items.csv"))
    return f"{nodes} {setting('edges', f'{_EXAMPLE}=orders.csv')}"


def _relation(word: str, path: Place, relation_column: str | None) -> RelationFile:
    parts = word.split("-")
    if len(parts) >= 3 and all(parts):
        return RelationFile(parts[0], "-".join(parts[1:-1]), parts[-1], path)
    if len(parts) == 2 and all(parts) and relation_column is not None:
        return RelationFile(parts[0], None, parts[1], path)
    column = setting("relation_column", Placeholder("COLUMN"))
    two = f", or if a column of {path} names the relations, {column}" if len(parts) == 2 else ""
    raise InputError(
        f"{setting('edges')}: {word}={path}: a relation is SOURCE-NAME-TARGET, such as "
        f"{_EXAMPLE}, and {word!r} has {len(parts)} of the three parts{two}"
    )


def _strangers(relations: Sequence[RelationFile], kinds: Mapping[str, Any]) -> Iterator[str]:
    """Yield an error for an end that is called almost as a kind with a table is."""
    for relation in relations:
        for kind in dict.fromkeys((relation.source, relation.target)):
            close = get_close_matches(kind, kinds, n=1, cutoff=_SIMILAR)
            if kind not in kinds and close:
                right = relation.title.replace(kind, close[0])
                yield (
                    f"{setting('edges')}: {relation.title}={relation.path} names the kind "
                    f"{kind!r}, and {setting('nodes')} has {', '.join(kinds)}: did you mean "
                    f"{setting('edges', f'{right}={relation.path}')}? If not, give "
                    f"{setting('nodes', f'{kind}=FILE')}, or another name"
                )


def _clashes(relations: Sequence[RelationFile]) -> Iterator[str]:
    """Yield an error for a relation that is called as the reverse of another."""
    reverses = {f"{r.target}-{REVERSE}{r.name}-{r.source}": r.title for r in relations if r.name}
    for relation in relations:
        if relation.title in reverses:
            yield (
                f"{setting('edges')}: {relation.title} is the reverse of "
                f"{reverses[relation.title]}, which is made with it; leave {relation.path} out"
            )


def _alone(kinds: Mapping[str, Place | None], relations: Sequence[RelationFile]) -> Iterator[str]:
    """Yield an error for a kind that no relation names: its nodes would have no neighbours."""
    ends = {kind for relation in relations for kind in (relation.source, relation.target)}
    for kind, path in kinds.items():
        if kind not in ends and relations:
            titles = ", ".join(relation.title for relation in relations)
            yield (
                f"{setting('nodes')}: {kind}={path}: no relation leads to or from the kind "
                f"{kind!r}; {setting('edges')} has {titles}"
            )


def _with_rows(schema: ImportSchema, names: Sequence[str]) -> ImportSchema:
    """Return the schema in which rows of some files of edges are kinds: a-NAME-b becomes the kind
    NAME with the relations a-from-NAME and NAME-to-b."""
    owners, rows = schema.owners(), {}
    for name in names:
        title = owners.get(name)
        found = [r for r in schema.relations if r.title == title and r.name]
        if not found:
            have = ", ".join(r.title for r in schema.relations if r.name)
            raise InputError(
                f"{setting('rows_as_nodes')}: {name!r} is no relation; there are {have}"
            )
        kind = str(found[0].name)
        if kind in schema.kinds or not _KIND.fullmatch(kind):
            raise InputError(
                f"{setting('rows_as_nodes')}: a kind cannot be called {kind!r}, as the relation "
                "is; rename the relation"
            )
        rows[kind] = found[0].title
    relations: list[RelationFile] = []
    for relation in schema.relations:
        if relation.title in rows.values():
            kind, path = str(relation.name), relation.path
            relations.append(RelationFile(relation.source, "from", kind, path))
            relations.append(RelationFile(kind, "to", relation.target, path))
        else:
            relations.append(relation)
    kinds = schema.kinds | {str(k): _path_of(schema, title) for k, title in rows.items()}
    return ImportSchema(kinds, tuple(relations), rows)


def _path_of(schema: ImportSchema, title: str) -> Place:
    return next(relation.path for relation in schema.relations if relation.title == title)
