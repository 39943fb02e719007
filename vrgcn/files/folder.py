"""A folder whose files are all read as of one moment.

A folder may be replaced by another of its name, by a rename or a changed link, while its files are
opened one after the other. Files that are opened relative to an open folder are all of the folder
that had the name at first. Where the system cannot do so (Windows), the folder of that name is
compared before and after.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from io import BufferedReader
from pathlib import Path
from types import TracebackType
from typing import BinaryIO

_RELATIVE = {os.open, os.stat} <= os.supports_dir_fd
_ABSENT = (errno.ENOENT, errno.ENOTDIR, errno.ELOOP)


class FolderReplacedError(OSError):
    """A folder was removed, or another took its name, while it was read."""


class OpenFolder:
    """A folder as it is found when the block begins; may be replaced by another meanwhile.

    path: where it was found, for errors
    parent: an open folder that it lies in, if it is to be found there
    """

    def __init__(self, path: str | Path, parent: OpenFolder | None = None) -> None:
        self.path = Path(path)
        self._parent = parent
        self._descriptor: int | None = None
        self._identity: tuple[int, int] | None = None

    def __enter__(self) -> OpenFolder:
        if _RELATIVE:
            # O_PATH, where there is one: who may not list a folder may still open its files.
            flags = os.O_DIRECTORY | getattr(os, "O_PATH", os.O_RDONLY)
            place = self.path if self._parent is None else self.path.name
            above = None if self._parent is None else self._parent._descriptor
            self._descriptor = os.open(place, flags, dir_fd=above)
            self._identity = _identity(os.fstat(self._descriptor))
        else:
            self._identity = _identity(os.stat(self.path))
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        relative = self._descriptor is not None
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None
        explained = isinstance(error, OSError | ValueError) or (error is None and not relative)
        if explained and not self._is_there():
            raise FolderReplacedError(
                f"{self.path} was removed, or replaced by another, while it was read: run the "
                "command again"
            ) from error

    def within(self, name: str) -> OpenFolder:
        """A folder in this one, for a block of its own."""
        return OpenFolder(self.path / name, self)

    def open(self, name: str) -> BufferedReader:
        """A file of the folder, to be read."""

        def opener(path: str, flags: int) -> int:
            try:
                return os.open(self._place(name), flags, dir_fd=self._descriptor)
            except OSError as error:
                error.filename = path  # the whole path, for the message
                raise

        return open(self.path / name, "rb", opener=opener)

    def read(self, name: str) -> bytes:
        """All bytes of a file."""
        with self.open(name) as file:
            return file.read()

    def is_file(self, name: str) -> bool:
        """Whether the folder has such a file."""
        try:
            return stat.S_ISREG(self.stat(name).st_mode)
        except OSError as error:
            if error.errno in _ABSENT:
                return False
            raise

    def stat(self, name: str) -> os.stat_result:
        return os.stat(self._place(name), dir_fd=self._descriptor)

    def files(self) -> list[str]:
        """The names of all files in the folder, sorted."""
        if self._descriptor is None:
            names = os.listdir(self.path)
        else:
            listed = os.open(".", os.O_RDONLY | os.O_DIRECTORY, dir_fd=self._descriptor)
            try:
                names = os.listdir(listed)
            finally:
                os.close(listed)
        return sorted(name for name in names if self.is_file(name))

    def _place(self, name: str) -> str:
        return name if self._descriptor is not None else str(self.path / name)

    def _is_there(self) -> bool:
        try:
            return _identity(os.stat(self.path)) == self._identity
        except OSError:
            return False


@contextmanager
def opened_folder(source: str | Path | OpenFolder) -> Iterator[OpenFolder]:
    """A folder for a block: as it is where it is open already."""
    if isinstance(source, OpenFolder):
        yield source
        return
    with OpenFolder(source) as folder:
        yield folder


def path_of(file: BinaryIO) -> str:
    """A path that leads to an open file itself, whatever has its name by now, for readers that
    take nothing else; the file's name where the system has no such paths."""
    path = f"/dev/fd/{file.fileno()}"
    return path if os.path.exists(path) else str(file.name)


def _identity(status: os.stat_result) -> tuple[int, int]:
    return status.st_dev, status.st_ino
