"""An import proposed from the keys of a database: tables become kinds of nodes and relations.

A table whose primary key is two foreign keys is a relation, and so is one that has exactly two
foreign keys and that no other table refers to. Any other table that has a foreign key, or that
another refers to, is a kind of nodes, and each of its foreign keys a relation.

For rows with a time of their own, a kind that has a foreign key and a column of dates is dated, and
a relation that has one is a kind instead. The table of these rows is no kind: a row would see its
own target.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from vrgcn.data.databases.source import ForeignKey, Keys, inside, query_of, quoted
from vrgcn.data.databases.url import TableUrl
from vrgcn.files.mistakes import InputError
from vrgcn.files.setting_names import setting

_BYTES = re.compile(r"blob|binary|bytea", re.IGNORECASE)
_DATE = re.compile(r"date|time", re.IGNORECASE)  # in types; and in names of texts
_WHEN = re.compile(r"^(date|time|timestamp|datetime|at|day|when)$|date$|time$|_(at|on)$", re.I)
_ID = re.compile(r"[ _]?(id|ID|Id)$")

Empty = Callable[[Keys, Sequence[str]], bool]  # whether some rows lack one of these columns


@dataclass
class ImportProposal:
    """Settings of an import that keys suggest.

    rows: a line for each table: its name, what it becomes, its columns
    notes: what is left out, and why
    """

    nodes: dict[str, str] = field(default_factory=dict)
    edges: dict[str, str] = field(default_factory=dict)
    id: list[str] = field(default_factory=list)
    source: list[str] = field(default_factory=list)
    target: list[str] = field(default_factory=list)
    drop: list[str] = field(default_factory=list)
    dated: list[str] = field(default_factory=list)
    rows: list[tuple[str, str, str]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def settings(self, url: TableUrl) -> dict[str, list[str]]:
        """Return the settings of the import of a database, by name."""
        apart = not any(what in self.nodes.values() for what in self.edges.values())
        if len(self.nodes) == len(self.edges) == 1 and apart and not self.drop:
            return self._of_one_kind(url)
        return {
            "nodes": [f"{kind}={url.of(what)}" for kind, what in self.nodes.items()],
            "edges": [f"{title}={url.of(what)}" for title, what in self.edges.items()],
            **self._columns(),
        }

    def _of_one_kind(self, url: TableUrl) -> dict[str, list[str]]:
        """A table of nodes and one of edges need no names."""
        [nodes], [edges] = self.nodes.values(), self.edges.values()
        columns = {name: [own.partition(".")[2]] for name, [own] in self._columns().items()}
        return {"nodes": [str(url.of(nodes))], "edges": [str(url.of(edges))], **columns}

    def _columns(self) -> dict[str, list[str]]:
        given = {"id": self.id, "source": self.source, "target": self.target}
        given |= {"dated": self.dated, "drop": self.drop}
        return {name: columns for name, columns in given.items() if columns}


def propose(tables: Sequence[Keys], empty: Empty, task: str | None = None) -> ImportProposal:
    """Return the import that the keys of all tables suggest.

    task: the kind that rows with a time of their own become; None if there are none
    """
    return _Proposing(tables, empty, task).proposal()


class _Proposing:
    def __init__(self, tables: Sequence[Keys], empty: Empty, task: str | None) -> None:
        self._tables = {each.table: each for each in tables}
        self._dated = task is not None
        self._empty = empty
        self._found = ImportProposal()
        self._foreign = {each.table: self._usable(each) for each in tables}
        # By which of its columns other tables refer to a table.
        self._referred: dict[str, Counter[str]] = {each.table: Counter() for each in tables}
        for foreign in self._foreign.values():
            for key in foreign:
                self._referred[key.table][key.keys[0]] += 1
        self._names = dict(zip(self._tables, _unique(self._tables), strict=True))
        asked = [name for name, kind in self._names.items() if kind == task]
        self._asked = {name for name in asked if not self._referred[name]}

    def proposal(self) -> ImportProposal:
        proposal = self._found
        kept = {name: table for name, table in self._tables.items() if name not in self._asked}
        relations = {name: self._ends(table) for name, table in kept.items()}
        used = {key.table for ends in relations.values() if ends for key in ends}
        for name, table in self._tables.items():
            columns = ", ".join(table.columns)
            ends = relations.get(name)
            if name in self._asked:
                proposal.rows.append((name, f"the rows of {setting('rows')}, no kind", columns))
            elif ends:
                title = "-".join(
                    (self._names[ends[0].table], self._names[name], self._names[ends[1].table])
                )
                self._add_relation(table, title, ends)
                proposal.rows.append((name, f"relation {title}", columns))
            elif self._foreign[name] or self._referred[name] or name in used:
                own = self._add_kind(table)
                dates = [date.partition(".") for date in proposal.dated]
                told = "".join(f", dated by {d}" for k, _, d in dates if k == self._names[name])
                told += "".join(f", relation {each}" for each in own)
                becomes = f"kind {self._names[name]}{told}"
                proposal.rows.append((name, becomes, columns))
            else:
                proposal.rows.append((name, "left out: no key leads to or from it", columns))
        if not proposal.edges:
            raise InputError(
                "has no foreign keys that relate its tables, and tables are "
                f"{', '.join(self._tables) or 'none'}: name them with {setting('nodes')} and "
                f"{setting('edges')}"
            )
        return proposal

    def _usable(self, table: Keys) -> list[ForeignKey]:
        """The foreign keys of one column, to tables that are there."""
        usable = []
        for key in table.foreign:
            if len(key.columns) > 1:
                self._found.notes.append(
                    f"{table.table}: the foreign key ({', '.join(key.columns)}) has several "
                    "columns and is left out; a query can make one of them"
                )
            elif key.table not in self._tables or not key.keys:
                self._found.notes.append(
                    f"{table.table}: the foreign key {key.columns[0]} refers to {key.table}, which "
                    "is not there, and is left out"
                )
            else:
                usable.append(key)
        return usable

    def _ends(self, table: Keys) -> list[ForeignKey]:
        """The foreign keys at the ends of a table that is a relation; empty for other tables."""
        foreign = self._foreign[table.table]
        if self._dated and _dates(table):
            return []
        by_column = {key.columns[0]: key for key in foreign}
        if len(table.primary) == 2 and {*table.primary} <= {*by_column}:
            return [by_column[column] for column in table.primary]
        alone = not self._referred[table.table]
        return foreign if len(foreign) == len(table.foreign) == 2 and alone else []

    def _add_relation(self, table: Keys, title: str, ends: Sequence[ForeignKey]) -> None:
        columns = [key.columns[0] for key in ends]
        what = _what(table.table)
        if not {*columns} <= table.needed and self._empty(table, columns):
            full = " AND ".join(f"{quoted(column)} IS NOT NULL" for column in columns)
            what = f"SELECT * FROM {quoted(table.table)} WHERE {full}"
            self._found.notes.append(f"{table.table}: rows that lack an end are left out")
        self._found.edges[title] = what
        self._found.source.append(f"{title}.{columns[0]}")
        self._found.target.append(f"{title}.{columns[1]}")
        self._drop(table, title, [*table.primary, *self._keys_of(table)], columns)

    def _add_kind(self, table: Keys) -> list[str]:
        """Add a kind and the relations of its foreign keys; return their titles."""
        kind, proposal = self._names[table.table], self._found
        identity, what = self._id(table), _what(table.table)
        if identity is None:
            identity = _free("row_id", table.columns)
            what = (
                f"SELECT row_number() OVER () AS {quoted(identity)}, * FROM {quoted(table.table)}"
            )
            proposal.notes.append(f"{table.table}: has no key of one column; its rows are numbered")
            proposal.id.append(f"{kind}.{identity}")
        elif identity != ("id" if "id" in table.columns else next(iter(table.columns))):
            proposal.id.append(f"{kind}.{identity}")
        proposal.nodes[kind] = what
        self._add_date(kind, table)
        titles: list[str] = []
        ends: list[str] = []
        for key in self._foreign[table.table]:
            if self._id(self._tables[key.table]) != key.keys[0]:
                proposal.notes.append(
                    f"{table.table}: the foreign key {key.columns[0]} refers to "
                    f"{key.table}.{key.keys[0]}, which is not its id, and is left out"
                )
                continue
            title = self._title(kind, key, titles)
            proposal.edges[title] = what
            proposal.target.append(f"{title}.{key.columns[0]}")
            titles.append(title)
            ends.append(key.columns[0])
        self._drop(table, kind, [*table.primary, *self._keys_of(table)], [identity, *ends])
        return titles

    def _add_date(self, kind: str, table: Keys) -> None:
        dates = _dates(table) if self._dated else []
        named = [key for key in self._foreign[table.table] if key.table != table.table]
        if dates and named:
            self._found.dated.append(f"{kind}.{dates[0]}")
            if dates[1:]:
                self._found.notes.append(
                    f"{table.table}: dated by {dates[0]!r}; it also has "
                    f"{', '.join(map(repr, dates[1:]))}: date it by the column from which on the "
                    "whole row is known"
                )

    def _id(self, table: Keys) -> str | None:
        """The column that names the rows of a table; None if there is none."""
        referred = self._referred[table.table]
        if len(table.primary) == 1 and (not referred or table.primary[0] in referred):
            return table.primary[0]
        return referred.most_common(1)[0][0] if referred else None

    def _title(self, kind: str, key: ForeignKey, taken: Sequence[str]) -> str:
        column = key.columns[0]
        for name in (_ID.sub("", column), column, f"{column}_key"):
            title = f"{kind}-{_plain(name)}-{self._names[key.table]}"
            if _plain(name) and title not in taken:
                break
        return title

    def _keys_of(self, table: Keys) -> Iterator[str]:
        for key in table.foreign:
            yield from key.columns

    def _drop(self, table: Keys, owner: str, keys: Sequence[str], used: Sequence[str]) -> None:
        """Leave out keys that are no ends and no ids, and columns of bytes: they are no
        features."""
        odd = [name for name, kind in table.columns.items() if _BYTES.search(kind)]
        for column in dict.fromkeys([*keys, *odd]):
            if column not in used:
                self._found.drop.append(f"{owner}.{column}")


def _dates(table: Keys) -> list[str]:
    """Columns of dates, those first that are called as dates of the rows are."""
    found = [
        column
        for column, kind in table.columns.items()
        if _DATE.search(kind) or (re.search("text|char", kind, re.I) and _WHEN.search(column))
    ]
    keys = {*table.primary, *(column for key in table.foreign for column in key.columns)}
    return sorted((c for c in found if c not in keys), key=lambda c: not _WHEN.search(c))


def _what(table: str) -> str:
    """A table as an address names it: in quotes if dots or a query could be seen in it."""
    return table if re.fullmatch(r"[^\W\d]\w*", table) else quoted(table)


def lacking(key: Keys, columns: Sequence[str]) -> str:
    """Return the query that has a row if some row lacks one of the columns."""
    gaps = " OR ".join(f"{quoted(column)} IS NULL" for column in columns)
    return f"SELECT 1 AS found FROM {inside(query_of(quoted(key.table)))} WHERE {gaps} LIMIT 1"


def _plain(name: str) -> str:
    return re.sub(r"\W", "_", name).strip("_")


def _unique(names: Mapping[str, object]) -> list[str]:
    """Names of kinds, which have letters, digits and _ alone: all different."""
    taken: list[str] = []
    for name in names:
        taken.append(_free(_plain(name) or "table", dict.fromkeys(taken)))
    return taken


def _free(name: str, taken: Mapping[str, object]) -> str:
    """Return a name that is not taken: the name itself, or with a number."""
    number, free = 1, name
    while free in taken:
        number += 1
        free = f"{name}_{number}"
    return free
