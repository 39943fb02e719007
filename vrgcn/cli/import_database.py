"""`vrgcn import DATABASE`: reads the keys of a database and prints a command that imports it."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from shlex import quote
from typing import Any

from vrgcn.data.databases.proposing import lacking, propose
from vrgcn.data.databases.source import Keys, TableSource, naming, open_source
from vrgcn.data.databases.url import TableUrl, place
from vrgcn.data.tables.columns import is_called
from vrgcn.data.tables.dated.settings import kind_of_rows
from vrgcn.files.mistakes import InputError
from vrgcn.files.setting_names import setting
from vrgcn.files.wording import printable
from vrgcn.pages.terminal import text_table
from vrgcn.training.progress import progress_bar


def print_proposal(
    url: TableUrl, out: Path | None, of_rows: Mapping[str, Sequence[str]] | None = None
) -> None:
    """Print what the tables of a database become, and the command.

    out: folder of the graph; None for one that is called as the database is
    of_rows: settings of rows with a time of their own, for the command; None if there are none
    """
    with closing(open_source(url)) as source, naming(url.address, (ValueError,)):
        proposal = propose(source.keys(), _Gaps(source), _task(of_rows))
    headings = ("table", "becomes", "columns")
    with progress_bar() as progress:
        progress.console.print(text_table(f"tables of {url}", headings, proposal.rows, names=3), "")
    for note in proposal.notes:
        print(printable(note))
    if proposal.notes:
        print()
    folder = out or Path("graphs") / _name(url)
    rows = {} if of_rows is None else _with_kinds(of_rows, proposal.nodes)
    settings = proposal.settings(url) | rows
    print(printable(_command(settings | {"out": [str(folder)]}), keep="\n"))
    if of_rows:
        if "train_until" not in of_rows:
            print(
                "\nTo split the rows, add --train-until DATE --val-until DATE, unless their table "
                "has a column `split`."
            )
        return
    print(
        "\nTo predict a column of a kind, add --label KIND.COLUMN and a split, such as "
        "--ratio 0.6 0.2 0.2."
    )
    relations = [text.partition("=")[0] for text in settings.get("edges", ())]
    if relations:
        print(
            "To recommend, or to predict who is linked to whom, import it as it is, then: vrgcn "
            f"train {quote(str(folder))} --predict {quote(relations[-1])}"
        )


def _task(of_rows: Mapping[str, Sequence[str]] | None) -> str | None:
    """The kind that rows with a time of their own become; None if there are none."""
    if not of_rows:
        return None
    return kind_of_rows(place(of_rows["rows"][0].partition("=")[2]))


def _with_kinds(of_rows: Mapping[str, Sequence[str]], kinds: Collection[str]) -> dict[str, Any]:
    """The settings of rows, their entities called as the kinds are: driver is drivers."""
    words = []
    for word in of_rows["rows"]:
        entity, equals, path = word.partition("=")
        found = [kind for kind in kinds if is_called(kind, entity)]
        if not equals or not found:
            raise InputError(
                f"{setting('rows', word)}: must be KIND=FILE, KIND one of {', '.join(kinds)}"
            )
        words.append(f"{entity if entity in found else found[0]}={path}")
    return {**of_rows, "rows": words}


def _command(settings: Mapping[str, Sequence[str]]) -> str:
    """Return the command for a shell, a line for each flag."""
    lines = [
        f"--{name.replace('_', '-')} {' '.join(map(quote, values))}"
        for name, values in settings.items()
    ]
    return " \\\n    ".join(["vrgcn import", *lines])


class _Gaps:
    """Looks for rows that lack one of some columns."""

    def __init__(self, source: TableSource) -> None:
        self._source = source

    def __call__(self, table: Keys, columns: Sequence[str]) -> bool:
        rows = self._source.rows(lacking(table, columns))
        return any(len(batch) for batch in rows.batches)


def _name(url: TableUrl) -> str:
    """The name of a database: of its file, or the last part of its path on a server."""
    path = url.address.partition("?")[0].partition("://")[2]
    name = path.rpartition("/")[2] if "/" in path else ""
    return re.sub(r"\W+", "-", Path(name).stem).strip("-") or url.scheme
