"""Files and folders that appear under their name complete, or not at all.

New contents lie under a hidden name, `.NAME.….partial`, beside the final one until they are
complete and on the disk. A killed process leaves nothing under a final name, and the next writer of
that name removes its leftovers. Two writers of one name cannot mix their bytes, and a full disk is
reported by its name. Output paths are checked before the hours of work that lead to them.
"""

from __future__ import annotations

import errno
import glob
import os
import shutil
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from vrgcn.files.mistakes import InputError
from vrgcn.files.scratch import in_use, remove_stale
from vrgcn.files.setting_names import setting
from vrgcn.files.wording import bytes_text

FIGURES = (".png", ".svg", ".pdf")
PAGES = (".html", ".htm")
ENDINGS = (*PAGES, *FIGURES, ".json")  # of explanations


def check_out(path: Path, suffixes: Sequence[str]) -> None:
    """Raise if a file could not be written; its folder is created.

    suffixes: the allowed endings, such as [".html"]
    """
    check_suffix(path, suffixes)
    check_out_folder(path.parent)


def check_suffix(path: Path, suffixes: Sequence[str]) -> None:
    """Raise for a folder, and for a file without an allowed ending."""
    if path.is_dir():
        raise InputError(f"{setting('out')}: {path} is a folder; name a file")
    if path.suffix not in suffixes:
        ends = suffixes[0] if len(suffixes) == 1 else f"one of {', '.join(suffixes)}"
        raise InputError(f"{setting('out')}: {path} must end in {ends}")


def check_writable(folder: Path) -> None:
    """Raise if a folder could not be written into; does not create it."""
    for place in (folder, *folder.parents):
        if place.is_symlink() and not place.exists():
            raise FileNotFoundError(
                f"{setting('out')}: {place} is a link to {os.readlink(place)}, which is not there; "
                "make that folder, or name another"
            )
        if place.exists():
            if not place.is_dir():
                raise NotADirectoryError(f"{setting('out')}: {place} is a file; name a folder")
            if not os.access(place, os.W_OK | os.X_OK):
                raise PermissionError(f"{setting('out')}: cannot write into the folder {place}")
            return


def check_out_folder(folder: Path) -> None:
    """Raise if a folder could not be written into; creates it if needed."""
    check_writable(folder)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise type(error)(
            f"{setting('out')}: cannot make the folder {folder}: {error.strerror}"
        ) from None


def check_utf8(path: Path, flag: str, reader: str) -> None:
    """Raise if a path is not valid UTF-8, because some readers accept only text."""
    try:
        str(path).encode()
    except UnicodeEncodeError:
        raise InputError(
            f"{flag}: {path} is not UTF-8, and {reader} takes no other paths: rename it"
        ) from None


FULL = (errno.ENOSPC, errno.EDQUOT)
_PARTIAL = ".partial"
_NO_FLUSH = (errno.EINVAL, errno.ENOTSUP, errno.EOPNOTSUPP, errno.EBADF)
_NO_LINKS = (errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK)


class DiskFullError(OSError):
    """A file could not be written because its disk, or the user's share of it, is full."""


@contextmanager
def new_file(
    path: str | Path, *, size: int | None = None, replace: bool = True
) -> Iterator[BinaryIO]:
    """An open file that takes its name, in place of what had it, when the block ends without an
    error; parent folders are made.

    size: bytes that will be written, if known, to be named where there is no room for them
    replace: False to refuse a name that is taken when the file is whole: of several writers, the
        first one wins and the others have a `FileExistsError`
    """
    path = Path(path)
    partial = partial_name(path)
    try:
        with explained(path, size):
            make_folder(path.parent)
            remove_stale_of(path)
            # Exclusive, and no link is followed: no existing file is ever opened.
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0)
            with open(os.open(partial, flags, 0o666), "wb") as file, in_use(partial):
                yield file
                file.flush()
                os.fsync(file.fileno())
                file.close()  # before it has its name, which `in_use` covers too
                if replace:
                    os.replace(partial, path)
                else:
                    _take_name(partial, path)
            flush_folder(path.parent)
    finally:
        with suppress(OSError):  # if even its folder is missing, that error is raised
            partial.unlink()


@contextmanager
def new_folder(path: str | Path, *, size: int | None = None) -> Iterator[Path]:
    """A hidden folder beside `path` that takes its name when the block ends without an error.

    An interrupted block leaves nothing at `path`; parent folders are made. Files in it are the
    caller's to flush.

    size: bytes that will be written, if known, to be named where there is no room for them
    """
    path = Path(path)
    if os.path.lexists(path):
        raise _already_there(path)
    partial = partial_name(path)
    try:
        with explained(path, size):
            make_folder(path.parent)
            remove_stale_of(path)
            partial.mkdir()
            with in_use(partial):
                yield partial
                flush_folder(partial)
                _rename(partial, path)
            flush_folder(path.parent)
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def write_text(path: str | Path, text: str) -> None:
    """A small text file, all of it or nothing."""
    with new_file(path) as file:
        file.write(text.encode())


def partial_name(path: Path) -> Path:
    """Return a new hidden name beside `path`."""
    return path.parent / f".{path.name}.{uuid.uuid4().hex}{_PARTIAL}"


def is_partial(path: Path) -> bool:
    """Whether it has a name of `partial_name`: what is being written, or never was to its end."""
    return path.name.startswith(".") and path.name.endswith(_PARTIAL)


def remove_stale_of(path: Path) -> None:
    """Remove what killed writers of the same name left."""
    remove_stale(path.parent, f".{glob.escape(path.name)}.*{_PARTIAL}")


def remove_partial(folder: Path) -> None:
    """Remove what writers that were killed left in a folder. Nobody may be writing there."""
    for left in folder.glob(f".*{_PARTIAL}"):
        if left.is_dir() and not left.is_symlink():
            shutil.rmtree(left, ignore_errors=True)
        else:
            left.unlink(missing_ok=True)


def remove_folder(folder: Path) -> None:
    """Its name first, at once: what has a final name is complete when it goes, too. What a process
    that is killed meanwhile leaves, `remove_partial` removes."""
    away = partial_name(folder)
    with explained(folder):
        os.rename(folder, away)
        flush_folder(folder.parent)
    shutil.rmtree(away, ignore_errors=True)


def make_folder(folder: Path) -> None:
    """A folder and those above it, each one's name durable; what is there already stays."""
    if folder.is_dir():
        return
    if folder.is_symlink():
        raise FileNotFoundError(
            f"{folder} is a link to {os.readlink(folder)}, which is no folder; make that folder, "
            "or write elsewhere"
        )
    if folder.exists():
        raise NotADirectoryError(f"{folder} is a file; name a folder")
    if folder.parent != folder:
        make_folder(folder.parent)
    folder.mkdir(exist_ok=True)
    flush_folder(folder.parent)


def flush_folder(folder: Path) -> None:
    """Make the names in a folder durable, not only the contents of its files."""
    if os.name == "nt":  # Windows opens no folders
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno not in _NO_FLUSH:  # as file systems say that cannot do so for folders
            raise
    finally:
        os.close(descriptor)


@contextmanager
def explained(path: Path, size: int | None = None) -> Iterator[None]:
    """Turns "no space left on device" into an error that says which file, which disk, how much."""
    try:
        yield
    except OSError as error:
        if error.errno not in FULL or isinstance(error, DiskFullError):
            raise
        full = DiskFullError(_no_room(path, size))
        full.errno = error.errno
        raise full from error


def _no_room(path: Path, size: int | None) -> str:
    folder = path.parent.resolve()  # a link may lead to another disk
    while not folder.exists():
        folder = folder.parent
    free = shutil.disk_usage(folder).free
    while not os.path.ismount(folder) and folder != folder.parent:
        folder = folder.parent
    needed = "" if size is None else f"{bytes_text(size)} are needed, "
    return (
        f"{path}: the disk at {folder} is full, or your share of it: {needed}{bytes_text(free)} "
        "are free; make room, or write elsewhere"
    )


def _take_name(partial: Path, path: Path) -> None:
    """Give a file a name that does not exist yet, or fail: a second link is made, which never
    replaces."""
    try:
        os.link(partial, path)
    except FileExistsError:
        raise FileExistsError(
            f"{path} was written by somebody else in the meantime, and is left as it is; choose "
            "another name"
        ) from None
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
        # A file system without links: an empty file holds the name for the moment between.
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666))
        os.replace(partial, path)


def _rename(partial: Path, path: Path) -> None:
    try:
        partial.rename(path)
    except OSError:
        # Another process may have finished the same folder in the meantime.
        if path.exists():
            raise _already_there(path) from None
        raise


def _already_there(path: Path) -> FileExistsError:
    return FileExistsError(f"{path} exists already; remove it or save under another name")
