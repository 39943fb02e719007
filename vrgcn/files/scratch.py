"""Temporary folders and files: locked while in use, removed afterwards, or by the next process."""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

try:
    import fcntl
except ImportError:  # without such locks, leftovers stay
    fcntl = None  # type: ignore[assignment]

_PREFIX = ".scratch-"
_YOUNG = 60.0  # seconds: what was just made may not be locked yet


@contextmanager
def scratch_folder(beside: Path) -> Iterator[Path]:
    """Create a new folder in `beside` and remove it afterwards; also remove those of killed
    processes."""
    beside.mkdir(parents=True, exist_ok=True)
    remove_stale(beside)
    folder = Path(tempfile.mkdtemp(dir=beside, prefix=_PREFIX))
    try:
        with in_use(folder):
            yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def in_use(path: Path) -> Iterator[None]:
    """Lock a file or folder, so that `remove_stale` leaves it, until the block ends or the process
    dies."""
    if fcntl is None:  # nothing is removed there, and an open file could not be renamed
        yield
        return
    descriptor = os.open(path, os.O_RDONLY)
    try:
        _lock(descriptor)
        yield
    finally:
        os.close(descriptor)


@contextmanager
def table_folder(memory: str, beside: Path) -> Iterator[Path | None]:
    """Folder of large tables by --memory: None for "ram", a scratch folder in `beside` for
    "disk"."""
    if memory == "ram":
        yield None
        return
    with scratch_folder(beside) as folder:
        yield folder


def remove_stale(beside: Path, pattern: str = f"{_PREFIX}*") -> None:
    """Remove scratch folders, or others that are locked while in use, that no process uses any
    more."""
    for path in beside.glob(pattern):
        with suppress(OSError):  # another process was faster, or we may not remove it
            if path.is_symlink() or time.time() - path.stat().st_mtime < _YOUNG:
                continue
            descriptor = os.open(path, os.O_RDONLY)
            try:
                if _lock(descriptor):
                    shutil.rmtree(path, ignore_errors=True) if path.is_dir() else path.unlink()
            finally:
                os.close(descriptor)


def _lock(descriptor: int) -> bool:
    """Lock what is open; False where another process has it. A process that dies lets it go."""
    if fcntl is None:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True
