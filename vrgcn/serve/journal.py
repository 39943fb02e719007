"""The journal: changes of a served graph, on the disk before they are acknowledged.

    journal.head       how many changes were acknowledged, and the hash of the last one
    journal-17.log     changes after the 17th, one a line: HASH NUMBER KEY CHANGES

A hash is the SHA-256 of the rest of its line and the hash before it, so no line can change, be
missing or come from another journal without a trace. A change is appended to the log and
synchronised first; the head follows, and is synchronised before the change is acknowledged. A log
whose end is missing is thereby told from one whose last write was cut off: the head says which
lines were acknowledged.

Folding moves all changes into a saved state (a folder) and begins a new log; the head names both in
one write. A change is in the state or in the log, never in both, never in none.

A client may name a change by a key of its own. A key that was seen before is not applied again, so
a client that lost the answer repeats its request without doubt. The first line of a new log has the
keys of changes that were folded.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import uuid
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from vrgcn.files.mistakes import InputError
from vrgcn.files.writing import explained, flush_folder, new_file
from vrgcn.serve.head import FILE, DamagedError, HeadFile, JournalHead, write_at

KEYS = 100_000  # keys of clients that are remembered, the newest

_LOG = re.compile(r"journal-(\d+)\.log")
_NONE, _FOLDED = "null", "keys"  # in place of a key: none, and that the line has folded keys


class OtherModelError(InputError):
    """Raised if a journal belongs to another model or graph."""


class KeyReusedError(InputError):
    """Raised if a key comes again with another change."""


class _Line(NamedTuple):
    """A line of a log. end: place after it in the file"""

    number: int
    key: str
    body: str
    hash: str
    end: int


class Journal:
    """The journal in a folder, all of it checked.

    model: identifies the model and the graph that changes are applied to
    """

    def __init__(self, folder: Path, model: str) -> None:
        self.folder = folder
        path = folder / FILE
        with explained(path):
            self._heads = HeadFile(path, None if path.is_file() else _new(folder, model))
            try:
                if self.head.model != model:
                    raise OtherModelError(
                        f"{path} has changes for another model or another graph than this run's: "
                        "serve the run that it was made for, or give another state folder"
                    )
                self._keys: dict[str, tuple[int, str]] = {}  # numbers and digests, newest last
                self._last = self._checked()
                self._refuse_newer_logs()
                self._open()
                if not self._heads.whole or self._last.hash != self.head.hash:
                    os.fsync(self._file)
                    self._acknowledge(self._last)
            except BaseException:
                self._heads.close()
                raise

    @property
    def head(self) -> JournalHead:
        return self._heads.head

    @property
    def path(self) -> Path:
        """The log's file."""
        return _log(self.folder, self.head.folded)

    @property
    def number(self) -> int:
        """Number of the newest change; 0 before any."""
        return self._last.number

    def __len__(self) -> int:
        return self.number - self.head.folded

    def __iter__(self) -> Iterator[tuple[int, str]]:
        """Numbers and bodies of the changes that are not folded, in order."""
        for line in self._lines():
            if line.key != _FOLDED:
                yield line.number, line.body

    def hash_of(self, number: int) -> str | None:
        """The hash of a change that is not folded; None if there is no such change."""
        return next((line.hash for line in self._lines() if line.number == number), None)

    def note(self) -> dict[str, Any]:
        """What a state with all changes says of them."""
        return {"journal": self.head.journal, "change": self.number, "hash": self._last.hash}

    def seen(self, key: str, body: str) -> int | None:
        """Number of the change that came with a key; None for a new key."""
        if key not in self._keys:
            return None
        number, digest = self._keys[key]
        if digest != _digest(body):
            raise KeyReusedError(
                f"the key {key!r} came with another change before: take a new key for each change"
            )
        return number

    def append(self, body: str, key: str | None = None) -> int:
        """Write a change, a text of one line; return its number once it is on the disk."""
        self._heads.check()
        before = self._last
        word = _NONE if key is None else json.dumps(key).replace(" ", "\\u0020")
        text, line = _written(before, before.number + 1, word, body)
        with explained(self.path):
            try:
                write_at(self._file, text, before.end)
                os.fsync(self._file)
            except BaseException:
                with suppress(OSError):  # what is left of it has no acknowledged change
                    os.ftruncate(self._file, before.end)
                raise
            self._acknowledge(line)
        self._last = line
        self._remember(line)
        return line.number

    def fold(self, state: str) -> None:
        """Record that a state has all changes, and begin a new log."""
        old, begin = self.path, self._last
        keys = json.dumps([[key, *value] for key, value in self._keys.items()])
        text, line = _written(begin._replace(end=0), begin.number, _FOLDED, keys)
        with new_file(_log(self.folder, begin.number)) as file:
            file.write(text)
        mine = self.head.journal, self.head.model
        head = JournalHead(*mine, begin.number, state, begin.hash, line.number, line.hash)
        self._heads.write(head)
        self._heads.write(head)  # neither block names what is removed now
        os.close(self._file)
        self._last = line
        self._open()
        if old != self.path:
            old.unlink()

    def remove_superseded(self) -> None:
        """Remove logs that a killed fold left."""
        for _, path in _logs(self.folder):
            if path != self.path:
                path.unlink()

    def close(self) -> None:
        os.close(self._file)
        self._heads.close()

    # Inside.

    def _acknowledge(self, line: _Line) -> None:
        self._heads.write(replace(self.head, number=line.number, hash=line.hash))

    def _open(self) -> None:
        there = self.path.is_file()
        self._file = os.open(self.path, os.O_RDWR | os.O_CREAT | getattr(os, "O_BINARY", 0), 0o666)
        if not there:
            flush_folder(self.folder)
        os.ftruncate(self._file, self._last.end)  # the rest is a write that was cut off

    def _lines(self) -> Iterator[_Line]:
        """Whole lines of the log, up to the first that is not."""
        line = self._first
        with open(self.path, "rb") as file:
            for text in file:
                parsed = _parsed(text, line)
                if parsed is None:
                    return
                line = parsed
                yield line

    @property
    def _first(self) -> _Line:
        """The place before the first line."""
        return _Line(self.head.folded, _NONE, "", self.head.begin, 0)

    def _checked(self) -> _Line:
        """The last whole line of the log. Raises unless all that was acknowledged is there."""
        head, last = self.head, self._first
        acknowledged = head.hash == head.begin
        if acknowledged and not self.path.exists():
            return last
        try:
            for last in self._lines():
                self._remember(last)
                acknowledged = acknowledged or last.hash == head.hash
        except OSError as error:
            raise DamagedError(
                f"{self.path} cannot be read: {error.strerror}", self.folder
            ) from None
        if not acknowledged:
            raise DamagedError(
                f"{self.path} is damaged: it is whole up to change {last.number}, and changes up "
                f"to {head.number} were acknowledged, as {FILE} says",
                self.folder,
            )
        # A crash tears a line or a block of the head, never both: the line comes first.
        if last.end < self.path.stat().st_size and not self._heads.whole:
            raise DamagedError(
                f"{self.path} and {FILE} are damaged: changes after {last.number} may be missing",
                self.folder,
            )
        return last

    def _refuse_newer_logs(self) -> None:
        """Refuse a log with changes that the head does not know. A fold that was killed leaves the
        old log, or a new one without a change."""
        for number, path in _logs(self.folder):
            if number > self.head.folded and path.read_bytes().count(b"\n") > 1:
                raise DamagedError(
                    f"{path} has changes that {FILE} does not know: {FILE} is an older one",
                    self.folder,
                )

    def _remember(self, line: _Line) -> None:
        if line.key == _FOLDED:
            self._keys = {key: (number, digest) for key, number, digest in json.loads(line.body)}
        elif line.key != _NONE:
            self._keys[json.loads(line.key)] = line.number, _digest(line.body)
        while len(self._keys) > KEYS:
            del self._keys[next(iter(self._keys))]


def _new(folder: Path, model: str) -> JournalHead:
    """The head of a new journal. Refuses a folder in which there was one."""
    for name in ("journal*", "state*"):
        for left in sorted(folder.glob(name)):
            raise DamagedError(f"{folder / FILE} is missing, and {left.name} is there", folder)
    identity = uuid.uuid4().hex
    begin = _digest(f"{identity} {model}")
    return JournalHead(identity, model, 0, None, begin, 0, begin)


def _log(folder: Path, number: int) -> Path:
    return folder / f"journal-{number}.log"


def _logs(folder: Path) -> Iterator[tuple[int, Path]]:
    for path in sorted(folder.iterdir()):
        if match := _LOG.fullmatch(path.name):
            yield int(match[1]), path


def _written(before: _Line, number: int, key: str, body: str) -> tuple[bytes, _Line]:
    """The bytes of a line, and the line."""
    text = f"{number} {key} {body}"
    assert "\n" not in text
    digest = _digest(f"{before.hash} {text}")
    data = f"{digest} {text}\n".encode()
    return data, _Line(number, key, body, digest, before.end + len(data))


def _parsed(data: bytes, before: _Line) -> _Line | None:
    """The line of some bytes; None if they are no whole line after the one before."""
    try:
        _, number, key, body = data.decode().split(" ", 3)
        text, line = _written(before, int(number), key, body[:-1])
    except ValueError:
        return None
    return line if text == data else None


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
