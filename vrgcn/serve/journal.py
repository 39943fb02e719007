"""The journal: changes of a served graph, on the disk before they are acknowledged.

One SQLite file in WAL mode with full synchronisation. A row is one change that is applied whole.
Folding moves all rows up to a number into a saved state (a folder) and deletes them, in one
transaction: a change is in the state or in the rows, never in both, never in none.

A client may name a change by a key of its own. A key that was seen before is not applied again, so
a client that lost the answer repeats its request without doubt.
"""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from vrgcn.files.writing import explained

FILE = "journal.sqlite"
KEYS = 100_000  # keys of clients that are remembered, the newest

_TABLES = """
BEGIN;
CREATE TABLE IF NOT EXISTS changes (number INTEGER PRIMARY KEY, body TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS keys (
    key TEXT PRIMARY KEY, number INTEGER NOT NULL, digest TEXT NOT NULL
);
CREATE TABLE IF NOT EXISTS served (
    one INTEGER PRIMARY KEY CHECK (one = 1), model TEXT NOT NULL,
    folded INTEGER NOT NULL, state TEXT
);
COMMIT;
"""


class OtherModelError(ValueError):
    """Raised if a journal belongs to another model or graph."""


class KeyReusedError(ValueError):
    """Raised if a key comes again with another change."""


class Folded(NamedTuple):
    """number: of the last change that the state has; state: its folder's name, None before any"""

    number: int
    state: str | None


class Journal:
    """The journal in a folder.

    model: identifies the model and the graph that changes are applied to
    """

    def __init__(self, folder: Path, model: str) -> None:
        self.path = folder / FILE
        with explained(self.path):
            # Autocommit: transactions begin and end where this file says so.
            self._database = sqlite3.connect(
                self.path, isolation_level=None, check_same_thread=False
            )
            try:
                self._database.execute("PRAGMA journal_mode=WAL")
                self._database.execute("PRAGMA synchronous=FULL")
                self._database.executescript(_TABLES)
                row = self._database.execute("SELECT model FROM served").fetchone()
            except sqlite3.DatabaseError as error:
                self.close()
                raise ValueError(
                    f"{self.path} is no journal, or damaged ({error}): restore it from a backup, "
                    "or move it away to begin with the graph as it was trained on"
                ) from None
            if row is None:
                self._database.execute("INSERT INTO served VALUES (1, ?, 0, NULL)", (model,))
        if row is not None and row[0] != model:
            self.close()
            raise OtherModelError(
                f"{self.path} has changes for another model or another graph than this run's: "
                "serve the run that it was made for, or give another state folder"
            )

    @property
    def folded(self) -> Folded:
        """The state that the changes are to be applied to."""
        number, state = self._database.execute("SELECT folded, state FROM served").fetchone()
        return Folded(number, state)

    @property
    def last(self) -> int:
        """Number of the newest change; 0 before any."""
        (number,) = self._database.execute("SELECT max(number) FROM changes").fetchone()
        return self.folded.number if number is None else int(number)

    def __len__(self) -> int:
        (count,) = self._database.execute("SELECT count(*) FROM changes").fetchone()
        return int(count)

    def __iter__(self) -> Iterator[tuple[int, str]]:
        """Numbers and bodies of the changes that are not folded, in order."""
        yield from self._database.execute("SELECT number, body FROM changes ORDER BY number")

    def seen(self, key: str, body: str) -> int | None:
        """Number of the change that came with a key; None for a new key."""
        row = self._database.execute(
            "SELECT number, digest FROM keys WHERE key = ?", (key,)
        ).fetchone()
        if row is None:
            return None
        if row[1] != _digest(body):
            raise KeyReusedError(
                f"the key {key!r} came with another change before: take a new key for each change"
            )
        return int(row[0])

    def append(self, body: str, key: str | None = None) -> int:
        """Write a change; return its number once it is on the disk."""
        number = self.last + 1
        with explained(self.path), self._database:
            self._database.execute("BEGIN IMMEDIATE")
            self._database.execute("INSERT INTO changes VALUES (?, ?)", (number, body))
            if key is not None:
                row = (key, number, _digest(body))
                self._database.execute("INSERT INTO keys VALUES (?, ?, ?)", row)
                oldest = "SELECT number FROM keys ORDER BY number DESC LIMIT 1 OFFSET ?"
                self._database.execute(f"DELETE FROM keys WHERE number <= ({oldest})", (KEYS,))
        return number

    def fold(self, number: int, state: str) -> None:
        """Record that a state has all changes up to a number, and forget these."""
        with explained(self.path), self._database:
            self._database.execute("BEGIN IMMEDIATE")
            self._database.execute("UPDATE served SET folded = ?, state = ?", (number, state))
            self._database.execute("DELETE FROM changes WHERE number <= ?", (number,))

    def close(self) -> None:
        self._database.close()


def _digest(body: str) -> str:
    return hashlib.sha256(body.encode()).hexdigest()
