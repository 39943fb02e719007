"""Settings of dated tables and of the rows of a task, as `ImportSpec` has them.

The rows become a kind of nodes with the relation `of` to each of their entities, and past targets,
where it is said when they are known, another. This file imports no Arrow: the command line checks
the settings before loading anything.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vrgcn.data.databases.url import Place, TableUrl
from vrgcn.data.tables.schema import files_of
from vrgcn.files.mistakes import InputError
from vrgcn.files.setting_names import COLUMN, Placeholder, setting

if TYPE_CHECKING:
    from vrgcn.data.tables.spec import ImportSpec

LAST = (1, 5)
OF = "of"  # the relation of rows to their entities
_UNITS = {"s": 1, "min": 60, "h": 3600, "d": 86_400, "w": 7 * 86_400}
_DURATION = re.compile(rf"(\d+(?:\.\d+)?) ?({'|'.join(_UNITS)})")
# Settings about rows, as they are where there are none.
WITHOUT_ROWS: dict[str, Any] = {
    **{"rows": (), "dated": (), "last": LAST},
    **dict.fromkeys(("at", "known_after", "train_until", "val_until")),
}


@dataclass(frozen=True)
class DatedColumn:
    """A column of dates. format: as in `strptime`; "" to see it from the first rows"""

    column: str
    format: str = ""

    @staticmethod
    def parse(name: str, text: str) -> DatedColumn:
        """Read COLUMN or COLUMN=date:FORMAT of a setting."""
        column, equals, what = text.partition("=")
        kind, _, form = what.partition(":")
        if not column or (equals and (kind != "date" or not form)):
            raise InputError(
                f"{setting(name)}: must be COLUMN or COLUMN=date:FORMAT, such as "
                f"date=date:%d.%m.%Y; not {text!r}"
            )
        return DatedColumn(column, form)


@dataclass(frozen=True)
class TaskRows:
    """The rows of a task.

    kind: of the nodes that they become
    path: their table
    entities: kinds whose nodes the rows name
    at: the column of their times
    last: how many facts a row sees, one relation for each number
    known_after: seconds from a row's time until its target is known; None if past targets are not
        used
    """

    kind: str
    path: Place
    entities: tuple[str, ...]
    at: DatedColumn
    last: tuple[int, ...]
    known_after: float | None

    @property
    def past(self) -> str | None:
        """The kind of past targets."""
        return None if self.known_after is None else f"past_{self.kind}"

    @property
    def kinds(self) -> tuple[str, ...]:
        """The kinds whose nodes are these rows."""
        return tuple(filter(None, (self.kind, self.past)))

    def twin(self, title: str) -> str:
        """The relation whose settings a relation has: past targets name the same entities."""
        return title.removeprefix("past_") if title.startswith(f"{self.past}-") else title


def parse_task(spec: ImportSpec) -> TaskRows | None:
    """Return the rows of the task that the settings name; None if they name none."""
    files = files_of("rows", spec.rows)
    if not files:
        _check_without_rows(spec)
        return None
    if "" in files:
        [path, *_] = files[""]
        raise InputError(
            f"{setting('rows')}: say of which kind the rows are: "
            f"{setting('rows', f'KIND={path}')}, such as {setting('rows', f'driver={path}')}"
        )
    paths = list(dict.fromkeys(path for each in files.values() for path in each))
    if len(paths) > 1:
        raise InputError(
            f"{setting('rows')}: names {' and '.join(map(str, paths))}: the rows of a task are one "
            "table; join the files, and give a column that says train, val and test"
        )
    [path] = paths
    if spec.at is None:
        raise InputError(f"{setting('rows')}: give {setting('at', COLUMN)}, the time of each row")
    if spec.ratio is not None:
        raise InputError(
            f"{setting('ratio')}: training would see rows that are later than those of the test; "
            f"give {setting('train_until', Placeholder('DATE'))}, or a column `split`"
        )
    if spec.split is not None and spec.train_until is not None:
        raise InputError(f"{setting('split')} and {setting('train_until')}: give one of them")
    if spec.val_until is not None and spec.train_until is None:
        raise InputError(f"{setting('val_until')}: needs {setting('train_until')}")
    return TaskRows(
        kind_of_rows(path),
        path,
        tuple(files),
        DatedColumn.parse("at", spec.at),
        _counts(spec.last),
        None if spec.known_after is None else _seconds("known_after", spec.known_after),
    )


def _check_without_rows(spec: ImportSpec) -> None:
    """Refuse settings about rows, and dates that nothing would use."""
    for name, default in WITHOUT_ROWS.items():
        given = getattr(spec, name)
        if name not in ("rows", "dated") and given not in (default, [*LAST]):
            raise InputError(
                f"{setting(name)}: is about rows with a time of their own; give "
                f"{setting('rows', Placeholder('KIND=FILE'))}"
            )
    if spec.dated:
        raise InputError(
            f"{setting('dated')}: says what rows with a time of their own may see; give "
            f"{setting('rows', Placeholder('KIND=FILE'))}, or keep dates with {setting('keep')}"
        )


def kind_of_rows(path: Place) -> str:
    """Return the name of the kind that the rows of a table become."""
    name = path.stem if isinstance(path, Path) else _last_part(path)
    return re.sub(r"\W+", "_", name).strip("_") or "rows"


def _last_part(url: TableUrl) -> str:
    plain = re.fullmatch(r"[\w.\"]+", url.what)
    return url.what.rpartition(".")[2] if plain else "rows"


def _counts(given: Sequence[int]) -> tuple[int, ...]:
    if not given or min(given) < 1 or len(set(given)) < len(given):
        raise InputError(
            f"{setting('last')}: must be different numbers of facts, each at least 1, such as "
            f"{setting('last', LAST)}; not {' '.join(map(str, given)) or 'nothing'}"
        )
    return tuple(given)


def _seconds(name: str, text: str) -> float:
    found = _DURATION.fullmatch(str(text).strip())
    if found is None:
        raise InputError(
            f"{setting(name)}: must be a number and a unit, one of {', '.join(_UNITS)}, such as "
            f"{setting(name, '30d')}; not {text!r}"
        )
    seconds = float(found[1]) * _UNITS[found[2]]
    if not seconds:
        raise InputError(
            f"{setting(name, text)}: must be longer than 0, or a row would see its own target; "
            f"{setting(name, '1s')} is enough"
        )
    return seconds


def with_rows(task: TaskRows | None, nodes: Any, edges: Any) -> tuple[Any, Any]:
    """Return the files of kinds and relations with those that the rows of a task become."""
    if task is None:
        return nodes, edges
    kinds, relations = files_of("nodes", nodes), files_of("edges", edges)
    for name, files in (("nodes", kinds), ("edges", relations)):
        for owner, paths in files.items():
            if task.path in paths:
                raise InputError(
                    f"{setting(name, f'{owner}={task.path}')}: {setting('rows')} names the same "
                    "table, so that a row would see itself, and its target; leave it out of "
                    f"{setting(name)}: with {setting('known_after', '1d')} targets of earlier rows "
                    "are facts"
                )
    # A kind without a table is one of the ids that rows name; past targets are its facts.
    known = {*kinds, *(title.split("-")[end] for title in relations for end in (0, -1))} - {""}
    if task.kind in known:
        raise InputError(
            f"{setting('rows')}: the rows of {task.path} become the kind {task.kind!r}, and there "
            "is one of this name; rename one of them"
        )
    for entity in task.entities:
        close = get_close_matches(entity, known, n=1)
        if entity not in known and (close or task.past is None):
            hint = f"did you mean {close[0]!r}? There" if close else "there"
            raise InputError(
                f"{setting('rows', f'{entity}={task.path}')}: there is no kind {entity!r}; {hint} "
                f"are {', '.join(sorted(known))}"
            )
    own = [f"{kind}={task.path}" for kind in task.kinds]
    keys = [f"{kind}-{OF}-{end}={task.path}" for kind in task.kinds for end in task.entities]
    return [*_words(kinds), *own], [*_words(relations), *keys]


def _words(files: Mapping[str, Sequence[Place]]) -> list[Any]:
    return [
        f"{owner}={path}" if owner else path for owner, paths in files.items() for path in paths
    ]


def parse_dates(spec: ImportSpec) -> dict[str, DatedColumn]:
    """Return the date columns of kinds, those of the rows of the task too."""
    task = spec.task_rows
    own = task.kinds if task is not None else ()
    kinds = {kind: path for kind, path in spec.schema.kinds.items() if kind not in own}
    found: dict[str, DatedColumn] = {}
    for text in spec.dated:
        kind, dot, column = text.partition(".")
        if kind in own:
            raise InputError(
                f"{setting('dated', text)}: {kind!r} are the rows of the task, whose time is "
                f"{setting('at')}; leave it out"
            )
        if not dot or kind not in kinds:
            close = get_close_matches(kind, kinds, n=1)
            hint = f"; did you mean {close[0]!r}?" if close and dot else ""
            raise InputError(
                f"{setting('dated', text)}: must be KIND.COLUMN, KIND one of "
                f"{', '.join(kinds)}{hint}"
            )
        if kinds[kind] is None:
            raise InputError(
                f"{setting('dated', text)}: the kind {kind!r} has no table, its nodes are those "
                f"that edges name; give {setting('nodes', f'{kind}=FILE')}"
            )
        if kind in found:
            raise InputError(
                f"{setting('dated')}: {kind!r} has two dates, {found[kind].column!r} and "
                f"{column!r}; give the one from which on a row is known"
            )
        found[kind] = DatedColumn.parse("dated", column)
    return found if task is None else found | dict.fromkeys(own, task.at)
