"""Checks of output paths, made before the hours of work that lead to them, not after."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from vrgcn.files.mistakes import InputError
from vrgcn.files.setting_names import setting

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
