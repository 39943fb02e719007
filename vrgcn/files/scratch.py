"""Folders for a while: locked while in use, removed afterwards, or by whoever comes next."""

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
except ImportError:  # where there are no such locks, what was left stays
    fcntl = None  # type: ignore[assignment]

_PREFIX = ".scratch-"
_YOUNG = 60.0  # seconds: a folder that was just made may not be locked yet


@contextmanager
def scratch_folder(beside: Path) -> Iterator[Path]:
    """A new folder in `beside`, gone afterwards; those of processes that were killed are too."""
    beside.mkdir(parents=True, exist_ok=True)
    remove_stale(beside)
    folder = Path(tempfile.mkdtemp(dir=beside, prefix=_PREFIX))
    lock = os.open(folder, os.O_RDONLY)
    try:
        _lock(lock)
        yield folder
    finally:
        os.close(lock)
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def table_folder(memory: str, beside: Path) -> Iterator[Path | None]:
    """Where large tables go by --memory: "ram" None, "disk" a scratch folder in `beside`."""
    if memory == "ram":
        yield None
        return
    with scratch_folder(beside) as folder:
        yield folder


def remove_stale(beside: Path) -> None:
    """Remove scratch folders that nobody uses any more."""
    for folder in beside.glob(f"{_PREFIX}*"):
        with suppress(OSError):  # somebody else was faster, or it is not ours to remove
            if folder.is_symlink() or time.time() - folder.stat().st_mtime < _YOUNG:
                continue
            descriptor = os.open(folder, os.O_RDONLY)
            try:
                if _lock(descriptor):
                    shutil.rmtree(folder, ignore_errors=True)
            finally:
                os.close(descriptor)


def _lock(descriptor: int) -> bool:
    """Lock an open folder; False where another process has it. A process that dies lets it go."""
    if fcntl is None:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True
