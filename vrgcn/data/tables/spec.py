"""Settings of an import. This file imports no Arrow: the command line reads it before loading
anything.

With several tables, settings about files name the kind or relation (`nodes=("user=users.csv",
...)`) and settings about columns its table (`label=("user.churned",)`). `narrowing` makes of them
the settings of each table, which name one file and its columns, as those of a single table do.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, fields
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from vrgcn.data.databases.url import Place
from vrgcn.data.tables.dated.settings import (
    LAST,
    DatedColumn,
    TaskRows,
    parse_dates,
    parse_task,
    with_rows,
)
from vrgcn.data.tables.keeping import Keep
from vrgcn.data.tables.overrides import Override, parse_fills
from vrgcn.data.tables.schema import ImportSchema, arrays_of, files_of, parse_schema
from vrgcn.files.mistakes import InputError
from vrgcn.files.plugins import TASKS as PLUGINS
from vrgcn.files.plugins import Plugins, known_names
from vrgcn.files.setting_names import FILE, SHARES, setting
from vrgcn.tasks import TASKS, find_task, is_task

if TYPE_CHECKING:
    from vrgcn.tasks.task import Task

    LabelTask = str
else:
    LabelTask = Annotated[Literal["auto", *TASKS], Plugins(PLUGINS)]
Tidying = Literal["space", "decimal", "case"]
UnknownNodes = Literal["error", "skip", "add"]


@dataclass(frozen=True)
class ImportSpec:
    """Make a graph of your own tables of nodes and edges: files or tables of databases."""

    """Group files: tables to read, and how they are written."""
    edges: Place
    """File with a row for each edge.

    .csv, .tsv, .txt (or with .gz: .csv.gz), .parquet, .nt or .ttl; or a table or query of a
    database: sqlite:///shop.db#orders, duckdb:///shop.db#orders or 'postgresql://host/shop#SELECT
    ...'. With several kinds of nodes one for each relation: user-bought-item=orders.csv ..."""
    out: Path
    """Folder to write the graph to; it must not exist yet."""
    nodes: Place | None = None
    """File with a row for each node.

    Or a table or query of a database. None: the nodes are those that the edges name. With several
    kinds of nodes one for each: user=users.csv item=items.parquet ...; other settings then name a
    column as user.age."""
    like: Path | None = None
    """Earlier graph whose features and classes to reuse.

    Its columns become the same features again, in the same order, and its classes keep their names,
    so that a model trained on it predicts on this one."""
    delimiter: str | None = None
    """Character between two cells of a text file. None: found in the first line of each file: a
    comma in .csv, a tab in .tsv, or else one of comma, tab, semicolon and |."""
    drop: tuple[str, ...] = ()
    """Columns of either file to ignore, by name or by pattern."""
    decimal: str | None = None
    """Decimal separator of text files, a comma or a point; the other one then separates thousands.
    None: a point; in features and weights a comma if that is unambiguous."""
    tidy_ids: tuple[Tidying, ...] = ()
    """Differences between ids to ignore, in both files. space: spaces around them; decimal: 34.0 is
    34; case: capital and small letters."""
    unknown_nodes: UnknownNodes | None = None
    """What to do with edges to nodes that the nodes file lacks: error, skip those edges, or add the
    nodes, without labels, their features filled and marked. None: error; with --like as there."""

    """Group nodes: ids and features."""
    headerless_nodes: bool = False
    """The nodes file has no first line that names its columns; they are called 1, 2, 3."""
    id: str | None = None
    """Column of the node ids.

    None: `id`, or else the first."""
    features: tuple[str, ...] = ()
    """Columns of the features, or patterns such as 'f_*'.

    Empty: all useful columns without another role."""
    column: tuple[str, ...] = ()
    """What columns hold, such as age=number or bio=text.

    Needed only if the import does not recognise it. COLUMN=KIND, KIND one of number, boolean,
    category, categories, numbers, date, text, drop; such as age=number or bio=text:64 or
    born=date:%d.%m.%Y or tags=categories:;"""
    max_categories: int | None = None
    """Most categories of a column that get a feature each; the rarer ones share one. None: 50; of a
    column of lists 65,536."""
    text_seed: int = 0
    """Seed of what is drawn at random to turn texts into features."""
    features_file: Path | None = None
    """A .npy file with the features in place of columns: row by row as the nodes file, or without
    one in the order of the sorted ids. With several kinds: item=x.npy ..."""
    fill: tuple[str, ...] = ()
    """Value for missing or infinite numbers: mean, median or a number, each also with +mark for a
    feature that marks them; or error. For all columns, or for one: age=median+mark. Empty:
    mean+mark if the first rows have gaps, else error."""

    """Group labels: what to predict, and the split."""
    label: tuple[str, ...] = ()
    """Column of the classes or numbers to predict.

    Or several columns of 0 and 1, one for each class, by name or by pattern. Empty: `label` if
    there is one."""
    task: LabelTask = "auto"
    """Kind of label: one class for each node, several classes, or a number such as a price. auto:
    one class, or several if the label columns hold several."""
    label_delimiter: str | None = None
    """Text between the classes of a node that has several in one cell, such as '|'."""
    missing: tuple[str, ...] = ()
    """Texts that mean an unknown label or split, like an empty cell."""
    split: str | None = None
    """Column that says train, val, test or nothing.

    None: `split` if there is one."""
    ratio: tuple[float, ...] | None = None
    """Shares of train, val and test, for a random split.

    Three numbers such as 0.6 0.2 0.2. The labelled nodes are split class by class."""
    split_seed: int = 0
    """Seed of --ratio."""

    """Group edges: their columns, relations and direction."""
    source: str | None = None
    """Column of the node that an edge leaves.

    None: `source`, `src` or `from`, or else the first of two."""
    target: str | None = None
    """Column of the node that an edge enters.

    None: `target`, `dst` or `to`, or else the second of two."""
    weight: str | None = None
    """Column of the edges' weights.

    None: `weight` if there is one."""
    relation_column: str | None = None
    """Column of an edges file that names the relation of each edge, such as that of triples. Each
    name makes a relation of its own."""
    rows_as_nodes: tuple[str, ...] = ()
    """Relations whose rows become nodes: of user-bought-item the kind `bought`, with the features
    that the columns make, between user-from-bought and bought-to-item."""
    keep: tuple[str, ...] = ()
    """Columns to keep, to predict them or split by them.

    Each single edge or node keeps its value. COLUMN, by name or by pattern, or COLUMN=KIND, KIND
    one of number, class, date (date:FORMAT) and split; such as rated.rating or rated.time=date.
    Numbers as dates are seconds since 1970."""
    headerless: bool = False
    """The edges file has no first line that names its columns; they are called 1, 2, 3."""
    directed: bool = False
    """Edges count in one direction only.

    A node averages only over the edges into it. Otherwise an edge counts in both directions."""

    """Group rows: rows with a time of their own, and the dated tables that they may see."""
    dated: tuple[str, ...] = ()
    """Columns that say when a row became known, as result.date.

    KIND.COLUMN, or KIND.COLUMN=date:FORMAT such as order.paid=date:%d.%m.%Y. A row of the task sees
    rows of dated tables up to its own time, and rows of other tables always. A table without a date
    that names rows of a dated one, such as the lines of orders, has their dates."""
    rows: tuple[str, ...] = ()
    """Table of the rows to predict, such as driver=dnf.csv.

    ENTITY=FILE: each row names a node of the kind ENTITY, or one of each of several kinds
    (user=next.csv item=next.csv), has a time of its own and sees what was known by then."""
    at: str | None = None
    """Column of the rows' times.

    COLUMN, or COLUMN=date:FORMAT such as day=date:%d.%m.%Y."""
    last: tuple[int, ...] = LAST
    """How many of the last facts a row sees, a relation for each number: 1 is the last fact."""
    known_after: str | None = None
    """Time from a row's own time until its target is known, such as 30d: targets of earlier rows
    are then facts too. None: rows do not see them."""
    train_until: str | None = None
    """Last moment of training, such as 2004 or 2004-12-31: rows whose target is known by then are
    for training. In place of a column `split`."""
    val_until: str | None = None
    """Last moment of validation; later rows are for the test."""

    @cached_property
    def schema(self) -> ImportSchema:
        """The kinds of nodes and the relations."""
        nodes, edges = with_rows(self.task_rows, self.nodes, self.edges)
        return parse_schema(nodes, edges, self.relation_column, self.rows_as_nodes)

    @cached_property
    def task_rows(self) -> TaskRows | None:
        """The rows of a task; None if there are none."""
        return parse_task(self)

    @cached_property
    def dates(self) -> dict[str, DatedColumn]:
        """The column of dates of each dated kind."""
        return parse_dates(self)

    def __post_init__(self) -> None:
        self._normalise()
        self._check_texts()
        asked = asked_task(self)
        if self.label_delimiter is not None and asked is not None and not asked.several:
            raise InputError(
                f"{setting('label_delimiter')}: {setting('task', self.task)} takes one label per "
                "node"
            )
        if self.split is not None and self.ratio is not None:
            raise InputError(f"{setting('split')} and {setting('ratio')}: give one of them")
        for text in self.column:
            Override.parse(text)
        for text in self.keep:
            Keep.parse(text)
        parse_fills(self.fill)
        if self.like is not None:
            self._check_like()
        if self.ratio is not None:
            check_ratio(self.ratio)
        check_split_seed(self.split_seed, self.ratio)
        if self.schema.named:
            self._check_named()
            _ = self.dates
            return
        self._check_columns()
        if self.nodes is None:
            self._check_no_node_file()
            if self.task != "auto":
                raise _needs_nodes("task")

    def _normalise(self) -> None:
        """Make paths of texts, and single values of settings that may have several."""
        for name in ("out", "like"):
            object.__setattr__(self, name, _path(name, getattr(self, name)))
        arrays_of(self.features_file)
        if self.task_rows is not None:
            self._name_columns_of_rows(self.task_rows.kind)
        if not self.schema.named:
            for name in ("edges", "nodes", "features_file"):
                object.__setattr__(self, name, _only_file(name, getattr(self, name)))
        for name in ONE_COLUMN:
            object.__setattr__(self, name, _only(name, getattr(self, name), self.schema))

    def _name_columns_of_rows(self, kind: str) -> None:
        """Labels and the split are columns of the rows of the task, if there are such rows."""
        own = tuple(c if c.startswith(f"{kind}.") else f"{kind}.{c}" for c in self.label)
        object.__setattr__(self, "label", own)
        if self.split is not None and not self.split.startswith(f"{kind}."):
            object.__setattr__(self, "split", f"{kind}.{self.split}")

    def _check_texts(self) -> None:
        """Refuse delimiters, decimals and tasks that do not exist."""
        delimiter = {"tab": "\t", "\\t": "\t"}.get(self.delimiter or "", self.delimiter)
        object.__setattr__(self, "delimiter", delimiter)
        if delimiter is not None and (len(delimiter) != 1 or delimiter in '"\r\n'):
            raise InputError(
                f"{setting('delimiter')}: must be one character, or tab; not {delimiter!r}"
            )
        if delimiter is not None and not delimiter.isascii():
            raise InputError(
                f"{setting('delimiter')}: {delimiter!r} is not in ASCII, as it has to be"
            )
        if self.decimal not in (None, ",", "."):
            raise InputError(f"{setting('decimal')}: must be , or . and not {self.decimal!r}")
        if self.label_delimiter == "":
            raise InputError(f"{setting('label_delimiter')}: must not be empty")
        if self.task != "auto" and not is_task(self.task):
            known = known_names(PLUGINS, ("auto", *TASKS))
            raise InputError(f"{setting('task')}: {self.task!r} is none of {known}")

    def _check_columns(self) -> None:
        """Refuse contradictory or invalid settings about feature columns."""
        if self.features and self.features_file is not None:
            raise InputError(
                f"{setting('features')} and {setting('features_file')}: give one of them"
            )
        for name in ("column", "max_categories", "text_seed"):
            if self.features_file is not None and self._given(name):
                raise InputError(
                    f"{setting(name)} and {setting('features_file')}: give one of them"
                )
        fills = parse_fills(self.fill)
        if self.features_file is not None and (
            len(fills) > 1 or any(p is not None or f.how != "constant" or f.mark for p, f in fills)
        ):
            raise InputError(
                f"{setting('fill')}: with {setting('features_file')} it must be one number"
            )
        for name, least in (("max_categories", 1), ("text_seed", 0)):
            if (value := getattr(self, name)) is not None and value < least:
                raise InputError(f"{setting(name)}: must be at least {least}, not {value}")

    def _check_named(self) -> None:
        """Refuse settings that mean nothing with several kinds of nodes."""
        if self.directed:
            raise InputError(
                f"{setting('directed', True)}: a relation has a direction and gets its reverse; "
                "leave it out"
            )

    def _check_like(self) -> None:
        """Refuse settings that the graph of --like decides."""
        decided = ("features", "column", "max_categories", "text_seed", "fill", "task", "directed")
        for name in decided:
            if name == "fill" and self.features_file is not None:
                continue  # nothing was learned from a features file that could fill it
            if self._given(name):
                raise InputError(
                    f"{setting(name)} and {setting('like')}: give one of them; {setting('like')} "
                    "decides it"
                )

    def _check_no_node_file(self) -> None:
        for name in (
            "id",
            "unknown_nodes",
            "column",
            "features",
            "label",
            "label_delimiter",
            "split",
            "missing",
            "ratio",
            "headerless_nodes",
            "max_categories",
            "text_seed",
        ):
            if self._given(name):
                raise _needs_nodes(name)
        if self.fill and self.features_file is None:
            raise _needs_nodes("fill")

    def _given(self, name: str) -> bool:
        """True if an option differs from its default."""
        value = getattr(self, name)
        return bool(value) and value != _DEFAULTS[name]


def asked_task(spec: ImportSpec) -> Task | None:
    """Return the task that the user names; None if it is found from the label columns."""
    return None if spec.task == "auto" else find_task(spec.task)


# Settings that name a column of one table; of several tables each may have one.
ONE_COLUMN = ("id", "split", "source", "target", "weight", "relation_column")
_DEFAULTS = {field.name: field.default for field in fields(ImportSpec)}


def _needs_nodes(name: str) -> InputError:
    """Return the error for a setting about nodes that is given without a file of nodes."""
    return InputError(f"{setting(name)}: needs a file of nodes; give {setting('nodes', FILE)}")


def _path(name: str, given: object) -> Path | None:
    """Return a path; callers from Python may give it as a string."""
    if given is None or isinstance(given, Path):
        return given
    if not isinstance(given, str):
        raise TypeError(f"{name}: {given!r} is not the path of a file or folder")
    return Path(given)


def _only_file(name: str, given: Any) -> Place | None:
    """Return the one file of a setting that may name several."""
    files = files_of(name, given)
    if not files:
        return None
    if list(files) != [""] or len(files[""]) > 1:
        raise InputError(
            f"{setting(name)}: names {', '.join(filter(None, files)) or 'several files'}, and "
            f"there is one kind of nodes; give one file"
        )
    return files[""][0]


def _only(name: str, given: Any, schema: ImportSchema) -> Any:
    """Return the one column of a setting that may name several; all of them with several tables."""
    words = (given,) if isinstance(given, str) else tuple(given or ())
    if len(words) <= 1:
        return words[0] if words else None
    if not schema.named:
        raise InputError(f"{setting(name)}: takes one column, not {', '.join(words)}")
    return words


def check_split_seed(seed: int, ratio: tuple[float, ...] | None) -> None:
    """Refuse a negative seed, and a seed without a ratio, which would have no effect."""
    if seed < 0:
        raise InputError(f"{setting('split_seed')}: must be at least 0, not {seed}")
    if seed and ratio is None:
        raise InputError(
            f"{setting('split_seed', seed)}: is the seed of {setting('ratio')}, and without "
            f"{setting('ratio')} no split is drawn; give {setting('ratio', SHARES)} too, or leave "
            f"{setting('split_seed')} out"
        )


def check_ratio(ratio: Any) -> None:
    """Refuse a ratio that is not three valid shares of train, val and test."""
    name = setting("ratio")
    several = isinstance(ratio, Iterable) and all(hasattr(share, "__float__") for share in ratio)
    if not several or len(ratio) != 3:
        given = " ".join(f"{share:g}" for share in ratio) or "nothing" if several else repr(ratio)
        raise InputError(f"{name} takes three numbers: train, val, test; not {given}")
    if not all(0 <= share <= 1 for share in ratio) or ratio[0] == 0:
        raise InputError(
            f"{name}: must be three shares such as 0.6 0.2 0.2, the first above 0; not {ratio}"
        )
    if sum(ratio) > 1 + 1e-9:
        raise InputError(f"{name}: the shares sum to {sum(ratio):g}, more than 1")
