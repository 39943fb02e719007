"""The example of docs/guides/databases.md does what the page shows."""

from __future__ import annotations

import re
import shlex
import sqlite3
from pathlib import Path

from tests.data.databases.test_proposing import printed_command

PAGE = Path(__file__).parents[3] / "docs" / "guides" / "databases.md"


def blocks(kind: str) -> list[str]:
    example = PAGE.read_text(encoding="utf-8").partition("## An example")[2].partition("\n## ")[0]
    return re.findall(rf"(?s)```{kind}\n(.*?)```", example)


def test_the_example_runs_and_prints_what_the_page_shows(vrgcn) -> None:
    [statements] = blocks("sql")
    with sqlite3.connect("shop.db") as connection:
        connection.executescript(statements)
    connection.close()
    [proposed, commands], [shown] = blocks("sh"), blocks("text")
    code, out, err = vrgcn(*shlex.split(proposed)[1:])
    assert code == 0, err
    assert printed_command(out) == printed_command(shown)
    table = [line.strip() for line in shown.splitlines() if "│" in line]
    assert [line.strip() for line in out.splitlines() if "│" in line] == table
    lines = commands.replace("\\\n", " ").splitlines()
    assert len(lines) == 4
    for line in lines:
        code, _, err = vrgcn(*shlex.split(line)[1:])
        assert code == 0, err
    with sqlite3.connect("shop.db") as connection:
        rows = connection.execute("SELECT count(*), count(DISTINCT id) FROM predictions").fetchone()
    connection.close()
    assert rows == (80, 40)
