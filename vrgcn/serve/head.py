"""The head of a journal: which changes were acknowledged, in a file of its own.

Two blocks of 4096 bytes, written in turn; each has JSON and the SHA-256 of all its other bytes. A
crash damages only the block that is being written. The other one has what was acknowledged before,
and the log has the change after that: it is on the disk before its block is begun.
"""

from __future__ import annotations

import hashlib
import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path

from vrgcn.files.mistakes import InputError
from vrgcn.files.writing import explained, new_file

FILE = "journal.head"
FORMAT, VERSION = "vrgcn-journal", 1
BLOCK = 4096
_DIGEST = 64  # hexadecimal digits at the end of a block


class DamagedError(InputError):
    """Raised if a state folder does not have everything that was acknowledged."""

    def __init__(self, problem: str, folder: Path) -> None:
        super().__init__(
            f"{problem}. Nothing was deleted: restore all of {folder} from a backup, or give "
            "another state folder, which begins with the graph as it was trained on"
        )


@dataclass(frozen=True)
class JournalHead:
    """Extent of a journal: the changes that were acknowledged, and the state they begin after.

    journal: identity of the journal, drawn when it was begun
    model: identifies the model and the graph that changes are applied to
    folded, state: number of the last change that the state has, and the state's folder
    begin: hash before the first line of the log
    number, hash: of the last line of the log that was acknowledged
    """

    journal: str
    model: str
    folded: int
    state: str | None
    begin: str
    number: int
    hash: str


class HeadFile:
    """The file of a head.

    head: the newest one
    whole: False if one of the blocks is damaged
    """

    def __init__(self, path: Path, new: JournalHead | None = None) -> None:
        """Open the file.

        new: head to begin the file with, all of it or nothing; None for a file that exists
        """
        self.path = path
        if new is not None:
            with new_file(path) as file:
                file.write(_block(0, new) + _block(1, new))
        data = path.read_bytes()
        heads = [_read(path, data[start : start + BLOCK]) for start in (0, BLOCK)]
        there = [block for block in heads if block is not None]
        if not there:
            raise DamagedError(f"{path} is damaged: neither of its blocks is whole", path.parent)
        self.whole = len(there) == 2 and len(data) == 2 * BLOCK
        self._turn, self.head = max(there, key=lambda block: block[0])
        self._failed = False
        self._file = os.open(path, os.O_RDWR | getattr(os, "O_BINARY", 0))

    def write(self, head: JournalHead) -> None:
        """Replace the older block; return once it is on the disk."""
        self.check()
        turn = self._turn + 1
        self._failed = True
        with explained(self.path):
            write_at(self._file, _block(turn, head), BLOCK * (turn % 2))
            os.fsync(self._file)
        self._failed = False
        self._turn, self.head = turn, head

    def check(self) -> None:
        """Raise if a write failed: what the disk has is found out when the file is opened again."""
        if self._failed:
            raise OSError(f"{self.path} could not be written: start the service again")

    def close(self) -> None:
        os.close(self._file)


def write_at(file: int, data: bytes, place: int) -> None:
    """Write all of some bytes at a place of an open file."""
    os.lseek(file, place, os.SEEK_SET)
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(file, rest) :]


def _block(turn: int, head: JournalHead) -> bytes:
    described = {"format": FORMAT, "version": VERSION, "turn": turn, **asdict(head)}
    text = json.dumps(described, indent=1).encode().ljust(BLOCK - _DIGEST)
    assert len(text) == BLOCK - _DIGEST
    return text + _digest(text)


def _read(path: Path, block: bytes) -> tuple[int, JournalHead] | None:
    """Turn and head of a block; None if it is damaged."""
    text, digest = block[:-_DIGEST], block[-_DIGEST:]
    if len(block) != BLOCK or digest != _digest(text):
        return None
    described = json.loads(text)
    if (described.pop("format"), version := described.pop("version")) != (FORMAT, VERSION):
        raise InputError(f"{path} has version {version}; this vrgcn reads version {VERSION}")
    return described.pop("turn"), JournalHead(**described)


def _digest(text: bytes) -> bytes:
    return hashlib.sha256(text).hexdigest().encode()
