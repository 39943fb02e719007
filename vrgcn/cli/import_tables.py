"""`vrgcn import`: turns tables into a graph on disk and prints what was read."""

from __future__ import annotations

import time
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Self

from vrgcn.cli.command import Options
from vrgcn.cli.early_checks import check_file, check_new
from vrgcn.cli.flags import FileWord, Positional, Repeated, field_texts
from vrgcn.cli.parsing import missing_text
from vrgcn.data.databases.url import TableUrl, is_url
from vrgcn.data.sources import check_graph
from vrgcn.data.tables.schema import files_of
from vrgcn.data.tables.spec import ImportSpec
from vrgcn.files.mistakes import InputError
from vrgcn.files.wording import without_password
from vrgcn.files.writing import check_utf8

_TOO_LARGE = """there is not enough memory to import these tables. What takes less:
  --drop COLUMN for columns that are not needed: rows are read some megabytes at a time
  ids that are whole numbers: the ids and labels of all nodes stay in memory, texts take most
  a higher limit, where the process has one (ulimit -v)
Features, and edges but for a part at a time, do not have to fit."""
_TEXTS = field_texts(ImportSpec)
# Flags that may be given with the address of a database, for the command that is printed.
_OF_ROWS = (
    *("rows", "at", "label", "task", "last", "known_after"),
    *("split", "train_until", "val_until"),
)


@dataclass(frozen=True)
class ImportOptions(ImportSpec, Options):
    """Flags of `vrgcn import`."""

    out: Path = None  # type: ignore[assignment]
    """Folder to write the graph to.

    It must not exist yet. Needed, as --edges is, unless DATABASE is given."""
    # With several kinds of nodes these flags take a value for each, and may be repeated.
    edges: Repeated[tuple[FileWord, ...]] = ()  # type: ignore[assignment]
    nodes: Repeated[tuple[FileWord, ...]] = ()  # type: ignore[assignment]
    features_file: Repeated[tuple[FileWord, ...]] = ()  # type: ignore[assignment]
    rows: Repeated[tuple[FileWord, ...]] = ()
    dated: Repeated[tuple[str, ...]] = ()
    id: Repeated[tuple[str, ...]] = ()  # type: ignore[assignment]
    source: Repeated[tuple[str, ...]] = ()  # type: ignore[assignment]
    target: Repeated[tuple[str, ...]] = ()  # type: ignore[assignment]
    weight: Repeated[tuple[str, ...]] = ()  # type: ignore[assignment]
    # These flags may be repeated, once for each column.
    column: Repeated[tuple[str, ...]] = ()
    fill: Repeated[tuple[str, ...]] = ()

    """Group edges."""
    undirected: bool = False
    """Edges count in both directions. This is the default without --directed."""

    """Group files."""
    database: Positional[str | None] = None
    """Address of a database, to see a suggested import.

    An address such as sqlite:///shop.db, without any --edges: its keys are read, and a command that
    imports its tables is printed."""

    @property
    def only_prints(self) -> bool:  # type: ignore[override]
        return self.database is not None

    def __post_init__(self) -> None:
        if self.database is not None:
            self._check_alone(self.database)
            return
        needed = [("out", "PATH")] if self.rows else [("edges", "PATH ..."), ("out", "PATH")]
        missing = [(name, value) for name, value in needed if not getattr(self, name)]
        if missing:
            raise InputError(missing_text((f"--{n}", v, False, _TEXTS[n]) for n, v in missing))
        super().__post_init__()
        if self.undirected and self.like is not None:
            raise InputError("--undirected and --like: give one of them; --like decides it")
        if self.undirected and self.schema.named:
            raise InputError("--undirected: a relation comes with its reverse; leave it out")
        if self.undirected and self.directed:
            raise InputError("--undirected and --directed: give one of them")

    def _check_alone(self, database: str) -> None:
        """Refuse what is no database, and flags of the command that is printed for it."""
        if not is_url(database):
            raise InputError(
                f"{database!r}: everything here has a flag, such as --edges PATH ... --out PATH, "
                "but for the address of a database, such as sqlite:///shop.db"
            )
        if TableUrl.parse(database).what:
            raise InputError(
                f"{without_password(database)}: leave out what follows #, and an import of all "
                "tables is proposed; or name this table with --nodes or --edges"
            )
        if self.rows and self.at is None:
            raise InputError("--rows: give --at COLUMN, the time of each row")
        for field in fields(self):
            of_rows = field.name in _OF_ROWS and self.rows
            given = getattr(self, field.name) != field.default
            if field.name not in ("database", "out") and given and not of_rows:
                flag = f"--{field.name.replace('_', '-')}"
                raise InputError(
                    f"{flag}: add it to the command that `vrgcn import {database}` prints"
                )

    @property
    def of_rows(self) -> dict[str, list[str]] | None:
        """The flags about rows with a time of their own, for the command that is printed."""
        if not self.rows:
            return None
        found = {}
        for field in fields(self):
            value = getattr(self, field.name)
            if field.name in _OF_ROWS and value != field.default:
                found[field.name] = list(map(str, value if isinstance(value, tuple) else [value]))
        return found

    def checked(self) -> Self:
        """Raise if a file does not exist, if --like is no graph, or if --out exists."""
        if self.database is not None:
            return self
        for name in ("edges", "nodes", "features_file", "rows"):
            flag = f"--{name.replace('_', '-')}"
            for owner, [path, *_] in files_of(name, getattr(self, name)).items():
                if isinstance(path, TableUrl):
                    continue
                check_file(path, f"{flag} {owner}=" if owner else flag)
                check_utf8(path, flag, "PyArrow")
        if self.like is not None:
            check_graph(self.like, "--like: ")
        check_new(self.out, "folder")
        return self


def run(options: ImportOptions) -> None:
    """Import as the options say and print a summary; or propose an import of a database."""
    if options.database is not None:
        from vrgcn.cli.import_database import print_proposal

        print_proposal(TableUrl.parse(options.database), options.out, options.of_rows)
        return
    _import(options)


def _import(options: ImportOptions) -> None:
    from rich.progress import SpinnerColumn, TextColumn, TimeElapsedColumn

    from vrgcn.data.tables import import_tables
    from vrgcn.files.memory import memory_advice
    from vrgcn.files.wording import counted, printable
    from vrgcn.pages.terminal import text_table
    from vrgcn.training.progress import progress_bar

    start = time.perf_counter()
    with progress_bar(
        SpinnerColumn(),
        TextColumn("{task.description}", markup=False),
        TimeElapsedColumn(),
    ) as progress:
        task = progress.add_task("reading", total=None)

        def on_rows(name: str, rows: int) -> None:
            progress.update(task, description=f"{printable(name)}: {counted(rows, 'row')}")

        def on_plan(title: str, rows: list[tuple[str, str, str]]) -> None:
            headings = ("column", "looks like", "becomes")
            progress.console.print(text_table(title, headings, rows, names=3), "")

        with memory_advice(_TOO_LARGE):
            summary = import_tables(options, on_rows, on_plan)
    took = time.perf_counter() - start
    print(f"{summary}\n\nwritten to {printable(summary.out)} in {took:.1f} s")
