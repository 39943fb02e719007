"""Places that results go to: refused before the hours of work that lead to them, not after."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path


def check_out(path: Path, suffixes: Sequence[str]) -> None:
    """Refuse a file that could not be written; its folder is made.

    suffixes: those that it may end in, such as [".html"]
    """
    if path.suffix not in suffixes:
        ends = suffixes[0] if len(suffixes) == 1 else f"one of {', '.join(suffixes)}"
        raise ValueError(f"--out: {path} must end in {ends}")
    if path.is_dir():
        raise ValueError(f"--out: {path} is a folder; name a file")
    check_out_folder(path.parent)


def check_out_folder(folder: Path) -> None:
    """Refuse a folder that could not be written into; it is made where there is none."""
    for place in (folder, *folder.parents):
        if place.exists() and not place.is_dir():
            raise NotADirectoryError(f"--out: {place} is a file; name a folder")
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise type(error)(f"--out: cannot make the folder {folder}: {error.strerror}") from None
    if not os.access(folder, os.W_OK):
        raise PermissionError(f"--out: cannot write into the folder {folder}")
