"""Locks a folder for one process at a time. The lock of a process that has died does not block
others."""

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
    """Raised when another process uses the folder."""


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Create the folder if needed and lock it for this process; raise at once if it is in use."""
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
        path.unlink(missing_ok=True)  # while we still hold the lock
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
            if error.errno not in _NO_LOCKS:  # some file systems of clusters raise these
                os.close(descriptor)
                raise
        # The last owner may have removed the file between our two calls; then this lock guards
        # nothing.
        try:
            if os.path.samestat(os.fstat(descriptor), os.stat(path)):
                return descriptor
        except FileNotFoundError:
            pass
        os.close(descriptor)
