"""A folder that one process uses at a time. The lock of a process that has died is no obstacle."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from vrgcn.files.writing import explained, make_folder

try:
    import fcntl
except ImportError:  # pragma: no cover - where there is no flock, folders are not locked
    fcntl = None  # type: ignore[assignment]

LOCK = ".lock"
_NO_LOCKS = (errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOLCK)


class LockedError(OSError):
    """Another process uses the folder."""


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """The folder, which is made, for this process alone; an error at once where it is in use."""
    path = folder / LOCK
    with explained(path):
        make_folder(folder)
        descriptor = _acquire(path)
    try:
        with explained(path):
            os.ftruncate(descriptor, 0)
            os.pwrite(descriptor, str(os.getpid()).encode(), 0)
        yield
    finally:
        path.unlink(missing_ok=True)  # while it is still ours
        os.close(descriptor)


def _acquire(path: Path) -> int:
    while True:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0), 0o666)
        try:
            if fcntl is not None:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            owner = os.pread(descriptor, 20, 0).decode(errors="replace")
            os.close(descriptor)
            raise LockedError(
                f"{path.parent} is in use by another process ({owner or 'which just began'}); wait "
                "for it, stop it, or write elsewhere"
            ) from None
        except OSError as error:
            if error.errno not in _NO_LOCKS:  # as some file systems of clusters say
                os.close(descriptor)
                raise
        # Its last owner may have removed the file between our two calls: then it guards nothing.
        try:
            if os.path.samestat(os.fstat(descriptor), os.stat(path)):
                return descriptor
        except FileNotFoundError:
            pass
        os.close(descriptor)
