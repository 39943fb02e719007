"""The settings of each of several tables, from settings that name columns as KIND.COLUMN.

A column without a name before it is meant of every table that has it. With a single table all
settings are its own. Names of kinds and relations that do not exist, and columns that no table
has, are refused together.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from vrgcn.data.databases.url import Place
from vrgcn.data.tables.columns import dropped, shown_columns
from vrgcn.data.tables.dated.settings import WITHOUT_ROWS
from vrgcn.data.tables.overrides import matches
from vrgcn.data.tables.problems import Collected
from vrgcn.data.tables.reading import Table
from vrgcn.data.tables.schema import ImportSchema, arrays_of
from vrgcn.data.tables.spec import ONE_COLUMN, ImportSpec
from vrgcn.files.mistakes import InputError
from vrgcn.files.setting_names import Placeholder, columns_of, setting
from vrgcn.graph.kinds import ONE

_OF_NODES = ("id", "label", "split")
_OF_EDGES = ("source", "target", "weight", "relation_column")
_OF_BOTH = ("drop", "features", "column", "fill", "keep")
COLUMN_SETTINGS = (*_OF_NODES, *_OF_EDGES, *_OF_BOTH)
# Settings about labels, which one kind has.
_OF_LABELS = ("task", "label_delimiter", "missing", "ratio", "split_seed")
_DEFAULTS: dict[str, Any] = {
    name: ImportSpec.__dataclass_fields__[name].default for name in _OF_LABELS
}


@contextmanager
def naming(owner: str) -> Iterator[None]:
    """Inside, messages name columns as OWNER.COLUMN; as they are if there is one table."""
    with columns_of(owner, COLUMN_SETTINGS):
        yield


@contextmanager
def naming_file(name: str, owner: str, path: Place | None) -> Iterator[None]:
    """Add the setting that names a file of several to its errors."""
    try:
        yield
    except (InputError, FileNotFoundError) as error:
        if not owner or type(error) not in (InputError, FileNotFoundError):
            raise
        raise type(error)(f"{error} ({setting(name, f'{owner}={path}')})") from None


class Narrowing:
    """Divides the settings of an import among its tables.

    tables: the opened tables by kind or by the title of a relation; a kind may have none
    labelled: the kind that has the labels, if there are any; None if there are none
    """

    def __init__(self, spec: ImportSpec, tables: Mapping[str, Table]) -> None:
        self._spec = spec
        self._schema: ImportSchema = spec.schema
        self._tables = tables
        self._arrays = arrays_of(spec.features_file) if self.named else {}
        self._own: dict[str, dict[str, list[str]]] = {}
        self.labelled: str | None = None if self.named else ONE
        if self.named:
            self._divide()

    @property
    def named(self) -> bool:
        return self._schema.named

    def of_kind(self, kind: str) -> ImportSpec:
        """Return the settings of the table of a kind."""
        if not self.named:
            return self._spec
        path = self._schema.kinds[kind]
        if path is None:
            return self._without_table(kind)
        others: dict[str, Any] = {"source": None, "target": None, "weight": None}
        others |= {} if kind == self.labelled else _DEFAULTS
        array = self._arrays.get(kind)
        return replace(
            self._spec,
            **self._alone(path),
            **self._columns(kind, (*_OF_NODES, *_OF_BOTH)),
            **others,
            features_file=array,
        )

    def _without_table(self, kind: str) -> ImportSpec:
        """Return the settings of a kind whose nodes are those that edges name."""
        names = ("features", "column", "max_categories", "text_seed", "headerless_nodes")
        none: dict[str, Any] = {
            **{name: ImportSpec.__dataclass_fields__[name].default for name in names},
            **{"id": None, "label": (), "split": None, "drop": (), "unknown_nodes": None},
            **{"source": None, "target": None, "weight": None, **_DEFAULTS},
            **self._alone(Path(kind)),
            "fill": tuple(self._own["fill"].get(kind, ())),
            "keep": (),
        }
        array = self._arrays.get(kind)
        return replace(self._spec, **none | {"nodes": None}, features_file=array)

    def of_relation(self, title: str) -> ImportSpec:
        """Return the settings of a table of edges."""
        if not self.named:
            return self._spec
        path = next(r.path for r in self._schema.relations if r.title == title)
        task = self._spec.task_rows
        twin = title if task is None else task.twin(title)
        own = self._columns(twin, (*_OF_EDGES, *_OF_BOTH))
        own["relation_column"] = None  # see relation_column: it is a question of several relations
        none: dict[str, Any] = {"id": None, "label": (), "split": None, "features_file": None}
        return replace(self._spec, **self._alone(path) | own, **none, **_DEFAULTS)

    def relation_column(self, title: str) -> str | None:
        """Return the column of a table of edges that names the relation of each edge."""
        if not self.named:
            return None
        column: str | None = self._columns(title, ("relation_column",))["relation_column"]
        return column

    def of_rows(self, kind: str) -> ImportSpec:
        """Return the settings of a table of edges whose rows are the nodes of a kind."""
        path = self._schema.kinds[kind]
        own = self._columns(kind, ("source", "target", "drop"))
        none: dict[str, Any] = {"id": None, "label": (), "split": None, "weight": None}
        none |= {"features": (), "column": (), "fill": (), "keep": ()}
        assert path is not None
        return replace(
            self._spec, **self._alone(path), **own, **none, **_DEFAULTS, features_file=None
        )

    @staticmethod
    def _alone(path: Place) -> dict[str, Any]:
        own = {"nodes": path, "edges": path, "rows_as_nodes": (), "relation_column": None}
        return own | WITHOUT_ROWS

    def _columns(self, owner: str, names: Sequence[str]) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for name in names:
            given = self._own[name].get(owner, [])
            if name not in ONE_COLUMN:
                found[name] = tuple(given)
                continue
            if len(given) > 1:
                both = " and ".join(setting(name, f"{owner}.{column}") for column in given)
                raise InputError(f"{both}: give one of them")
            found[name] = given[0] if given else None
        return found

    def _divide(self) -> None:
        wrong = Collected()
        for name in COLUMN_SETTINGS:
            self._own[name] = {}
            for text in _texts(getattr(self._spec, name)):
                with wrong.step():
                    for owner, own in self._owners(name, text).items():
                        self._own[name].setdefault(owner, []).append(own)
        for kind in self._arrays:
            if kind not in self._schema.kinds:
                with wrong.step():
                    raise self._no_owner("features_file", f"{kind}={self._arrays[kind]}", kind)
        wrong.raise_if_any()
        self.labelled = self._find_labelled()
        self._check_labels()

    def _owners(self, name: str, text: str) -> dict[str, str]:
        """Return the text of a setting for each table that it is meant of, without its name."""
        if name == "fill" and "=" not in text:  # for all columns
            return dict.fromkeys((*self._tables, *self._arrays), text)
        head, dot, rest = text.partition(".")
        owners = self._schema.owners()
        titles = [title for title in owners if text.startswith(f"{title}.")]
        if titles:  # a title may have dots of its own
            head = max(titles, key=len)
            rest = text[len(head) + 1 :]
        if dot and head in owners:
            self._check_owner(name, text, owners[head])
            return {owners[head]: rest}
        column = text.rpartition("=")[0] if name == "fill" else text.partition("=")[0]
        column = text if name not in ("column", "fill", "keep") else column
        having = {
            owner: text
            for owner, table in self._tables.items()
            if self._fits(name, owner) and any(matches(c, column) for c in table.columns)
        }
        if having:
            return having
        if dot:
            raise self._no_owner(name, text, head)
        have = "; ".join(
            f"{owner} has {shown_columns(table.columns)}"
            for owner, table in self._tables.items()
            if self._fits(name, owner)
        )
        close = get_close_matches(column, [c for t in self._tables.values() for c in t.columns], 1)
        hint = f"; did you mean {close[0]!r}?" if close else ";"
        raise InputError(f"{setting(name)}: no table has a column {column!r}{hint} {have}")

    def _fits(self, name: str, owner: str) -> bool:
        """True if a setting may be about this table."""
        kind = owner in self._schema.kinds
        if owner in self._schema.rows and name in ("source", "target"):
            return True
        return name in _OF_BOTH or (name in _OF_NODES) == kind

    def _check_owner(self, name: str, text: str, owner: str) -> None:
        if not self._fits(name, owner):
            what, have = "nodes", ", ".join(self._schema.kinds)
            if name in _OF_EDGES:
                what, have = "edges", ", ".join(r.title for r in self._schema.relations)
            raise InputError(
                f"{setting(name, text)}: is about tables of {what}, and {owner!r} is none; there "
                f"are {have}"
            )
        if owner not in self._tables:
            raise InputError(
                f"{setting(name, text)}: the kind {owner!r} has no table, its nodes are those that "
                f"edges name; give {setting('nodes', f'{owner}=FILE')}"
            )

    def _no_owner(self, name: str, text: str, head: str) -> InputError:
        known = list(self._schema.owners())
        close = get_close_matches(head, known, 1)
        hint = f"did you mean {close[0]}? There" if close else "there"
        return InputError(
            f"{setting(name, text)}: there is no kind or relation {head!r}; {hint} are "
            f"{', '.join(known)}"
        )

    def _find_labelled(self) -> str | None:
        given = list(self._own["label"])
        word = setting("label", Placeholder("KIND.COLUMN"))
        if not given:
            drop, task = self._own["drop"], self._spec.task_rows
            given = [
                kind
                for kind in self._schema.kinds
                if kind in self._tables
                and (task is None or kind == task.kind)
                and "label" in self._tables[kind].columns
                and not dropped("label", drop.get(kind, []))
            ]
        if len(given) <= 1:
            return given[0] if given else None
        files = " and ".join(f"{kind} ({self._tables[kind].name})" for kind in given)
        raise InputError(
            f"{setting('label')}: {files} both have labels; one kind of nodes is predicted: give "
            f"{word}, such as {setting('label', f'{given[0]}.{self._label_of(given[0])}')}"
        )

    def _label_of(self, kind: str) -> str:
        return next(iter(self._own["label"].get(kind, [])), "label")

    def _check_labels(self) -> None:
        """Refuse a split of another kind than the labels, and settings about labels without any."""
        strange = [kind for kind in self._own["split"] if kind != self.labelled]
        if strange and self.labelled is not None:
            column = self._own["split"][strange[0]][0]
            raise InputError(
                f"{setting('split', f'{strange[0]}.{column}')}: the labels are those of "
                f"{self.labelled!r} ({self._tables[self.labelled].name}), and so must the split be"
            )
        given = [n for n in _OF_LABELS if getattr(self._spec, n) != _DEFAULTS[n]]
        given += ["split"] if strange else []
        if self.labelled is None and given:
            raise InputError(
                f"{setting(given[0])}: is about labels, and no table has a column 'label'; give "
                f"{setting('label', Placeholder('KIND.COLUMN'))}"
            )


def _texts(given: Any) -> list[str]:
    if given is None:
        return []
    return [given] if isinstance(given, str) else list(given)
